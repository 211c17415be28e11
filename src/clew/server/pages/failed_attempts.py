"""Attempts at steps that failed, and the times when a run waited for someone: the history beside the snapshot."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from clew.deferred import dataclass
from clew.events.bodies import RunFailed, RunPaused, StepFailed, StepStarted
from clew.events.envelope import StoredEvent


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at a step that has failed."""

    step_id: str
    number: int
    began: datetime
    ended: datetime
    problem: str


def failed_attempts(events: Sequence[StoredEvent]) -> Mapping[str, tuple[FailedAttempt, ...]]:
    """The failed attempts of each step, oldest first."""
    begun = dict[tuple[str, int], datetime]()
    found = dict[str, tuple[FailedAttempt, ...]]()
    for event in events:
        attempt = event.step_id, event.logical_attempt_id
        match event.body:
            case StepStarted():
                begun[attempt] = event.emitted_at
            case StepFailed() as failed:
                told = FailedAttempt(
                    *attempt, begun.get(attempt, event.emitted_at), event.emitted_at, failed.error.message
                )
                found[event.step_id] = (*found.get(event.step_id, ()), told)
            case _:
                pass
    return found


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as a run has worked: while it waited for someone after a failure or in a pause, the clock stood still."""

    start: datetime
    waits: tuple[tuple[datetime, datetime], ...]

    def at(self, moment: datetime) -> timedelta:
        """How long the run had worked."""
        gone = moment - self.start
        for began, ended in self.waits:
            if moment > began:
                gone -= min(moment, ended) - began
        return max(gone, timedelta())

    @property
    def waited(self) -> timedelta:
        """How long it has waited."""
        return sum((ended - began for began, ended in self.waits), timedelta())


def working_clock(start: datetime, events: Sequence[StoredEvent], now: datetime | None) -> Clock:
    """The clock of a run. `now` is given while it may still go on: if it is waiting, it has waited until then."""
    waits, since = list[tuple[datetime, datetime]](), None
    for event in events:
        match event.body:
            case RunFailed() | RunPaused():
                since = since or event.emitted_at
            case StepStarted() if since is not None:
                waits.append((since, max(since, event.emitted_at)))
                since = None
            case _:
                pass
    if since is not None and now is not None and now > since:
        waits.append((since, now))
    return Clock(start, tuple(waits))
