"""Reduces events to the state of a run, by the table of meanings. Pure functions.

A snapshot is everything known about a run. Its events are applied in the order of `run_seq`; at a gap the projection
stops, since no later event can be understood without the missing one. The head is the few facts that the store keeps
current in the same transaction as the events.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from clew.deferred import dataclass
from clew.diagnostics import EngineBug
from clew.diagnostics.codes.runs import EVENT_AFTER_THE_END
from clew.events.bodies import RunContinued
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.meanings import Meaning, StepChange, meaning_of
from clew.events.snapshot import RunSnapshot, RunStatus, StepSnapshot, StepStatus

_OUTLIVES_THE_RUN = "RETRY_RUN"
"""The one signal that has an effect on a run that has ended."""


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a run, as far as the queue needs it."""

    status: RunStatus = RunStatus.PENDING
    approval_pending: bool = False
    has_signal: bool = False
    """Whether a signal was accepted that no holder of the lease may have seen yet."""
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def wants_worker(self) -> bool:
        """Whether a worker should take the run."""
        if self.has_signal:
            return True
        if self.status is RunStatus.PENDING:
            return not self.approval_pending
        return self.status in {RunStatus.APPROVED, RunStatus.RUNNING}


def head_after(head: Head, events: Iterable[NewEvent]) -> Head:
    """The head once these events are stored. A run that has ended takes no more of them, except to be reopened."""
    for event in events:
        meaning = meaning_of(event)
        if head.status.is_terminal and head.status not in meaning.allowed_after:
            raise EngineBug(EVENT_AFTER_THE_END.anywhere(event_type=event.event_type, status=head.status))
        if meaning.starts_over:
            head = Head()
        if meaning.approval_pending is not None:
            head = replace(head, approval_pending=meaning.approval_pending)
        if meaning.signal is not None:
            head = replace(head, has_signal=True)
        if meaning.status is not None:
            head = replace(
                head,
                status=meaning.status,
                started_at=meaning.started_after(head.started_at),
                completed_at=meaning.completed_at,
            )
    return head


def waits_for_approval(events: Iterable[StoredEvent]) -> bool:
    """Whether a run with these events waits for an approval."""
    changes = [meaning.approval_pending for meaning in map(meaning_of, events) if meaning.approval_pending is not None]
    return bool(changes) and changes[-1]


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that are missing: from the one that was expected to the one before the first that is there."""

    expected_seq: int
    found_seq: int

    def to_json(self) -> dict[str, int]:
        """The form that pages of events and streams give."""
        return {"expected_seq": self.expected_seq, "found_seq": self.found_seq}


@dataclass(frozen=True, slots=True)
class ProjectionProgress:
    """How far a projection came."""

    snapshot: RunSnapshot
    waiting: tuple[StoredEvent, ...] = ()
    """Events after a gap, to be applied again with the missing ones."""
    gap: Gap | None = None


def project_run(run_id: str, events: Iterable[StoredEvent]) -> RunSnapshot:
    """The snapshot of a whole history up to its first gap, or of one from a RunContinued on that has all references."""
    return advance(RunSnapshot(run_id), events).snapshot


def incremental_project(snapshot: RunSnapshot, new_events: Iterable[StoredEvent]) -> RunSnapshot:
    """A newer snapshot. Events that the snapshot knows already change nothing."""
    return advance(snapshot, new_events).snapshot


def detect_gap(last_seq: int, next_seq: int) -> Gap | None:
    """Whether something is missing between two events."""
    return Gap(last_seq + 1, next_seq) if next_seq > last_seq + 1 else None


def advance(snapshot: RunSnapshot, events: Iterable[StoredEvent]) -> ProjectionProgress:
    """Apply events in order, in whatever order and however often they arrive, and stop at a gap."""
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
    """A snapshot taken apart while events are applied: lists are put together once per projection, not per event."""

    def __init__(self, snapshot: RunSnapshot) -> None:
        self.snapshot = snapshot
        self.last_seq = snapshot.last_event_seq
        self.steps = {step.step_id: step for step in snapshot.steps}
        self.artifacts = list(snapshot.artifacts)
        self.pending = {signal.signal_id: signal for signal in snapshot.pending_signals}
        self.counters = snapshot.counters

    def result(self) -> RunSnapshot:
        return replace(
            self.snapshot,
            last_event_seq=self.last_seq,
            steps=tuple(self.steps.values()),
            artifacts=tuple(self.artifacts),
            pending_signals=tuple(self.pending.values()),
            counters=self.counters,
        )

    def apply(self, event: StoredEvent) -> None:
        meaning = meaning_of(event)
        self.last_seq = event.run_seq
        if event.caused_by_signal_id in self.pending:
            self._settle(event.caused_by_signal_id)
        if meaning.signal is not None:
            self.pending[meaning.signal.signal_id] = meaning.signal
        for step in meaning.planned:
            self.steps.setdefault(step.step_id, StepSnapshot(step.step_id, step.seq, step.name, step.type))
        if meaning.step is not None:
            self._change_step(meaning.step)
        if meaning.all_artifacts is not None:
            self.artifacts = list(meaning.all_artifacts)
        self.artifacts.extend(meaning.artifacts)
        self.counters = meaning.counters(self.counters)
        self.snapshot = meaning.facts(self.snapshot)
        if meaning.status is not None:
            self._move(meaning, meaning.status)

    def _settle(self, signal_id: str) -> None:
        """A signal has taken effect. Signals take effect in order, so those before it had none and will have none."""
        ids = list(self.pending)
        settled = set(ids[: ids.index(signal_id) + 1])
        self.pending = {
            key: signal
            for key, signal in self.pending.items()
            if key not in settled or (signal.signal == _OUTLIVES_THE_RUN and key != signal_id)
        }

    def _change_step(self, change: StepChange) -> None:
        step = self.steps.get(change.step_id)
        if step is None and change.must_be_known:
            return
        self.steps[change.step_id] = change.change(step or StepSnapshot(change.step_id))

    def _move(self, meaning: Meaning, status: RunStatus) -> None:
        if status.is_terminal:
            self._leave_nothing_half_way()
        started, completed = meaning.started_after(self.snapshot.started_at), meaning.completed_at
        self.snapshot = replace(
            self.snapshot,
            status=status,
            started_at=started,
            completed_at=completed,
            total_duration_ms=_milliseconds(started, completed) if started and completed else None,
            error=meaning.error,
            failed_step=meaning.failed_step,
        )

    def _leave_nothing_half_way(self) -> None:
        for step in self.steps.values():
            if step.status is StepStatus.RUNNING:
                self.steps[step.step_id] = replace(step, status=StepStatus.PENDING)
        self.pending = {key: signal for key, signal in self.pending.items() if signal.signal == _OUTLIVES_THE_RUN}


def _milliseconds(start: datetime, end: datetime) -> int:
    return (end - start) // timedelta(milliseconds=1)
