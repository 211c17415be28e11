"""The events of a run in lines."""

from dataclasses import dataclass

from clew.runs.events.envelope import StoredEvent
from clew.runs.events.sentences import OF_STEPS, sentence
from clew.server.pages import words


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event of the history."""

    run_seq: int
    moment: str
    event: str
    step: str
    said: str


def event_line(event: StoredEvent) -> EventLine:
    """Number, time, type, step and what it says."""
    step = event.step_id if isinstance(event.body, OF_STEPS) else ""
    attempt = f" (attempt {event.logical_attempt_id})" if step and event.logical_attempt_id > 1 else ""
    moment = words.second(event.emitted_at)
    return EventLine(event.run_seq, moment, event.event_type, step, f"{sentence(event.body)}{attempt}")
