"""From events to snapshots: the reduction that says what each event means. Pure.

Events are applied in the order of `run_seq`. At a gap the projection halts: what comes after it waits until the gap
closes, since no later event can be understood without the one that is missing.

The few facts about a run that the store keeps current in the same transaction as its events.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.runs import EVENT_AFTER_THE_END
from clew.events.bodies import (
    AlertRaised,
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunQueued,
    RunRejected,
    RunResumed,
    RunRetried,
    RunStarted,
    SignalAccepted,
    SignalRejected,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepStarted,
)
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.snapshot import PendingSignal, RunSnapshot, RunStatus, StepSnapshot, StepStatus
from clew.events.values import Failure, FailureCategory

_OUTLIVES_THE_RUN = "RETRY_RUN"
"""The one signal that has an effect on a run that has ended."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that are missing: from the one that was expected to the one before the first that is there."""

    expected_seq: int
    found_seq: int


@dataclass(frozen=True, slots=True)
class ProjectionProgress:
    """How far a projection came."""

    snapshot: RunSnapshot
    waiting: tuple[StoredEvent, ...] = ()
    """Events behind a gap, to be given again with the missing ones."""
    gap: Gap | None = None


def project_run(run_id: str, events: Iterable[StoredEvent]) -> RunSnapshot:
    """The snapshot of a whole history, or of one from its last RunContinued on, up to its first gap."""
    return advance(RunSnapshot(run_id), events).snapshot


def incremental_project(snapshot: RunSnapshot, new_events: Iterable[StoredEvent]) -> RunSnapshot:
    """A newer snapshot. Events that the snapshot knows already change nothing."""
    return advance(snapshot, new_events).snapshot


def detect_gap(last_seq: int, next_seq: int) -> Gap | None:
    """Whether something is missing between two events."""
    return Gap(last_seq + 1, next_seq) if next_seq > last_seq + 1 else None


def advance(snapshot: RunSnapshot, events: Iterable[StoredEvent]) -> ProjectionProgress:
    """Apply events in order, whatever order and however often they come, and halt at a gap."""
    ordered = sorted({event.run_seq: event for event in events}.values(), key=lambda event: event.run_seq)
    reduction = _Reduction(snapshot)
    if snapshot.last_event_seq == 0 and ordered and isinstance(ordered[0].body, RunContinued):
        reduction.last_seq = ordered[0].run_seq - 1
    for index, event in enumerate(ordered):
        if event.run_seq <= reduction.last_seq:
            continue
        gap = detect_gap(reduction.last_seq, event.run_seq)
        if gap is not None:
            return ProjectionProgress(reduction.result(), tuple(ordered[index:]), gap)
        reduction.apply(event)
    return ProjectionProgress(reduction.result())


class _Reduction:
    """A snapshot taken apart while events are applied: one new snapshot per projection, not one per event."""

    def __init__(self, snapshot: RunSnapshot) -> None:
        self.snapshot = snapshot
        self.last_seq = snapshot.last_event_seq
        self.steps = {step.step_id: step for step in snapshot.steps}
        self.artifacts = list(snapshot.artifacts)
        self.pending = {signal.signal_id: signal for signal in snapshot.pending_signals}
        self.counters = snapshot.counters
        self.last_completed = snapshot.last_completed_step

    def result(self) -> RunSnapshot:
        return replace(
            self.snapshot,
            last_event_seq=self.last_seq,
            steps=tuple(self.steps.values()),
            artifacts=tuple(self.artifacts),
            pending_signals=tuple(self.pending.values()),
            counters=self.counters,
            last_completed_step=self.last_completed,
        )

    def apply(self, event: StoredEvent) -> None:
        self.last_seq = event.run_seq
        if event.caused_by_signal_id in self.pending:
            self._settle(event.caused_by_signal_id)
        match event.body:
            case StepStarted() | StepCompleted() | StepFailed() | StepSkipped():
                self._apply_to_step(event, event.body)
            case SignalAccepted() as body:
                self.pending[body.signal_id] = PendingSignal(
                    body.signal_id, body.signal, body.actor, body.step_id, body.reason
                )
            case SignalRejected() | AlertRaised() | RunRetried():
                pass
            case _:
                self._apply_to_run(event, event.body)

    def _settle(self, signal_id: str) -> None:
        """A signal has taken effect. Signals take effect in order, so those before it had none and will have none."""
        ids = list(self.pending)
        settled = set(ids[: ids.index(signal_id) + 1])
        self.pending = {
            key: signal
            for key, signal in self.pending.items()
            if key not in settled or (signal.signal == _OUTLIVES_THE_RUN and key != signal_id)
        }

    def _apply_to_step(self, event: StoredEvent, body: StepStarted | StepCompleted | StepFailed | StepSkipped) -> None:
        step = self.steps.get(event.step_id) or StepSnapshot(event.step_id)
        counters = self.counters
        match body:
            case StepStarted():
                step = StepSnapshot(
                    step_id=event.step_id,
                    seq=body.seq,
                    name=body.name,
                    type=step.type,
                    status=StepStatus.RUNNING,
                    logical_attempt_id=event.logical_attempt_id,
                    engine_attempt_id=event.engine_attempt_id,
                    started_at=event.emitted_at,
                )
            case StepCompleted():
                step = replace(
                    _ended(step, event, StepStatus.SUCCESS), artifacts=body.artifacts, counts=dict(body.counts)
                )
                self.artifacts.extend(body.artifacts)
                self.counters = replace(counters, steps_succeeded=counters.steps_succeeded + 1)
                self.last_completed = event.step_id
            case StepFailed():
                step = replace(_ended(step, event, StepStatus.FAILED), error=body.error)
                self.counters = replace(counters, steps_failed=counters.steps_failed + 1)
            case StepSkipped():
                step = replace(_ended(step, event, StepStatus.SKIPPED), skip_reason=body.reason, error=None)
                self.counters = replace(counters, steps_skipped=counters.steps_skipped + 1)
            case _:
                assert_never(body)
        self.steps[event.step_id] = step

    def _apply_to_run(
        self,
        event: StoredEvent,
        body: RunQueued
        | RunRejected
        | RunApproved
        | RunStarted
        | RunPaused
        | RunResumed
        | RunCompleted
        | RunFailed
        | RunCancelled
        | RunContinued,
    ) -> None:
        match body:
            case RunQueued():
                self._queued(body)
            case RunRejected():
                error = Failure("Overloaded", body.reason, FailureCategory.TRANSIENT, retryable=True)
                self._end(event, RunStatus.FAILED, error=error)
            case RunApproved():
                self.snapshot = replace(self.snapshot, status=RunStatus.APPROVED)
            case RunStarted():
                self._started(event, body)
            case RunPaused():
                self.snapshot = replace(self.snapshot, status=RunStatus.PAUSED)
            case RunResumed():
                self._resumed(body)
            case RunCompleted():
                self._end(event, RunStatus.COMPLETED)
            case RunFailed():
                self._end(event, RunStatus.FAILED, error=body.error, failed_step=body.failed_step_id)
            case RunCancelled():
                self._end(event, RunStatus.CANCELLED)
            case RunContinued():
                self._continued(body)
            case _:
                assert_never(body)

    def _queued(self, body: RunQueued) -> None:
        self.snapshot = replace(
            self.snapshot,
            status=RunStatus.PENDING,
            project=body.project_id,
            project_version=body.project_version,
            period=body.period,
            plan=body.plan,
            retry_of=body.retry_of,
            error=None,
            completed_at=None,
        )

    def _started(self, event: StoredEvent, body: RunStarted) -> None:
        for step in body.steps:
            self.steps.setdefault(step.step_id, StepSnapshot(step.step_id, step.seq, step.name, step.type))
        self.snapshot = replace(
            self.snapshot,
            status=RunStatus.RUNNING,
            started_at=event.emitted_at,
            engine_run_ref=event.raw.engine_run_ref,
        )

    def _resumed(self, body: RunResumed) -> None:
        step = self.steps.get(body.retried_step_id) if body.retried_step_id is not None else None
        if step is not None:
            self.steps[step.step_id] = StepSnapshot(
                step.step_id, step.seq, step.name, step.type, logical_attempt_id=step.logical_attempt_id + 1
            )
        self.counters = replace(self.counters, resumes=self.counters.resumes + 1)
        self.snapshot = replace(
            self.snapshot,
            status=RunStatus.RUNNING,
            completed_at=None,
            total_duration_ms=None,
            error=None,
            failed_step=None,
        )

    def _continued(self, body: RunContinued) -> None:
        self.artifacts = list(body.artifacts)
        self.counters = body.counters
        self.snapshot = replace(
            self.snapshot,
            status=RunStatus.RUNNING,
            plan=body.plan,
            cursor=body.cursor,
            started_at=body.started_at,
        )

    def _end(
        self, event: StoredEvent, status: RunStatus, *, error: Failure | None = None, failed_step: str | None = None
    ) -> None:
        for step in self.steps.values():
            if step.status is StepStatus.RUNNING:
                self.steps[step.step_id] = replace(step, status=StepStatus.PENDING)
        started = self.snapshot.started_at
        self.pending = {key: signal for key, signal in self.pending.items() if signal.signal == _OUTLIVES_THE_RUN}
        self.snapshot = replace(
            self.snapshot,
            status=status,
            completed_at=event.emitted_at,
            total_duration_ms=_milliseconds(started, event.emitted_at) if started is not None else None,
            error=error,
            failed_step=failed_step,
        )


def _ended(step: StepSnapshot, event: StoredEvent, status: StepStatus) -> StepSnapshot:
    return replace(
        step,
        status=status,
        logical_attempt_id=event.logical_attempt_id,
        engine_attempt_id=event.engine_attempt_id if event.engine_attempt_id is not None else step.engine_attempt_id,
        completed_at=event.emitted_at,
    )


def _milliseconds(start: datetime, end: datetime) -> int:
    return (end - start) // timedelta(milliseconds=1)


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
