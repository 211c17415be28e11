"""One capture, from its ticket to files and a manifest, stepping down until it fits."""

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from clew.captures.asking import SYSTEM
from clew.captures.captured_rows import ROW_ID
from clew.captures.fitting import Degradation, below, exceeded
from clew.captures.manifests import MANIFEST_FILE, CapturedColumn, CapturedFile, Manifest
from clew.captures.places import Places
from clew.captures.policy import LARGE_COLUMN_BYTES
from clew.captures.records import CaptureOutcome, CaptureRecord, Frozen
from clew.captures.requests import CaptureRequest, KeptColumn, OmittedColumn
from clew.captures.spark_rows import EndedRun, WrittenRows, raw_rows, sample_of, view_rows, write_rows
from clew.captures.statistics import statistics_of
from clew.definitions import CaptureMode
from clew.engine.types import DataFrame
from clew.lang.types import parse_type
from clew.plan import Plan
from clew.runs.clock import utc_now
from clew.runs.request import RunRecord
from clew.trace.sql import Sql, parquet, quoted, typed_column

_RAW = frozenset({CaptureMode.FULL_RAW, CaptureMode.SAMPLE_RAW})
_SAMPLE = frozenset({CaptureMode.SAMPLE_RAW, CaptureMode.SAMPLE_VIEW})


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was written in the end."""

    mode: CaptureMode
    columns: tuple[KeptColumn, ...]
    written: WrittenRows
    statistics: dict[str, object] | None


@dataclass(slots=True)
class CaptureWriter:
    """Writes one capture."""

    places: Places
    run: RunRecord
    ended: EndedRun
    record: CaptureRecord
    request: CaptureRequest
    frozen: Frozen
    attempt: int
    wait_ms: int
    is_prod: bool
    steps: list[Degradation] = field(default_factory=list)
    left_out: list[OmittedColumn] = field(default_factory=list)

    def write(self) -> CaptureOutcome:
        """Write it into a folder of this attempt, and touch no other: the attempt may have been overtaken."""
        started = time.perf_counter()
        self.steps = list(self.frozen.steps)
        self.left_out = list(self.request.left_out)
        place = self.places.captures(self.request.store, project_version=self.run.request.project_version)
        folder = place / self.record.capture_id / str(self.attempt)
        staging = folder.with_name(f"{folder.name}.staging")
        kept = self._fitting(staging)
        if kept is None:
            shutil.rmtree(staging, ignore_errors=True)
            return CaptureOutcome(drop_reason=self.steps[-1].reason.value, steps=tuple(self.steps))
        manifest = self._manifest(kept, folder, int((time.perf_counter() - started) * 1000))
        staging.mkdir(parents=True, exist_ok=True)
        text = json.dumps(manifest.to_json(), indent=1, sort_keys=True)
        (staging / MANIFEST_FILE).write_text(text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        staging.rename(folder)
        return CaptureOutcome(manifest=manifest, steps=tuple(self.steps))

    def _fitting(self, staging: Path) -> _Kept | None:
        """Write in the mode that was decided on, and in lower ones while what was written is too large."""
        mode = self.frozen.mode
        columns = self.request.columns
        while mode is not None:
            written = write_rows(self._rows(mode, columns), staging)
            problem = exceeded(mode, self.request, rows=written.rows, size=written.size)
            large = self._large(columns, written) if self.is_prod else ()
            if problem is not None:
                self.steps.append(problem)
                mode = below(mode)
            elif large:
                self.left_out += [OmittedColumn(column.name, "LARGE") for column in large]
                columns = tuple(column for column in columns if column not in large)
            elif mode is CaptureMode.STATS:
                found = self._statistics(staging, written, columns)
                shutil.rmtree(staging)
                return _Kept(mode, columns, WrittenRows((), {}), found | {"rows": written.rows})
            else:
                return _Kept(mode, columns, written, None)
        return None

    def _rows(self, mode: CaptureMode, columns: Sequence[KeptColumn]) -> DataFrame:
        rows = self.ended.rows_at(self.frozen.ticket.seq)
        if mode in _SAMPLE:
            rows = sample_of(rows, self.ended.run_id, self.frozen.sample_rows)
        salt = self.places.salt()
        return raw_rows(rows, columns, salt) if mode in _RAW else view_rows(rows, columns, salt, self.ended.run_id)

    def _large(self, columns: Sequence[KeptColumn], written: WrittenRows) -> tuple[KeptColumn, ...]:
        """Columns that take up much room, and that nobody asked for by name."""
        most = LARGE_COLUMN_BYTES * written.rows
        return tuple(
            column
            for column in columns
            if column.name not in self.request.named
            and column.name not in SYSTEM
            and written.column_bytes.get(column.name, 0) > most
        )

    def _statistics(self, staging: Path, written: WrittenRows, columns: Sequence[KeptColumn]) -> dict[str, object]:
        described = [
            (each.name, parse_type(each.type)) for each in _described(self.ended.plan, self.request.seq, columns)
        ]
        typed = ", ".join(f"{typed_column(name, type_)} AS {quoted(name)}" for name, type_ in described)
        files = parquet([staging / file.path for file in written.files])
        rows = Sql(f"SELECT {typed or quoted(ROW_ID)} FROM ") + files  # noqa: S608 - names are quoted
        return statistics_of(rows, described).to_json()

    def _manifest(self, kept: _Kept, folder: Path, write_ms: int) -> Manifest:
        request, ticket, now = self.request, self.frozen.ticket, utc_now()
        rows = kept.written.rows if kept.statistics is None else kept.statistics["rows"]
        assert isinstance(rows, int)  # noqa: S101 - a count
        plan = self.ended.plan
        columns = _described(plan, request.seq, kept.columns)
        return Manifest(
            capture_id=self.record.capture_id,
            run_id=self.run.run_id,
            request_id=self.run.request.request_id,
            environment=self.places.environment.name,
            project=self.run.request.project_id,
            period=self.run.request.period,
            breakpoint=self.record.breakpoint,
            seq=ticket.seq,
            plan_digest=ticket.plan_digest,
            mode=kept.mode,
            asked=request.mode,
            degradations=tuple(self.steps),
            columns=columns,
            left_out=tuple(self.left_out),
            natural_key=plan.input.natural_key,
            rows=rows,
            size=kept.written.size,
            files=kept.written.files,
            digest=digest_of_files(kept.written.files),
            statistics=kept.statistics,
            folder=self.places.shown(folder),
            store=request.store,
            shows_personal=request.shows_personal,
            estimated_bytes=ticket.estimated_bytes,
            freeze_us=self.frozen.freeze_us,
            wait_ms=self.wait_ms,
            write_ms=write_ms,
            attempts=self.attempt,
            frozen_at=ticket.frozen_at,
            created_at=now,
            expires_at=now + timedelta(days=request.ttl_days),
        )


def digest_of_files(files: Sequence[CapturedFile]) -> str:
    """One digest for all files."""
    return hashlib.sha256("\n".join(file.sha256 for file in files).encode()).hexdigest()


def _described(plan: Plan, seq: int, columns: Sequence[KeptColumn]) -> tuple[CapturedColumn, ...]:
    types = {column.name: str(column.type) for column in plan.columns_after(seq)}
    return tuple(
        CapturedColumn(
            column.name,
            "string" if column.mask is not None else types.get(column.name, "string"),
            str(column.mask) if column.mask is not None else None,
        )
        for column in columns
    )
