"""Closes a segment of a long history, so that continuing a run never means reading all of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from clew.events.bodies import RunContinued, StepCompleted, StepSkipped
from clew.events.codec import canonical_json
from clew.events.envelope import StoredEvent
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import Cursor, PlannedStep, PlanRef, positions_of, ranges_of
from clew.runs.limits import StoreLimits

_ENVELOPE_BYTES = 400
"""What an event takes besides its data, roughly: ids, keys and times."""


@dataclass(frozen=True, slots=True)
class SegmentSize:
    """How much has happened since the last RunContinued."""

    steps: int = 0
    bytes: int = 0

    def after(self, events: Iterable[StoredEvent]) -> "SegmentSize":
        """The size with these events, counted from a RunContinued among them, if there is one."""
        steps, size = self.steps, self.bytes
        for event in events:
            if isinstance(event.body, RunContinued):
                steps = size = 0
            steps += isinstance(event.body, StepCompleted | StepSkipped)
            size += _ENVELOPE_BYTES + len(canonical_json(event.raw.event_data))
        return SegmentSize(steps, size)

    def is_full(self, limits: StoreLimits) -> bool:
        """Whether it is time to close the segment."""
        return self.steps >= limits.continue_steps or self.bytes >= limits.history_bytes


def can_rotate(snapshot: RunSnapshot) -> bool:
    """Whether the few things that a continuation carries say everything: no step and no signal is half-way."""
    half_way = {StepStatus.RUNNING, StepStatus.FAILED}
    retried = any(step.logical_attempt_id > 1 and not step.status.is_done for step in snapshot.steps)
    return not snapshot.pending_signals and not retried and all(s.status not in half_way for s in snapshot.steps)


def continuation(snapshot: RunSnapshot, plan: PlanRef, steps: Sequence[PlannedStep]) -> RunContinued:
    """The event that closes the segment."""
    cursor = cursor_of(snapshot, steps)
    counters = replace(snapshot.counters, segments=snapshot.counters.segments + 1)
    return RunContinued(plan, cursor, snapshot.artifacts, counters, snapshot.started_at)


def cursor_of(snapshot: RunSnapshot, steps: Sequence[PlannedStep]) -> Cursor:
    """Which steps are behind the run."""
    known = {step.step_id: step.status for step in snapshot.steps}
    succeeded, skipped = positions_of(snapshot.cursor.succeeded), positions_of(snapshot.cursor.skipped)
    for position, step in enumerate(steps):
        match known.get(step.step_id):
            case StepStatus.SUCCESS:
                succeeded.add(position)
            case StepStatus.SKIPPED:
                skipped.add(position)
            case _:
                pass
    return Cursor(ranges_of(succeeded), ranges_of(skipped))


def remaining_steps(snapshot: RunSnapshot, steps: Sequence[PlannedStep]) -> tuple[PlannedStep, ...]:
    """The steps that are still to do, in order."""
    done = cursor_of(snapshot, steps)
    return tuple(step for position, step in enumerate(steps) if position not in done)


def with_all_steps(snapshot: RunSnapshot, steps: Sequence[PlannedStep]) -> RunSnapshot:
    """A snapshot that was read from a continuation, filled up with the steps that the plan knows."""
    known = {step.step_id: step for step in snapshot.steps}
    succeeded, skipped = positions_of(snapshot.cursor.succeeded), positions_of(snapshot.cursor.skipped)

    def status(position: int) -> StepStatus:
        if position in succeeded:
            return StepStatus.SUCCESS
        return StepStatus.SKIPPED if position in skipped else StepStatus.PENDING

    filled = tuple(
        known.get(step.step_id) or StepSnapshot(step.step_id, step.seq, step.name, step.type, status=status(position))
        for position, step in enumerate(steps)
    )
    return replace(snapshot, steps=filled)
