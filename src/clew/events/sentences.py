"""What events say, in the words that a terminal and a page show."""

from typing import assert_never

from clew.events.bodies import (
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
from clew.events.values import Reuse

OF_STEPS = (StepStarted, StepCompleted, StepFailed, StepSkipped)
"""The events that are about one step."""


def reuse_sentences(reuse: Reuse | None) -> list[str]:
    """What a step of a rerun took over, and why it did not take over all."""
    if reuse is None:
        return []
    taken = [f"taken over from run {reuse.run_id[:8]}"] if reuse.run_id is not None else []
    return [*taken, *([f"not taken over: {reuse.reason}"] if reuse.reason is not None else [])]


def sentence(body: EventBody) -> str:
    """What an event says beyond its type and its step; empty if that is all."""
    match body:
        case RunQueued():
            by = f" by {body.requested_by}" if body.requested_by else ""
            return f"{body.project_id} for {body.period}{by}"
        case RunRejected():
            return f"{body.reason}; again in {body.retry_after_s} s"
        case RunApproved():
            return f"by {body.approved_by}"
        case RunStarted():
            return "1 step" if len(body.steps) == 1 else f"{len(body.steps)} steps"
        case StepStarted():
            return body.name
        case StepCompleted():
            counts = ", ".join(f"{name} {number:,}" for name, number in body.counts.items() if number)
            return "; ".join(text for text in (counts, *reuse_sentences(body.reuse)) if text)
        case StepFailed() | RunFailed():
            return f"{body.error.code}: {body.error.message}"
        case StepSkipped():
            return body.reason
        case SignalAccepted() | SignalRejected():
            return _signal(body)
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


def _signal(body: SignalAccepted | SignalRejected) -> str:
    about = f" step {body.step_id}" if body.step_id else ""
    if isinstance(body, SignalRejected):
        return f"{body.signal}{about} by {body.actor} refused: {body.detail}"
    why = f": {body.reason}" if body.reason else ""
    return f"{body.signal}{about} by {body.actor} ({body.role}){why}"
