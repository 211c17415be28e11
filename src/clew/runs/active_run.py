"""A run in the hands of its driver: the snapshot it acts on, the only way it writes, its lease and its heartbeat.

The heartbeat keeps the lease alive while steps run, and hears the signals that cannot wait for the end of a step.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TypeVar

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.events.bodies import SignalAccepted
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.reducer import incremental_project
from clew.events.snapshot import RunSnapshot
from clew.events.values import PlannedStep
from clew.runs.budget import BudgetedWriter
from clew.runs.executor import CancelToken, Interruption, StepContext, StepExecutor
from clew.runs.leases import Claim, LateWrite, Lease
from clew.runs.limits import LeasePolicy
from clew.runs.rotation import SegmentSize, with_all_steps
from clew.runs.secrets import StepSecrets
from clew.runs.signals import SignalType
from clew.runs.stores import EventReader, LeaseStore

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
        check_lease: Callable[[Lease], None],
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.run = claim.run
        self.lease = claim.lease
        self.check_lease = check_lease
        self.snapshot = RunSnapshot(claim.run.run_id)
        self.segment = SegmentSize()
        self._reader = reader
        self._writer = writer
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._sleep = sleep

    def load(self) -> None:
        """Start from the last continuation, which has everything needed to continue."""
        self._apply(self._reader.since_last_continuation(self.run.run_id))

    def start_from(self, snapshot: RunSnapshot) -> None:
        """Start from a projected snapshot."""
        self.snapshot = snapshot

    def know_steps(self, steps: Sequence[PlannedStep]) -> None:
        """Learn the steps that the part of the history that was read does not name."""
        self.snapshot = with_all_steps(self.snapshot, steps)

    def refresh(self) -> None:
        """Read what others have written: signals, alerts."""
        self._apply(self._reader.events(self.run.run_id, after=self.snapshot.last_event_seq))

    def record(self, *events: NewEvent, expected_seq: int | None = None) -> tuple[StoredEvent, ...]:
        """Write events. Returns them as stored; empty if they wait for the next write."""
        stored = self._writer.append(events, expected_seq=expected_seq)
        fresh = [event for event in stored if event.run_seq > self.snapshot.last_event_seq]
        if fresh and fresh[-1].run_seq == self.snapshot.last_event_seq + len(fresh):
            self._apply(fresh)
        elif fresh:
            self.refresh()
        return stored[-len(events) :]

    def patiently(self, action: Callable[[], T]) -> T:
        """Retry while the store is unavailable, up to a limit."""
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


@dataclass(frozen=True, slots=True, eq=False)
class ActiveRun:
    """One run, its executor and its cancel token. No two of them are the same, whatever they hold."""

    live: LiveRun
    executor: StepExecutor
    secrets: StepSecrets
    cancel: CancelToken = field(default_factory=CancelToken)
    history: Callable[[], RunSnapshot] | None = None
    """Reads the state of the run with all its steps."""

    def context(self) -> StepContext:
        """What the next steps may use."""
        live = self.live
        return StepContext(
            live.run, live.snapshot, self.cancel, self.secrets, live.lease, live.check_lease, self.history
        )


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    lease: Lease
    cancel: CancelToken
    seen_seq: int


class Heartbeat:
    """One for all runs of a process; call `run` in a separate thread."""

    def __init__(self, leases: LeaseStore, reader: EventReader, policy: LeasePolicy) -> None:
        self._leases = leases
        self._reader = reader
        self._policy = policy
        self._lock = threading.Lock()
        self._watched: dict[ActiveRun, _Watched] = {}

    @contextmanager
    def watching(self, active: ActiveRun) -> Iterator[None]:
        """Keep the lease of a run while it is driven."""
        # By the driving, not by the run: a worker that was frozen may take its own run again while it still drives it.
        with self._lock:
            self._watched[active] = _Watched(active.live.lease, active.cancel, active.live.snapshot.last_event_seq)
        try:
            yield
        finally:
            with self._lock:
                del self._watched[active]

    def run(self, stop: threading.Event) -> None:
        """Send heartbeats until told to stop."""
        while not stop.wait(self._policy.poll_s):
            self.beat()

    def beat(self) -> None:
        """Renew all leases once, and look for CANCEL. If the store is unavailable, the next beat tries again."""
        with self._lock:
            watched = list(self._watched.values())
        for one in watched:
            try:
                self._beat(one)
            except LateWrite:
                one.cancel.cancel(Interruption.LEASE_LOST)
            except TransientFailure as away:
                _log.debug("lease of run %s not prolonged: %s", one.lease.run_id, away)
            except ClewError:
                _log.exception("lease of run %s not prolonged", one.lease.run_id)

    def _beat(self, one: _Watched) -> None:
        news = self._leases.keep(one.lease, ttl_s=self._policy.ttl_s)
        if news.last_seq <= one.seen_seq:
            return
        events = self._reader.events(one.lease.run_id, after=one.seen_seq)
        one.seen_seq = max(one.seen_seq, news.last_seq)
        for event in events:
            if isinstance(event.body, SignalAccepted) and event.body.signal == SignalType.CANCEL:
                one.cancel.cancel(Interruption.CANCELLED)
