"""Captures to look at: found by their id, opened by those who may read them, and their JSON."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.auth.roles import AccessRole, Permission
from clew.captures.captured_rows import CapturedRows
from clew.captures.differences import CaptureDiff, diff_captures, statistics_of_rows
from clew.captures.manifests import Manifest, Places
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureState, CaptureStatus
from clew.captures.report import report_page
from clew.captures.statistics import Statistics
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import CAPTURE_ACCESS_DENIED, CAPTURE_EXPIRED, CAPTURE_NOT_FOUND, CAPTURE_NOT_READY
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.events.codec import encode
from clew.plan.postlude import PostludeJob
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.view import RunFactsReader
from clew.trace.results import html_table
from clew.trace.values import json_value

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who asks for a capture."""

    role: AccessRole
    tenant_id: str


def require_reading(record: CaptureRecord, reader: Reader, include_roles: Collection[str]) -> None:
    """Refuse those who may not. For somebody of another tenant the capture does not exist."""
    if record.tenant_id != reader.tenant_id:
        raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=record.capture_id))
    if Permission.READ_CAPTURES not in reader.role.permissions:
        problem = f"somebody in the role {reader.role} may not read captures"
        raise UserError(CAPTURE_ACCESS_DENIED.anywhere(problem=problem))
    manifest = record.outcome.manifest
    shows_personal = manifest is not None and manifest.shows_personal
    if shows_personal and include_roles and reader.role not in include_roles:
        problem = f"this capture shows personal columns, which somebody in the role {reader.role} may not read"
        raise UserError(CAPTURE_ACCESS_DENIED.anywhere(problem=problem))


def capture_json(record: CaptureRecord) -> dict[str, object]:
    """A capture in a list: what `run --json` and `captures --json` have."""
    manifest, frozen = record.outcome.manifest, record.frozen
    return {
        "capture_id": record.capture_id,
        "breakpoint": record.breakpoint,
        "seq": record.seq,
        "status": record.status.value,
        "run_id": record.run_id,
        "request_id": record.request_id,
        "asked_mode": record.request.mode.value if record.request is not None else None,
        "limits": encode(record.request.limits) if record.request is not None else None,
        "mode": manifest.mode.value if manifest is not None else None,
        "rows": manifest.rows if manifest is not None else None,
        "bytes": manifest.size if manifest is not None else None,
        "job_id": manifest.job_id if manifest is not None else None,
        "estimated_bytes": frozen.ticket.estimated_bytes if frozen is not None else None,
        "freeze_us": frozen.freeze_us if frozen is not None else None,
        "created_at": record.created_at.isoformat(),
        "completed_at": record.completed_at.isoformat() if record.completed_at else None,
        "expires_at": record.expires_at.isoformat() if record.expires_at else None,
        "attempts": record.attempts,
        **_how_it_went(record.outcome),
    }


def job_json(job: PostludeJob, record: CaptureRecord | None) -> dict[str, object]:
    """A postlude job of a run; without a record where the run is older than jobs."""
    found: dict[str, object] = {"job_id": job.id, "name": job.name, "anchor": job.anchor}
    if record is None:
        return found | {"status": "dropped", "drop_reason": "NOT_RECORDED"}
    report = record.outcome.job
    return (
        found
        | {
            "status": record.status.value,
            "attempts": record.attempts,
            "created_at": record.created_at.isoformat(),
            "started_at": record.started_at.isoformat() if record.started_at else None,
            "completed_at": record.completed_at.isoformat() if record.completed_at else None,
            "expires_at": record.expires_at.isoformat() if record.expires_at else None,
            "rows": report.rows if report is not None else 0,
            "bytes": report.size if report is not None else 0,
            "wait_ms": report.wait_ms if report is not None else None,
            "run_ms": report.run_ms if report is not None else None,
            "results": list(report.results) if report is not None else [],
            "emissions": encode(report.emissions) if report is not None else [],
            "left_out": list(report.left_out) if report is not None else [],
        }
        | _how_it_went(record.outcome)
    )


def _how_it_went(outcome: CaptureOutcome) -> dict[str, object]:
    steps = outcome.manifest.degradations if outcome.manifest is not None else outcome.steps
    return {
        "drop_reason": outcome.drop_reason,
        "degradations": encode(steps),
        "error": {"code": outcome.error.code, "message": outcome.error.message} if outcome.error is not None else None,
    }


@dataclass(frozen=True)
class Capture:
    """A capture as it stood when it was asked for."""

    record: CaptureRecord
    places: Places

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
        """Everything about it beside its rows. UserError where it is not ready, or not any more."""
        manifest, status = self.record.outcome.manifest, self.record.status
        expires = self.record.expires_at
        if status is CaptureStatus.EXPIRED or (manifest is not None and expires is not None and expires <= utc_now()):
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
        """Its rows. UserError where it has none."""
        return CapturedRows(self.manifest, self.places.path(self.manifest.folder))

    def to_arrow(self) -> "pa.Table":
        """The rows that are not deleted, in the order that they had in the run."""
        return self.rows.to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return self.rows.to_pandas()

    def statistics(self) -> Statistics:
        """Its columns in numbers."""
        manifest = self.manifest
        if manifest.statistics is not None:
            return Statistics.from_json(manifest.statistics)
        return statistics_of_rows(self.rows)

    def diff(self, other: "Capture", *, key: Sequence[str] = (), examples: int = 10) -> CaptureDiff:
        """In what another capture differs from this one."""
        return diff_captures(self.rows, other.rows, key=key, examples=examples)

    def report(self) -> str:
        """A page about it, in HTML, that stands for itself."""
        return report_page(self.manifest, self.statistics())

    def to_json(self) -> dict[str, Any]:
        """The form of `captures --json`."""
        return capture_json(self.record)

    def described(self) -> dict[str, Any]:
        """The form of `capture show --json`: with manifest and statistics, once there are any."""
        if not self.record.status.is_over or self.record.outcome.manifest is None:
            return self.to_json()
        return self.to_json() | {"manifest": self.manifest.to_json(), "statistics": self.statistics().to_json()}

    def first_rows(self, limit: int) -> dict[str, Any]:
        """The form of `capture view --json`: rows that are not deleted, in the order that they had in the run."""
        rows = [
            {name: json_value(value) for name, value in row.items()} for row in self.rows.to_arrow(limit).to_pylist()
        ]
        return {"capture_id": self.id, "breakpoint": self.breakpoint, "rows": rows}

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
    """Finds the captures of an environment for somebody."""

    state: CaptureState
    environment: RunEnvironment
    role: AccessRole = AccessRole.ADMIN
    """The user of an embedded environment may do everything."""

    def find(self, capture_id: str) -> Capture:
        """A capture by its whole id. UserError CaptureNotFound, and CaptureAccessDenied for those who may not."""
        record = self.state.captures.find(capture_id)
        if record is None or record.kind != "capture":
            raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=capture_id))
        reader = Reader(self.role, self.environment.settings.tenant)
        require_reading(record, reader, self.environment.settings.captures.include_roles)
        return Capture(record, Places(self.environment))

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
        return [Capture(record, Places(self.environment)) for record in found[:limit]]

    def run_named(self, name: str, runs: RunFactsReader) -> str:
        """The id of a run by its beginning. Captures outlive their run, so it may be one that was removed."""
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
