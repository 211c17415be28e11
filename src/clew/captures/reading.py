"""Who may read a capture, and the JSON of captures and jobs for commands, Python and pages."""

from collections.abc import Collection

from clew.auth.roles import AccessRole, Permission
from clew.captures.queue import CaptureOutcome, CaptureRecord
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import CAPTURE_ACCESS_DENIED, CAPTURE_NOT_FOUND
from clew.events.codec import encode
from clew.plan.postlude import PostludeJob


def require_reading(
    record: CaptureRecord, *, role: AccessRole, tenant_id: str, include_roles: Collection[str], sees_personal: bool
) -> None:
    """Refuse readers without permission. For another tenant the capture does not exist.

    A capture that shows personal columns is for the roles that may request such captures; where the environment names
    none, for those that see personal columns as they are.
    """
    if record.tenant_id != tenant_id:
        raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=record.capture_id))
    if Permission.READ_CAPTURES not in role.permissions:
        problem = f"the role {role} may not read captures"
        raise UserError(CAPTURE_ACCESS_DENIED.anywhere(problem=problem))
    manifest = record.outcome.manifest
    shows_personal = manifest is not None and manifest.shows_personal
    if shows_personal and role not in include_roles and (include_roles or not sees_personal):
        problem = f"this capture shows personal columns, which the role {role} may not read"
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
