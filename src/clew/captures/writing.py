"""Writing one capture: the rows at a frozen point, with Spark, stepping down until they fit, and the manifest."""

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import field
from datetime import date, timedelta

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.captures.captured_rows import DELETED, ROW_ID
from clew.captures.freezing import Degradation, Frozen, below, exceeded, rank_sql
from clew.captures.manifests import CapturedColumn, CapturedFile, Manifest, Places
from clew.captures.policy import LARGE_COLUMN_BYTES
from clew.captures.queue import CaptureOutcome, CaptureRecord
from clew.captures.requests import SYSTEM, CaptureRequest, KeptColumn, OmittedColumn
from clew.captures.spark_statistics import statistics_in_spark
from clew.deferred import dataclass
from clew.definitions import CaptureMode, Mask, MaskKind
from clew.engine.counting import counted, require_rows, told_as_missing
from clew.engine.executor import pinned_rows
from clew.engine.expressing import Expressing
from clew.engine.names import row_id_sql
from clew.engine.sql import quoted
from clew.engine.working import StepsBehind, Storage, rebuild
from clew.lang.types import Kind, parse_type
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.steps import PlannedExpression
from clew.runs.clock import Clock
from clew.runs.request import RunRecord
from clew.storage.drafts import Draft, attempt_name
from clew.storage.layout import MANIFEST_FILE
from clew.storage.parts import ORDINAL, Part
from clew.storage.root import StorageKey, StorageRoot

_WRITE_OPTIONS = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
"""Captures are read as a whole and seldom by row, so that Spark's own row groups do."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that is over, whose points can be rebuilt at any time."""

    spark: SparkSession
    root: StorageRoot
    run_id: str
    plan: Plan
    period: str
    today: date
    parts: tuple[Part, ...]
    skipped: frozenset[int]

    @property
    def expressing(self) -> Expressing:
        """What turns expressions of the plan into SQL, as it was in the run."""
        return Expressing(self.run_id, self.plan.input.table, self.today)

    def rows_at(self, seq: int) -> DataFrame:
        """The working dataset after a step: nothing is computed here."""
        inputs = {part.name: part for part in self.parts if part.kind == "input"}

        def pinned(use: DatasetUse) -> DataFrame:
            return pinned_rows(self.spark, self.root, inputs[use.key], use)

        storage = Storage(self.spark, self.root, pinned)
        progress = StepsBehind(self.parts, self.skipped)
        return rebuild(self.plan, progress, self.period, storage, self.expressing, until=seq).rows


def in_view(rows: DataFrame) -> DataFrame:
    """The rows that are not deleted."""
    return rows.where(f"NOT {quoted(DELETED)}")


def sample_of(rows: DataFrame, run_id: str, count: int) -> DataFrame:
    """A sample of the rows that are not deleted: those whose digest of run and ordinal come first, in their order."""
    drawn = in_view(rows).orderBy(F.expr(rank_sql(run_id, ORDINAL)), F.col(ORDINAL)).limit(count)
    return drawn.coalesce(1).sortWithinPartitions(ORDINAL)


def filtered(rows: DataFrame, expressing: Expressing, condition: PlannedExpression) -> DataFrame:
    """The rows for which a condition is true, deleted ones among them."""
    return rows.where(expressing.sql(condition.tree))


def taken(rows: DataFrame, count: int) -> DataFrame:
    """The first rows that are not deleted."""
    return in_view(rows).orderBy(ORDINAL).limit(count)


def raw_rows(rows: DataFrame, columns: Sequence[KeptColumn], salt: str) -> DataFrame:
    """Every row with its position, its values and whether it is deleted."""
    return rows.select(ORDINAL, *_kept(columns, salt), quoted(DELETED))


def view_rows(rows: DataFrame, columns: Sequence[KeptColumn], salt: str, run_id: str) -> DataFrame:
    """The rows that are not deleted, with their ids."""
    return in_view(rows).select(F.expr(row_id_sql(run_id)).alias(ROW_ID), *_kept(columns, salt))


def _kept(columns: Sequence[KeptColumn], salt: str) -> list[Column]:
    return [
        F.col(quoted(column.name))
        if column.mask is None
        else F.expr(masked_sql(quoted(column.name), column.mask, salt)).alias(column.name)
        for column in columns
    ]


def masked_sql(column: str, mask: Mask, salt: str) -> str:
    """SQL for the masked values of a column; NULL stays NULL."""
    text = f"CAST({column} AS STRING)"
    match mask.kind:
        case MaskKind.HASH:
            return f"substr(sha2(concat('{salt}', {text}), 256), 1, 16)"
        case MaskKind.REDACT:
            return f"CASE WHEN {column} IS NOT NULL THEN '[masked]' END"
        case MaskKind.KEEP_LAST:
            kept = mask.characters
            hidden = f"repeat('*', length({text}) - {kept})"
            return (
                f"CASE WHEN length({text}) > {kept} THEN concat({hidden}, right({text}, {kept})) "
                f"ELSE repeat('*', length({text})) END"
            )


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Files that were written, and how large their columns are."""

    files: tuple[CapturedFile, ...]
    column_bytes: dict[str, int]
    sources: tuple[str, ...]
    """Where the files can be read until their draft is published or discarded."""

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def write_rows(rows: DataFrame, draft: Draft) -> WrittenRows:
    """Write rows as Parquet to a draft that has nothing yet, and make sure that they are there."""
    observed, count = counted(rows)
    observed.write.options(**_WRITE_OPTIONS).parquet(draft.spark_uri)
    written = _files_in(draft)
    require_rows(written.rows, count(), place=f"{draft.root.address}/{draft.folder}")
    return written


def _files_in(draft: Draft) -> WrittenRows:
    """The files with rows; where none has any, one that still tells the columns. The others are not named."""
    found = list[CapturedFile]()
    sizes = dict[str, int]()
    files, root = draft.files(".parquet"), draft.root
    footers = {file: _footer(root, file.key) for file in files}
    with_rows = [file for file in files if footers[file].num_rows] or files[:1]
    for file in with_rows:
        footer = footers[file]
        for group in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(group).column(column)
                sizes[chunk.path_in_schema] = sizes.get(chunk.path_in_schema, 0) + chunk.total_uncompressed_size
        found.append(CapturedFile(file.name, footer.num_rows, file.size, root.sha256(file.key)))
    return WrittenRows(tuple(found), sizes, tuple(root.source(file.key) for file in with_rows))


def _footer(root: StorageRoot, key: StorageKey) -> pq.FileMetaData:
    with told_as_missing(f"{root.address}/{key}"), root.open_parquet(key) as opened:
        return opened.metadata


_RAW = frozenset({CaptureMode.FULL_RAW, CaptureMode.SAMPLE_RAW})
_SAMPLE = frozenset({CaptureMode.SAMPLE_RAW, CaptureMode.SAMPLE_VIEW})


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was written in the end."""

    mode: CaptureMode
    columns: tuple[KeptColumn, ...]
    written: WrittenRows
    statistics: dict[str, object] | None
    draft: Draft


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
    now: Clock
    """By the clock of the state store, which also says what has expired."""
    steps: list[Degradation] = field(default_factory=list)
    left_out: list[OmittedColumn] = field(default_factory=list)

    def write(self) -> CaptureOutcome:
        """Publish it in a folder of this attempt, and touch no other: the attempt may have been overtaken."""
        started = time.perf_counter()
        self.steps = list(self.frozen.steps)
        self.left_out = list(self.request.left_out)
        place = self.places.captures(self.request.store, project_version=self.run.request.project_version)
        with ExitStack() as unpublished:

            def begin() -> Draft:
                draft = Draft(place, f"{self.record.capture_id}/{self.attempt}-{attempt_name()}")
                unpublished.callback(draft.abandon)
                return draft

            kept = self._fitting(begin)
            if kept is None:
                return CaptureOutcome(drop_reason=self.steps[-1].reason.value, steps=tuple(self.steps))
            folder = place.below(kept.draft.folder)
            manifest = self._manifest(kept, folder, int((time.perf_counter() - started) * 1000))
            unpublished.pop_all()
            kept.draft.publish(MANIFEST_FILE, manifest.to_bytes())
        return CaptureOutcome(manifest=manifest, steps=tuple(self.steps))

    def _fitting(self, begin: Callable[[], Draft]) -> _Kept | None:
        """Write in the mode that was decided on, and in lower ones while what was written is too large."""
        mode = self.frozen.mode
        columns = self.request.columns
        while mode is not None:
            if mode is CaptureMode.STATS:
                return self._in_numbers(columns, begin())
            draft = begin()
            written = write_rows(self._rows(mode, columns), draft)
            problem = exceeded(mode, self.request, rows=written.rows, size=written.size)
            large = self._large(columns, written) if self.is_prod else ()
            if problem is not None:
                self.steps.append(problem)
                mode = below(mode)
            elif large:
                self.left_out += [OmittedColumn(column.name, "LARGE") for column in large]
                columns = tuple(column for column in columns if column not in large)
            else:
                return _Kept(mode, columns, written, None, draft)
            draft.abandon()
        return None

    def _rows(self, mode: CaptureMode, columns: Sequence[KeptColumn]) -> DataFrame:
        rows = self.ended.rows_at(self.frozen.ticket.seq)
        if mode in _SAMPLE:
            rows = sample_of(rows, self.ended.run_id, self.frozen.sample_rows)
        salt = self.places.salt()
        kept = raw_rows(rows, columns, salt) if mode in _RAW else view_rows(rows, columns, salt, self.ended.run_id)
        return kept if mode in _SAMPLE or self._is_known_to_fit else kept.limit(self.request.limits.max_rows + 1)

    @property
    def _is_known_to_fit(self) -> bool:
        """Whether there cannot be too many rows. Otherwise one more than allowed is written, which tells."""
        rows = self.frozen.ticket.rows
        return rows is not None and rows <= self.request.limits.max_rows

    def _large(self, columns: Sequence[KeptColumn], written: WrittenRows) -> tuple[KeptColumn, ...]:
        """Large columns that were not asked for by name."""
        most = LARGE_COLUMN_BYTES * written.rows
        return tuple(
            column
            for column in columns
            if self._may_leave_out(column) and written.column_bytes.get(column.name, 0) > most
        )

    def _in_numbers(self, columns: tuple[KeptColumn, ...], draft: Draft) -> _Kept:
        """Statistics of the rows, none of which is written."""
        rows = self.ended.rows_at(self.frozen.ticket.seq)
        view = view_rows(rows, columns, self.places.salt(), self.ended.run_id)
        large = self._large_texts(view, columns) if self.is_prod else ()
        self.left_out += [OmittedColumn(column.name, "LARGE") for column in large]
        kept = tuple(column for column in columns if column not in large)
        described = _described(self.ended.plan, self.request.seq, kept)
        found = statistics_in_spark(view, [(each.name, parse_type(each.type)) for each in described])
        return _Kept(CaptureMode.STATS, kept, WrittenRows((), {}, ()), found.to_json(), draft)

    def _large_texts(self, view: DataFrame, columns: Sequence[KeptColumn]) -> tuple[KeptColumn, ...]:
        """Large columns that were not asked for by name: only texts can be."""
        described = _described(self.ended.plan, self.request.seq, columns)
        texts = [each.name for each in described if parse_type(each.type).kind is Kind.STRING]
        lengths = [F.avg(F.octet_length(F.col(quoted(name)))).alias(f"c{index}") for index, name in enumerate(texts)]
        [found] = view.agg(F.count(F.lit(1)).alias("rows"), *lengths).collect()
        large = {name for index, name in enumerate(texts) if (found[f"c{index}"] or 0) > LARGE_COLUMN_BYTES}
        return tuple(column for column in columns if column.name in large and self._may_leave_out(column))

    def _may_leave_out(self, column: KeptColumn) -> bool:
        return column.name not in self.request.named and column.name not in SYSTEM

    def _manifest(self, kept: _Kept, folder: StorageRoot, write_ms: int) -> Manifest:
        request, ticket, now = self.request, self.frozen.ticket, self.now()
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
