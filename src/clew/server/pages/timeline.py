"""The steps of a run on a time axis."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from clew.deferred import dataclass
from clew.events.envelope import StoredEvent
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import LOAD_STEP
from clew.server.pages import words
from clew.server.pages.failed_attempts import Clock, FailedAttempt, failed_attempts, working_clock

AXIS = 1000
"""The length of the axis in units of the picture."""

_LEAST_BAR = 4
_SHORTEST_WAIT = timedelta(seconds=1)
_WORDS = {
    "loaded": "loaded",
    "rows_updated": "changed",
    "rows_created": "created",
    "rows_deleted": "deleted",
    "rows_written": "written",
}
_TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """When a step ran, in units of the axis."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An attempt that has failed before the one that the step shows."""

    number: int
    problem: str
    duration: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """A step on the axis."""

    step_id: str
    label: str
    """Its seq; "load" for the load step."""
    name: str
    type: str
    status: StepStatus
    outcome: str
    duration: str
    bar: Bar | None
    attempt: int
    rows_at: int | None
    """The step to show rows of; None if it has not committed."""
    is_output: bool
    """Whether its rows are those of an output, and not those that it changed."""
    earlier: tuple[EarlierAttempt, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All steps of a run."""

    steps: tuple[TimelineStep, ...]
    ticks: tuple[Tick, ...]
    worked: timedelta
    waited: str
    """How long the run waited for someone, which the axis leaves out; empty if it did not."""


def timeline(snapshot: RunSnapshot, now: datetime, events: Sequence[StoredEvent] = ()) -> Timeline:
    """The steps of a run. The axis ends when the run ended, or now; it leaves out when the run waited for someone."""
    start = snapshot.started_at or min((step.started_at for step in snapshot.steps if step.started_at), default=now)
    ends = [moment for step in snapshot.steps for moment in (step.started_at, step.completed_at) if moment]
    end = max([*ends, snapshot.completed_at or (now if not snapshot.status.is_terminal else start)], default=start)
    clock = working_clock(start, events, None if snapshot.status.is_terminal else now)
    axis = _Axis(clock, max(clock.at(end), timedelta(milliseconds=1)))
    failed = failed_attempts(events)
    return Timeline(
        steps=tuple(_step(step, axis, end, failed.get(step.step_id, ())) for step in snapshot.steps),
        ticks=_ticks(axis.span),
        worked=clock.at(end),
        waited=words.duration(clock.waited) if clock.waited >= _SHORTEST_WAIT else "",
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    clock: Clock
    span: timedelta

    def bar(self, began: datetime, ended: datetime) -> Bar:
        first, last = self.clock.at(began), self.clock.at(ended)
        offset = round(first / self.span * AXIS)
        length = max(_LEAST_BAR, round((last - first) / self.span * AXIS))
        return Bar(max(0, min(offset, AXIS - _LEAST_BAR)), min(length, AXIS))


def outcome_text(step: StepSnapshot) -> str:
    """What a step did, in numbers."""
    if step.skip_reason:
        return step.skip_reason
    if step.status is not StepStatus.SUCCESS:
        return ""
    done = [f"{number:,} {_WORDS[name]}" for name, number in step.counts.items() if number and name in _WORDS]
    return ", ".join(done) or ("nothing written" if step.type == "output" else "nothing changed")


def _step(step: StepSnapshot, axis: _Axis, now: datetime, failed: Sequence[FailedAttempt]) -> TimelineStep:
    began = step.started_at
    ended = step.completed_at or (now if step.status is StepStatus.RUNNING else began)
    took = ended - began if began and ended and step.status is not StepStatus.PENDING else None
    is_load = step.step_id == LOAD_STEP
    return TimelineStep(
        step_id=step.step_id,
        label=LOAD_STEP if is_load else str(step.seq),
        name=step.name,
        type=LOAD_STEP if is_load else step.type,
        status=step.status,
        outcome=outcome_text(step),
        duration=words.duration(took),
        bar=axis.bar(began, ended) if began and ended else None,
        attempt=step.logical_attempt_id,
        rows_at=(0 if is_load else step.seq) if step.status is StepStatus.SUCCESS else None,
        is_output=step.type == "output",
        earlier=tuple(
            EarlierAttempt(
                each.number, each.problem, words.duration(each.ended - each.began), axis.bar(each.began, each.ended)
            )
            for each in failed
            if each.number < step.logical_attempt_id
        ),
    )


def _ticks(span: timedelta) -> tuple[Tick, ...]:
    seconds = span.total_seconds()
    every = next((each for each in _TICKS_S if seconds / each <= _MOST_TICKS), None)
    if every is None or seconds < every:
        return ()
    return tuple(
        Tick(round(second / seconds * AXIS), _tick_text(second)) for second in range(every, int(seconds) + 1, every)
    )


def _tick_text(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds // 60}:{seconds % 60:02}"
    return f"{seconds // 3600} h" if seconds % 3600 == 0 else f"{seconds // 3600}:{seconds % 3600 // 60:02} h"
