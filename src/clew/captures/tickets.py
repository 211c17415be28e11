"""Tickets of points that a run passes: a point is frozen when the step that its breakpoint follows has committed.

So a run that is paused behind a breakpoint has the ticket already. What could not be frozen then, such as while the
state store did not answer, is frozen when the run is over.
"""

import logging
import time
from collections.abc import Sequence

from clew.captures.freezing import Ticket, freeze, is_reached
from clew.captures.queue import CaptureRecord, CaptureStatus, CaptureStore
from clew.deferred import dataclass
from clew.events.snapshot import RunSnapshot
from clew.plan.plan import Plan
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.storage.committed import committed_parts
from clew.storage.parts import Part
from clew.storage.plans import kept_plan

_log = logging.getLogger(__name__)


def timed_ticket(plan: Plan, record: CaptureRecord, snapshot: RunSnapshot, parts: Sequence[Part]) -> tuple[Ticket, int]:
    """The ticket of the point of a record, and how many microseconds it took."""
    started = time.perf_counter_ns()
    ticket = freeze(plan, record.breakpoint, record.seq, snapshot, parts)
    return ticket, (time.perf_counter_ns() - started) // 1000


@dataclass(frozen=True, slots=True)
class TicketOffice:
    """Freezes the points of runs that are under way."""

    environment: RunEnvironment
    store: CaptureStore

    def freeze_reached(self, run: RunRecord, snapshot: RunSnapshot) -> None:
        """Freeze what the run has reached. Whatever goes wrong must not touch the run."""
        try:
            self._freeze(run, snapshot)
        except Exception as error:  # noqa: BLE001 - the point is frozen at the end of the run instead
            _log.warning("run %s: a point is frozen later: %s", run.run_id, type(error).__name__)

    def _freeze(self, run: RunRecord, snapshot: RunSnapshot) -> None:
        waiting = [
            record
            for record in self.store.of_run(run.run_id)
            if record.status is CaptureStatus.QUEUED and record.frozen is None and is_reached(snapshot, record.seq)
        ]
        if not waiting:
            return
        root = self.environment.storage_root
        plan, parts = kept_plan(root, run.request.plan.digest or ""), committed_parts(root, snapshot)
        tickets = dict[int, tuple[Ticket, int]]()
        for record in waiting:
            if record.seq not in tickets:
                tickets[record.seq] = timed_ticket(plan, record, snapshot, parts)
            self.store.keep_ticket(record.capture_id, *tickets[record.seq])
