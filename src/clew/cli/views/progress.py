"""Progress of runs: a line for each step that has ended and, on terminals, a live line for running steps.

Also the output of a worker: runs taken over, steps done, runs ended.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from clew.captures.queue import CaptureRecord
from clew.cli.formatting import short
from clew.cli.output import bad, has_colours, say
from clew.cli.views.captures import job_name, what
from clew.cli.views.page import plain
from clew.cli.views.tables import StepLines, outcome
from clew.deferred import dataclass
from clew.events.bodies import (
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
from clew.events.envelope import StoredEvent
from clew.events.snapshot import StepSnapshot, StepStatus
from clew.events.values import LOAD_STEP, ArtifactRef


@dataclass(slots=True)
class RunProgress:
    """Turns events into lines."""

    lines: StepLines
    sources: Callable[[tuple[ArtifactRef, ...]], str]
    """Where the input was read from, according to the artifacts of the loading step."""
    under_way: dict[str, str] = field(default_factory=dict)
    """The running steps, with their names."""

    def take(self, event: StoredEvent) -> str | None:
        """The line for an event, if it has one."""
        step = event.step_id
        match event.body:
            case StepStarted():
                self.under_way[step] = self.lines.name(step)
                return None
            case StepCompleted(artifacts, counts):
                self.under_way.pop(step, None)
                if step == LOAD_STEP:
                    self.lines = StepLines(self.lines.plan, self.sources(artifacts))
                return self.lines.done(step, counts, artifacts)
            case StepSkipped(reason):
                self.under_way.pop(step, None)
                return self.lines.line(step, f"skipped: {plain(reason)}")
            case StepFailed():
                self.under_way.clear()
                return self.lines.line(step, bad("failed"))
            case RunPaused():
                return "paused"
            case RunCancelled(reason):
                self.under_way.clear()
                return f"cancelled: {plain(reason)}" if reason else "cancelled"
            case AlertRaised(alert, _severity, message):
                return f"alert {alert}: {plain(message)}"
            case _:
                return None


class PlainWatch:
    """For pipes and files: prints one line after another."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clear."""

    def take(self, event: StoredEvent) -> None:
        """Show an event."""
        line = self._progress.take(event)
        if line is not None:
            say(line)

    def tell(self, line: str) -> None:
        """Show a line between the lines of the steps."""
        say(line)


class LiveWatch:
    """For terminals: prints lines, with a live line below them until the run has ended."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress
        console = Console(force_terminal=True, no_color=not has_colours(sys.stdout), highlight=False, markup=False)
        self._bar = Progress(
            TextColumn("  "),
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("starting Spark", total=len(self._progress.lines.plan.steps) + 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def take(self, event: StoredEvent) -> None:
        """Show an event."""
        line = self._progress.take(event)
        if line is not None:
            self.tell(line)
        if self._task is None:
            return
        if isinstance(event.body, RunStarted | StepStarted):
            self._bar.update(self._task, description=self._present())
        elif isinstance(event.body, StepCompleted | StepSkipped):
            self._bar.update(self._task, advance=1, description=self._present())

    def tell(self, line: str) -> None:
        """Show a line above the live line."""
        self._bar.console.print(line, soft_wrap=True)

    def _present(self) -> str:
        if not self._progress.under_way:
            return "running"
        (first, name), *others = self._progress.under_way.items()
        more = f" and {len(others)} more" if others else ""
        return f"{first} {name}{more}"


def watch_for_output(progress: RunProgress) -> PlainWatch | LiveWatch:
    """The watch that suits standard output."""
    return LiveWatch(progress) if sys.stdout.isatty() else PlainWatch(progress)


_ENDS = {RunCompleted: "completed", RunPaused: "paused", RunCancelled: "cancelled", RunFailed: "failed"}


@dataclass(slots=True)
class WorkerLines:
    """Turns the events of a worker into lines. Called from the threads of its runs."""

    say: Callable[[str], None]
    steps_of: Callable[[str], Sequence[StepSnapshot]] = lambda _run_id: ()
    """The steps of a run so far, for a run that another worker began."""
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
            if is_first and not isinstance(event.body, RunStarted):
                self._take_over(event.run_id)
            line = self._line(event, is_first=is_first)
            if line is not None and (is_new or is_first):
                self.say(f"run {short(event.run_id)}: {line}")

    def done(self, record: CaptureRecord) -> None:
        """Show a capture or a postlude job that is done."""
        named = f"job {job_name(record)}" if record.kind == "job" else f"capture {record.capture_id}"
        with self._lock:
            self.say(f"run {short(record.run_id)}: {named} {what(record)}")

    def ended_as_json(self) -> list[dict[str, object]]:
        """The runs that the worker executed, with how they ended."""
        return [{"run_id": run_id, "ended": self._ended.get(run_id)} for run_id in self._seen]

    def _take_over(self, run_id: str) -> None:
        """Show what the steps did that other workers have done."""
        for step in self.steps_of(run_id):
            self._types[run_id, step.step_id] = step.type
            if step.status is StepStatus.SUCCESS:
                done = outcome(step.type, step.counts, step.artifacts).strip()
                self.say(f"run {short(run_id)}: step {step.step_id}: {done} (done before)")
            elif step.status is StepStatus.SKIPPED:
                self.say(f"run {short(run_id)}: step {step.step_id}: skipped (done before)")

    def _line(self, event: StoredEvent, *, is_first: bool) -> str | None:
        match event.body:
            case RunStarted(steps):
                self._types |= {(event.run_id, step.step_id): step.type for step in steps}
                return f"started, {len(steps)} steps"
            case StepStarted() if is_first:
                return f"taken over at step {event.step_id}"
            case StepCompleted(artifacts, counts):
                assumed = LOAD_STEP if event.step_id == LOAD_STEP else "output"
                type_ = self._types.get((event.run_id, event.step_id)) or assumed
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
