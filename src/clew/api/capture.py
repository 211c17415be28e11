"""Captures: found by their full id, opened only with permission, read without Spark."""

# ruff: noqa: PLC0415 - what writes files is loaded by those who want one

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from clew.api.opened_environment import EnvironmentAccess, OpenedEnvironment
from clew.api.reads import record_read
from clew.auth.access_log import Subject
from clew.auth.roles import AccessRole
from clew.budgets import QuestionLimits, budgeted
from clew.captures.captured_rows import CapturedRows
from clew.captures.differences import CaptureDiff, diff_captures, statistics_of_rows
from clew.captures.manifests import Manifest, Places
from clew.captures.queue import CaptureRecord, CaptureState, CaptureStatus
from clew.captures.reading import capture_json, require_reading
from clew.captures.removal import remove_capture
from clew.captures.report import report_page
from clew.captures.statistics import Statistics
from clew.deferred import dataclass
from clew.definitions.privacy import Sight
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import CAPTURE_EXPIRED, CAPTURE_NOT_FOUND, CAPTURE_NOT_READY
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.runs.environment import RunEnvironment
from clew.runs.view import RunFactsReader
from clew.trace.json_values import json_value
from clew.trace.results import html_table

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    from clew.api.table_downloads import TableFile


@dataclass(frozen=True)
class Capture:
    """A capture, in its state when it was fetched."""

    record: CaptureRecord
    places: Places
    access: EnvironmentAccess | None = field(default=None, repr=False, compare=False)
    """Access to the state store, for changes."""

    @property
    def question_limits(self) -> QuestionLimits:
        """What a question about its rows may cost."""
        return self.places.environment.question_limits()

    @property
    def id(self) -> str:
        """The id of the capture."""
        return self.record.capture_id

    @property
    def status(self) -> str:
        """queued, running, ready, failed, expired or dropped."""
        return self.record.status.value

    @property
    def breakpoint(self) -> str:
        """The full name of its breakpoint."""
        return self.record.breakpoint

    @property
    def manifest(self) -> Manifest:
        """Its description, without the rows. Raises UserError if it is not ready or has expired, or is not for them."""
        if self.access is not None:
            _require_reading(self.record, self.access.environment, self.access.principal.role)
        manifest, status = self.record.outcome.manifest, self.record.status
        expires = self.record.expires_at
        if status is CaptureStatus.EXPIRED or (manifest is not None and self.record.is_past):
            when = expires.date().isoformat() if expires is not None else "its day"
            raise UserError(CAPTURE_EXPIRED.anywhere(capture_id=self.id, when=when))
        if status is not CaptureStatus.READY or manifest is None:
            outcome = self.record.outcome
            reason = outcome.drop_reason or (outcome.error.message if outcome.error is not None else "")
            because = f": {reason}" if reason else ""
            raise UserError(CAPTURE_NOT_READY.anywhere(capture_id=self.id, status=status, because=because))
        return manifest

    @property
    def rows(self) -> CapturedRows:
        """Its rows. Raises UserError if it has none. Opening them is on record, as they also tell where files are."""
        found = self.unopened_rows
        self.has_read("opened", (), 0)
        return found

    @property
    def unopened_rows(self) -> CapturedRows:
        """The same; what is read of them is on record, but not that they were opened."""
        return CapturedRows(self.manifest, self.places.at(self.manifest.folder), self.question_limits, self.has_read)

    @budgeted
    def to_arrow(self) -> "pa.Table":
        """The rows that are not deleted, in the order of the run."""
        return self.unopened_rows.to_arrow()

    @budgeted
    def to_pandas(self) -> "pd.DataFrame":
        """The same rows as a data frame; pandas must be installed."""
        return self.unopened_rows.to_pandas()

    @budgeted
    def statistics(self) -> Statistics:
        """Statistics of its columns."""
        manifest = self.manifest
        if manifest.statistics is not None:
            found = Statistics.from_json(manifest.statistics)
        else:
            found = statistics_of_rows(self.unopened_rows)
        self.has_read("statistics", [column.name for column in found.columns], 0)
        return found

    def has_read(self, asked: str, columns: Iterable[str], rows: int) -> None:
        """Record that rows of it, or what was calculated from them, are given to the principal."""
        if self.access is not None:
            record_read(self.access, Subject.CAPTURE, self.id, asked, columns, rows)

    @budgeted
    def diff(self, other: "Capture", *, key: Sequence[str] = (), examples: int = 10) -> CaptureDiff:
        """The differences between this capture and another."""
        found = diff_captures(self.unopened_rows, other.unopened_rows, key=key, examples=examples)
        columns, changed = [each.name for each in found.columns], len(found.examples_changed)
        self.has_read(f"compared with {other.id}", columns, len(found.examples_removed) + changed)
        other.has_read(f"compared with {self.id}", columns, len(found.examples_added) + changed)
        return found

    @budgeted
    def report(self) -> str:
        """A self-contained HTML page about it."""
        return report_page(self.manifest, self.statistics())

    def remove(self) -> int:
        """Delete its rows and its record. Returns the number of bytes freed."""
        if self.access is None:
            raise RuntimeError("this capture does not know its workspace")
        with self.access.opened() as at:
            return remove_capture(self.places, at.state.captures, self.record)

    def to_json(self) -> dict[str, Any]:
        """The form of `captures --json`."""
        return capture_json(self.record)

    @budgeted
    def described(self) -> dict[str, Any]:
        """The form of `capture show --json`: with the manifest and statistics once they exist."""
        if not self.record.status.is_over or self.record.outcome.manifest is None:
            return self.to_json()
        return self.to_json() | {"manifest": self.manifest.to_json(), "statistics": self.statistics().to_json()}

    @budgeted
    def first(self, limit: int) -> "pa.Table":
        """The first rows that are not deleted, in the order of the run."""
        return self.unopened_rows.to_arrow(limit)

    @budgeted
    def first_rows(self, limit: int) -> dict[str, Any]:
        """The form of `capture view --json`: rows that are not deleted, in the order of the run."""
        table = self.first(limit)
        rows = [{name: json_value(value) for name, value in row.items()} for row in table.to_pylist()]
        return {"capture_id": self.id, "breakpoint": self.breakpoint, "rows": rows}

    @budgeted
    def download(self, format: str = "csv", *, limit: int = 50_000) -> "TableFile":  # noqa: A002 - what users call it
        """The first rows that are not deleted as a file in the format "csv", "xlsx" or "parquet"."""
        from clew.api.downloads import MOST_ROWS, capture_file

        most = max(1, min(limit, MOST_ROWS))
        return capture_file(self.first(most + 1), self.id, format, limit=most)

    def __repr__(self) -> str:
        return f"<Capture {self.id} of {self.breakpoint}: {self.status}>"

    def _repr_html_(self) -> str:
        found = self.statistics()
        rows = [
            [each.name, each.type, f"{each.nulls:,}", f"{each.distinct:,}", str(each.min), str(each.max)]
            for each in found.columns
        ]
        caption = f"{self.breakpoint}: {found.rows:,} rows"
        return html_table(caption, ["column", "type", "nulls", "distinct", "min", "max"], rows)


@dataclass(frozen=True, slots=True)
class CaptureReader:
    """Finds the captures of an environment that a principal may see."""

    state: CaptureState
    environment: RunEnvironment
    role: AccessRole = AccessRole.ADMIN
    """By default the user of an embedded environment, who may do everything."""
    access: EnvironmentAccess | None = None
    """Access to the environment, for the captures that are found."""

    def find(self, capture_id: str) -> Capture:
        """A capture by its full id. Raises UserError CaptureNotFound, or CaptureAccessDenied without permission."""
        record = self.state.captures.find(capture_id)
        if record is None or record.kind != "capture":
            raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=capture_id))
        _require_reading(record, self.environment, self.role)
        return Capture(record, Places(self.environment), self.access)

    def listed(
        self,
        *,
        run_id: str | None = None,
        request_id: str | None = None,
        status: CaptureStatus | None = None,
        limit: int = 50,
    ) -> list[Capture]:
        """Captures, newest first."""
        store, tenant = self.state.captures, self.environment.settings.tenant
        if run_id is not None:
            found = [record for record in store.of_run(run_id) if status in {None, record.status}]
            found = [each for each in found if each.tenant_id == tenant and each.kind == "capture"]
        else:
            found = list(store.listed(tenant_id=tenant, request_id=request_id, status=status, limit=limit))
        return [Capture(record, Places(self.environment), self.access) for record in found[:limit]]

    def run_named(self, name: str, runs: RunFactsReader) -> str:
        """The id of a run by its first characters. Captures outlive their run, so the run may have been deleted."""
        try:
            return runs.find(name).run_id
        except UserError as error:
            left = self.state.captures.listed(
                tenant_id=self.environment.settings.tenant, run_id=name or None, limit=500
            )
            found = {record.run_id for record in left}
            if error.code != RUN_NOT_FOUND.name or not name or len(found) != 1:
                raise
            return found.pop()


def _require_reading(record: CaptureRecord, environment: RunEnvironment, role: AccessRole) -> None:
    settings = environment.settings
    require_reading(
        record,
        role=role,
        tenant_id=settings.tenant,
        include_roles=settings.captures.include_roles,
        sees_personal=settings.privacy.sights(role)["personal"] is Sight.CLEAR,
    )


def capture_reader(access: EnvironmentAccess, at: OpenedEnvironment) -> CaptureReader:
    """Finds captures for the principal. Raises UserError Forbidden if the workspace belongs to another tenant."""
    at.require_own_tenant()
    return CaptureReader(at.state, at.environment, at.principal.role, access)
