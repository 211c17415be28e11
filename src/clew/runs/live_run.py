"""A run in the hands of its driver: the snapshot it acts on and the only way it writes."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from clew.diagnostics import TransientFailure
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.reducer import incremental_project
from clew.events.snapshot import RunSnapshot
from clew.events.values import PlannedStep
from clew.runs.budget import BudgetedWriter
from clew.runs.leases import Claim
from clew.runs.rotation import SegmentSize, with_all_steps
from clew.runs.stores import EventReader

T = TypeVar("T")

_PAUSE_S = 0.2


class LiveRun:
    """Holds a lease. Used by one thread."""

    def __init__(
        self,
        claim: Claim,
        reader: EventReader,
        writer: BudgetedWriter,
        *,
        patience_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.run = claim.run
        self.lease = claim.lease
        self.snapshot = RunSnapshot(claim.run.run_id)
        self.segment = SegmentSize()
        self._reader = reader
        self._writer = writer
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._sleep = sleep

    def load(self) -> None:
        """Start from the last continuation, which has all that going on needs."""
        self._apply(self._reader.since_last_continuation(self.run.run_id))

    def start_from(self, snapshot: RunSnapshot) -> None:
        """Start from a snapshot that somebody has projected."""
        self.snapshot = snapshot

    def know_steps(self, steps: Sequence[PlannedStep]) -> None:
        """Learn the steps that the part of the history that was read does not name."""
        self.snapshot = with_all_steps(self.snapshot, steps)

    def refresh(self) -> None:
        """Take notice of what others have written: signals, alerts."""
        self._apply(self._reader.events(self.run.run_id, after=self.snapshot.last_event_seq))

    def record(self, *events: NewEvent, expected_seq: int | None = None) -> tuple[StoredEvent, ...]:
        """Write events; how they were stored, or nothing where they wait for the next write."""
        stored = self._writer.append(events, expected_seq=expected_seq)
        fresh = [event for event in stored if event.run_seq > self.snapshot.last_event_seq]
        if fresh and fresh[-1].run_seq == self.snapshot.last_event_seq + len(fresh):
            self._apply(fresh)
        elif fresh:
            self.refresh()
        return stored[-len(events) :]

    def patiently(self, action: Callable[[], T]) -> T:
        """Do something again while the store is away, but not for ever."""
        deadline = self._monotonic() + self._patience_s
        while True:
            try:
                return action()
            except TransientFailure:
                if self._monotonic() >= deadline:
                    raise
                self._sleep(_PAUSE_S)

    def _apply(self, events: Sequence[StoredEvent]) -> None:
        self.segment = self.segment.after(events)
        self.snapshot = incremental_project(self.snapshot, events)
