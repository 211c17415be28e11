"""What a worker does, in lines: runs taken, steps done, runs ended."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.cli.run_site import short
from clew.cli.views.capture_lines import job_name, what
from clew.cli.views.page import plain
from clew.cli.views.run_steps import LOAD, outcome
from clew.debug.records import CaptureRecord
from clew.runs.events.bodies import (
    AlertRaised,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepStarted,
)
from clew.runs.events.envelope import StoredEvent

_ENDS = {RunCompleted: "completed", RunPaused: "paused", RunCancelled: "cancelled", RunFailed: "failed"}


@dataclass(slots=True)
class WorkerLines:
    """Turns what a worker writes into lines. Called from the threads of its runs."""

    say: Callable[[str], None]
    _seen: dict[str, int] = field(default_factory=dict)
    _types: dict[tuple[str, str], str] = field(default_factory=dict)
    _ended: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: StoredEvent) -> None:
        """Show an event, once."""
        with self._lock:
            is_first = event.run_id not in self._seen
            is_new = event.run_seq > self._seen.get(event.run_id, 0)
            self._seen[event.run_id] = max(event.run_seq, self._seen.get(event.run_id, 0))
            line = self._line(event, is_first=is_first)
            if line is not None and (is_new or is_first):
                self.say(f"run {short(event.run_id)}: {line}")

    def done(self, record: CaptureRecord) -> None:
        """Show a capture or a postlude job that is done."""
        named = f"job {job_name(record)}" if record.kind == "job" else f"capture {record.capture_id}"
        with self._lock:
            self.say(f"run {short(record.run_id)}: {named} {what(record)}")

    def ended_as_json(self) -> list[dict[str, object]]:
        """The runs that were worked on, with what became of them."""
        return [{"run_id": run_id, "ended": self._ended.get(run_id)} for run_id in self._seen]

    def _line(self, event: StoredEvent, *, is_first: bool) -> str | None:
        match event.body:
            case RunStarted(steps):
                self._types |= {(event.run_id, step.step_id): step.type for step in steps}
                return f"started, {len(steps)} steps"
            case StepStarted() if is_first:
                return f"taken up at step {event.step_id}"
            case StepCompleted(artifacts, counts):
                type_ = self._types.get((event.run_id, event.step_id)) or (LOAD if event.step_id == LOAD else "output")
                return f"step {event.step_id}: {outcome(type_, counts, artifacts).strip()}"
            case StepSkipped(reason):
                return f"step {event.step_id}: skipped, {plain(reason)}"
            case StepFailed(error):
                return f"step {event.step_id}: {error.code}: {plain(error.message)}"
            case RunCompleted() | RunPaused() | RunCancelled() | RunFailed():
                self._ended[event.run_id] = _ENDS[type(event.body)]
                return self._ended[event.run_id]
            case AlertRaised(alert, _severity, message):
                return f"alert {alert}: {plain(message)}"
            case _:
                return None
