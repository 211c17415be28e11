"""Events in lines."""

from typing import assert_never

from clew.cli.moments import local_time
from clew.cli.views.page import plain
from clew.cli.views.run_steps import destination
from clew.runs.events.bodies import (
    AlertRaised,
    EventBody,
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunQueued,
    RunRejected,
    RunResumed,
    RunRetried,
    RunStarted,
    SignalAccepted,
    SignalRejected,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepStarted,
)
from clew.runs.events.envelope import StoredEvent

_OF_STEPS = (StepStarted, StepCompleted, StepFailed, StepSkipped)


def event_line(event: StoredEvent) -> str:
    """Number, time, type, step and what it says."""
    step = event.step_id if isinstance(event.body, _OF_STEPS) else ""
    attempt = f" (attempt {event.logical_attempt_id})" if step and event.logical_attempt_id > 1 else ""
    said = plain(f"{_said(event.body)}{attempt}").plain
    return f"{event.run_seq:>4}  {local_time(event.emitted_at)}  {event.event_type:<14}  {step:<5} {said}".rstrip()


def _said(body: EventBody) -> str:
    match body:
        case RunQueued():
            by = f" by {body.requested_by}" if body.requested_by else ""
            return f"{body.project_id} for {body.period}{by}"
        case RunRejected():
            return f"{body.reason}; again in {body.retry_after_s} s"
        case RunApproved():
            return f"by {body.approved_by}"
        case RunStarted():
            return f"{len(body.steps)} steps"
        case StepStarted():
            return body.name
        case StepCompleted():
            counts = ", ".join(f"{name} {number:,}" for name, number in body.counts.items() if number)
            where = destination(body.artifacts)
            return " -> ".join(part for part in (counts, where) if part)
        case StepFailed() | RunFailed():
            return f"{body.error.code}: {body.error.message}"
        case StepSkipped():
            return body.reason
        case SignalAccepted():
            about = f" step {body.step_id}" if body.step_id else ""
            why = f": {body.reason}" if body.reason else ""
            return f"{body.signal}{about} by {body.actor} ({body.role}){why}"
        case SignalRejected():
            return f"{body.signal} by {body.actor}: {body.refusal}, {body.detail}"
        case RunResumed():
            return f"with another attempt at step {body.retried_step_id}" if body.retried_step_id else ""
        case RunCancelled():
            return body.reason or ""
        case RunRetried():
            return f"as run {body.new_run_id}"
        case RunContinued():
            return f"segment {body.counters.segments}"
        case AlertRaised():
            return f"{body.alert}: {body.message}"
        case RunPaused() | RunCompleted():
            return ""
        case _:
            assert_never(body)
