"""Events in lines."""

from clew.cli.moments import local_time
from clew.cli.views.page import plain
from clew.cli.views.run_steps import destination
from clew.runs.events.bodies import StepCompleted
from clew.runs.events.envelope import StoredEvent
from clew.runs.events.sentences import OF_STEPS, sentence


def event_line(event: StoredEvent) -> str:
    """Number, time, type, step and what it says."""
    step = event.step_id if isinstance(event.body, OF_STEPS) else ""
    attempt = f" (attempt {event.logical_attempt_id})" if step and event.logical_attempt_id > 1 else ""
    said = plain(f"{_said(event)}{attempt}").plain
    return f"{event.run_seq:>4}  {local_time(event.emitted_at)}  {event.event_type:<14}  {step:<5} {said}".rstrip()


def _said(event: StoredEvent) -> str:
    where = destination(event.body.artifacts) if isinstance(event.body, StepCompleted) else None
    return " -> ".join(part for part in (sentence(event.body), where) if part)
