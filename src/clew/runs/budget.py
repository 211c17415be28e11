"""Writes of a run's driver under a latency budget.

An event that only says that something began may wait in the worker when the store is slow, and goes in front of the
next write. An event that says how something ended must be stored in time, or the step did not end that way. Should the
worker die while an event waits, nothing is lost: the step has no outcome, so it is started again under the same key.
"""

import time
from collections.abc import Callable, Sequence

from clew.diagnostics import TransientFailure
from clew.events.envelope import NewEvent, StoredEvent
from clew.runs.alerts import Alert, RaisedAlert
from clew.runs.clock import Clock, utc_now
from clew.runs.deadline import within
from clew.runs.leases import Lease, WriteBudgetExceeded
from clew.runs.limits import StoreLimits
from clew.runs.secrets import Redactor
from clew.runs.stores import EventWriter

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


class BudgetedWriter:
    """Appends for the holder of one lease. Not for several threads."""

    def __init__(
        self,
        writer: EventWriter,
        lease: Lease,
        *,
        limits: StoreLimits,
        redactor: Redactor,
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._writer = writer
        self._lease = lease
        self._limits = limits
        self._redactor = redactor
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._waiting: tuple[NewEvent, ...] = ()

    @property
    def waiting(self) -> tuple[NewEvent, ...]:
        """The local outbox: events that could not be stored in time and go with the next write."""
        return self._waiting

    def append(self, events: Sequence[NewEvent], *, expected_seq: int | None = None) -> tuple[StoredEvent, ...]:
        """Store events behind those that wait, and return all that were stored: none, if these now wait too.

        `WriteBudgetExceeded` where an event that must not wait could not be stored in time; `TransientFailure` where
        the store stayed away for longer than the budget allows.
        """
        clean = tuple(self._redactor.event(event) for event in events)
        started = self._monotonic()
        pause = _FIRST_PAUSE_S
        while True:
            try:
                with within(self._deadline_s(clean) - (self._monotonic() - started)):
                    stored = self._writer.append(
                        self._lease.run_id,
                        (*self._waiting, *clean),
                        token=self._lease.token,
                        expected_seq=expected_seq,
                    )
            except TransientFailure as failure:
                elapsed = self._monotonic() - started
                if elapsed >= self._deadline_s(clean):
                    return self._give_up(clean, failure)
                self._sleep(pause)
                pause = min(_LONGEST_PAUSE_S, 2 * pause)
            else:
                self._waiting = ()
                if self._monotonic() - started > self._budget_s:
                    self._note_breach(clean)
                return stored

    @property
    def _budget_s(self) -> float:
        return self._limits.write_latency_budget_ms / 1000

    def _deadline_s(self, events: Sequence[NewEvent]) -> float:
        in_time = self._limits.fail_open_for | self._limits.never_fail_open
        if any(event.event_type in in_time for event in events):
            return self._budget_s
        return self._limits.outage_patience_s

    def _give_up(self, events: tuple[NewEvent, ...], failure: TransientFailure) -> tuple[StoredEvent, ...]:
        critical = [event for event in events if event.event_type in self._limits.never_fail_open]
        if critical:
            self._note_breach(events)
            raise WriteBudgetExceeded(event_type=critical[0].event_type, budget_ms=self._limits.write_latency_budget_ms)
        if all(event.event_type in self._limits.fail_open_for for event in events):
            self._waiting = (*self._waiting, *events)
            self._note_breach(events)
            return ()
        raise failure

    def _note_breach(self, events: Sequence[NewEvent]) -> None:
        """Have the next write that succeeds record that this one did not, or not in time."""
        event = events[0]
        alert = RaisedAlert(
            alert=Alert.WRITE_BUDGET_EXCEEDED,
            message=f"{event.event_type} took longer than {self._limits.write_latency_budget_ms} ms to store",
            scope=f"{event.event_type}:{event.step_id}",
            occasion=event.logical_attempt_id,
            details={"event_type": event.event_type, "step_id": event.step_id},
        )
        self._waiting = (*self._waiting, alert.event(self._clock))
