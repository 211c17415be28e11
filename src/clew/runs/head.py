"""The few facts about a run that the store keeps current in the same transaction as its events.

They answer, without reading a history, whether a run wants a worker and whether it occupies its project and period.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.runs import EVENT_AFTER_THE_END
from clew.runs.events.bodies import (
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunQueued,
    RunRejected,
    RunResumed,
    RunStarted,
    SignalAccepted,
)
from clew.runs.events.envelope import NewEvent
from clew.runs.status import RunStatus

FREE_EVENT_TYPES = frozenset({"SignalAccepted", "SignalRejected", "AlertRaised"})
"""What anybody may append to a run. Everything else changes its state, and needs the lease's fencing token."""

_AFTER_THE_END = {
    RunStatus.COMPLETED: frozenset({"RunRetried"}),
    RunStatus.CANCELLED: frozenset({"RunRetried"}),
    RunStatus.FAILED: frozenset({"RunRetried", "RunQueued", "RunResumed", "StepSkipped"}),
}
"""What may still happen to a run that has ended."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a run stands, as far as the queue has to know."""

    status: RunStatus = RunStatus.PENDING
    approval_pending: bool = False
    has_signal: bool = False
    """Whether a signal was accepted that no holder of the lease may have seen yet."""
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def wants_worker(self) -> bool:
        """Whether somebody should take the run."""
        if self.has_signal:
            return True
        if self.status is RunStatus.PENDING:
            return not self.approval_pending
        return self.status in {RunStatus.APPROVED, RunStatus.RUNNING}


def head_after(head: Head, events: Iterable[NewEvent]) -> Head:
    """The head once these events are stored. A run that has ended takes no more of them, except to be reopened."""
    for event in events:
        _refuse_after_the_end(head, event)
        match event.body:
            case RunQueued(approval_required=required):
                head = Head(RunStatus.PENDING, approval_pending=required)
            case RunApproved():
                head = replace(head, status=RunStatus.APPROVED, approval_pending=False)
            case RunStarted():
                head = replace(head, status=RunStatus.RUNNING, started_at=event.emitted_at)
            case RunResumed():
                head = replace(head, status=RunStatus.RUNNING, completed_at=None)
            case RunContinued():
                head = replace(head, status=RunStatus.RUNNING)
            case RunPaused():
                head = replace(head, status=RunStatus.PAUSED)
            case RunCompleted():
                head = replace(head, status=RunStatus.COMPLETED, completed_at=event.emitted_at)
            case RunFailed() | RunRejected():
                head = replace(head, status=RunStatus.FAILED, completed_at=event.emitted_at)
            case RunCancelled():
                head = replace(head, status=RunStatus.CANCELLED, completed_at=event.emitted_at)
            case SignalAccepted():
                head = replace(head, has_signal=True)
            case _:
                pass
    return head


def _refuse_after_the_end(head: Head, event: NewEvent) -> None:
    allowed = FREE_EVENT_TYPES | _AFTER_THE_END.get(head.status, frozenset())
    if head.status.is_terminal and event.event_type not in allowed:
        raise EngineBug(EVENT_AFTER_THE_END.anywhere(event_type=event.event_type, status=head.status))
