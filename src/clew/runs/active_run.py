"""A run that has been begun: what its driver, its heartbeat and its steps share.

Keeps leases alive while steps run, and hears the signals that cannot wait for the end of a step.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clew.diagnostics import ClewError, TransientFailure
from clew.events.bodies import SignalAccepted
from clew.runs.executor import CancelToken, Interruption, StepContext, StepExecutor
from clew.runs.leases import LateWrite, Lease
from clew.runs.limits import LeasePolicy
from clew.runs.live_run import LiveRun
from clew.runs.secrets import StepSecrets
from clew.runs.signals import SignalType
from clew.runs.stores import EventReader, LeaseStore


@dataclass(frozen=True, slots=True, eq=False)
class ActiveRun:
    """One run, its executor and its cancel token. No two of them are the same, whatever they hold."""

    live: LiveRun
    executor: StepExecutor
    secrets: StepSecrets
    cancel: CancelToken = field(default_factory=CancelToken)

    def context(self) -> StepContext:
        """What the next steps may use."""
        return StepContext(self.live.run, self.live.snapshot, self.cancel, self.secrets)


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    lease: Lease
    cancel: CancelToken
    seen_seq: int


class Heartbeat:
    """One for all runs of a process; `run` belongs into a thread of its own."""

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
        """Beat until told to stop."""
        while not stop.wait(self._policy.poll_s):
            self.beat()

    def beat(self) -> None:
        """Prolong all leases once, and look for CANCEL. A store that is away is tried again at the next beat."""
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
