"""Closes a segment of a long history, so that continuing a run never means reading all of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.events.bodies import RunContinued, StepCompleted, StepSkipped
from clew.events.codec import canonical_json, encode
from clew.events.envelope import StoredEvent
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import ArtifactRef, Cursor, PlannedStep, PlanRef, positions_of, ranges_of
from clew.runs.limits import StoreLimits

_ENVELOPE_BYTES = 400
"""What an event takes besides its data, roughly: ids, keys and times."""
_PIECE_BYTES = 128_000
"""How much one continuation carries at most, well below what an event may have."""


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


def closing(snapshot: RunSnapshot, plan: PlanRef, steps: Sequence[PlannedStep]) -> tuple[RunContinued, ...]:
    """The events that close the segment: one, or several where it left more references than fit into one.

    They carry the references that no continuation has carried so far. Going on reads those of all continuations.
    """
    cursor, counters = cursor_of(snapshot, steps), snapshot.counters
    bodies = list[RunContinued]()
    for piece in _pieces(snapshot.artifacts[counters.artifacts_carried :]):
        carried = counters.artifacts_carried + len(piece)
        counters = replace(counters, segments=counters.segments + 1, artifacts_carried=carried)
        bodies.append(RunContinued(plan, cursor, piece, counters, snapshot.started_at, adds_artifacts=True))
    return tuple(bodies)


def _pieces(artifacts: Sequence[ArtifactRef]) -> Iterator[tuple[ArtifactRef, ...]]:
    """The references in pieces of a bounded size; one empty piece where there are none."""
    piece, size = list[ArtifactRef](), 0
    for artifact in artifacts:
        weight = len(canonical_json(encode(artifact)))
        if piece and size + weight > _PIECE_BYTES:
            yield tuple(piece)
            piece, size = [], 0
        piece.append(artifact)
        size += weight
    yield tuple(piece)


def with_earlier_artifacts(events: Sequence[StoredEvent], earlier: Iterable[RunContinued]) -> tuple[StoredEvent, ...]:
    """Events from the last continuation on, where this one has the references of those before it, too."""
    if not events or not isinstance(events[0].body, RunContinued) or not events[0].body.adds_artifacts:
        return tuple(events)
    artifacts = list[ArtifactRef]()
    for body in (*earlier, events[0].body):
        artifacts = [*artifacts, *body.artifacts] if body.adds_artifacts else list(body.artifacts)
    whole = replace(events[0].body, artifacts=tuple(artifacts), adds_artifacts=False)
    return (replace(events[0], body=whole), *events[1:])


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
