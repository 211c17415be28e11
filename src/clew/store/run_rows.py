"""Rows of the tables as values of `clew.runs`, and back."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.events.envelope import RawEvent
from clew.events.reducer import Head
from clew.events.snapshot import RunStatus
from clew.runs.request import RunRecord, RunRequest
from clew.store.reading import EVENT_FIELDS, RUN_FIELDS, record_of
from clew.store.schema import run_events, runs

EVENT_COLUMNS = tuple(run_events.c[name] for name in EVENT_FIELDS)
RUN_COLUMNS = tuple(runs.c[name] for name in RUN_FIELDS)


def raw_event(row: Sequence[Any]) -> RawEvent:
    """An event. The columns have the names of the fields."""
    return RawEvent(**dict(zip(EVENT_FIELDS, row, strict=True)))


def event_values(event: RawEvent) -> dict[str, object]:
    """What to insert for an event."""
    return {name: getattr(event, name) for name in EVENT_FIELDS}


def run_record(row: sa.Row[Any]) -> RunRecord:
    """A run. The row may hold more columns."""
    return record_of({name: getattr(row, name) for name in RUN_FIELDS})


def new_run_values(
    request: RunRequest, *, run_id: str, now: datetime, not_before: datetime | None
) -> dict[str, object]:
    """What to insert for a run that has no events yet."""
    return {
        "run_id": run_id,
        "tenant_id": request.tenant_id,
        "project_id": request.project_id,
        "environment_id": request.environment_id,
        "plan_id": request.plan.plan_id,
        "plan_version": request.plan.plan_version,
        "plan_digest": request.plan.digest,
        "request_id": request.request_id,
        "request_key": request.key,
        "period": request.period,
        "project_version": request.project_version,
        "requested_by": request.requested_by,
        "retry_of": request.retry_of,
        "parameters": dict(request.parameters),
        "created_at": now,
        "not_before": not_before if not_before is not None else now,
        "slot": slot_of(request),
        **head_values(Head()),
        **dict.fromkeys(("last_seq", "last_signal_seq", "seen_signal_seq", "projected_seq", "token"), 0),
    }


def slot_of(request: RunRequest) -> str:
    """What no two runs in progress may share: the project in its environment, and the period."""
    parts = (request.tenant_id, request.environment_id, request.project_id, request.period)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def head_of(row: Any) -> Head:  # noqa: ANN401 - a row of runs, or a part of one
    """The head of a run."""
    return Head(
        status=RunStatus(row.status),
        approval_pending=bool(row.approval_pending),
        has_signal=row.last_signal_seq > row.seen_signal_seq,
        started_at=row.started_at,
        completed_at=row.completed_at,
    )


def head_values(head: Head) -> dict[str, object]:
    """What to write for a head."""
    return {
        "status": head.status.value,
        "approval_pending": int(head.approval_pending),
        "wants_worker": int(head.wants_worker),
        "started_at": head.started_at,
        "completed_at": head.completed_at,
    }
