"""Freezing a point of a run.

The rows at a point are files that nobody rewrites, with functions on top that the plan names. So a ticket names the
run, the step, the plan and the parts that were committed by then; no row is touched until somebody writes them down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clew.events.snapshot import RunSnapshot, StepStatus
from clew.events.values import ArtifactRef
from clew.plan.plan import Plan
from clew.storage.parts import Part
from clew.trace.run_parts import periods_of

PART_KIND = "trace-part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The rows behind a step of a run, without the rows."""

    run_id: str
    breakpoint: str
    seq: int
    plan_digest: str
    parts: tuple[str, ...]
    """What the run had committed by then, by the addresses that its events give."""
    skipped: tuple[int, ...]
    """The steps that an operator skipped."""
    rows: int | None
    """How many rows there are, deleted ones among them; None where only reading them would tell."""
    estimated_bytes: int
    frozen_at: datetime | None
    """When the step was committed: that is what froze its rows."""


def is_reached(snapshot: RunSnapshot, seq: int) -> bool:
    """Whether a run has come past a step."""
    step = snapshot.step(str(seq))
    return step is not None and step.status in {StepStatus.SUCCESS, StepStatus.SKIPPED}


def freeze(plan: Plan, breakpoint_name: str, seq: int, snapshot: RunSnapshot, parts: Sequence[Part]) -> Ticket:
    """The ticket of a point that the run has come past. `parts` are the descriptions of what it has committed."""
    step = snapshot.step(str(seq))
    by_then = [part for part in parts if _first_step(part) <= seq]
    return Ticket(
        run_id=snapshot.run_id,
        breakpoint=breakpoint_name,
        seq=seq,
        plan_digest=plan.digest,
        parts=tuple(_addresses(snapshot.artifacts)),
        skipped=tuple(
            sorted(each.seq for each in snapshot.steps if each.status is StepStatus.SKIPPED and each.seq <= seq)
        ),
        rows=_rows(plan, seq, parts),
        estimated_bytes=sum(
            file.size for part in by_then if part.kind != "input" or part.name == plan.input.key for file in part.files
        ),
        frozen_at=step.completed_at if step is not None else None,
    )


def _addresses(artifacts: Sequence[ArtifactRef]) -> list[str]:
    return [artifact.uri for artifact in artifacts if artifact.kind == PART_KIND]


def _first_step(part: Part) -> int:
    return part.steps[0].seq if part.kind == "changes" and part.steps else part.seq


def _rows(plan: Plan, seq: int, parts: Sequence[Part]) -> int | None:
    loaded = next((part for part in parts if part.kind == "input" and part.name == plan.input.key), None)
    if loaded is None or periods_of(loaded, plan.input) is not None:
        return None
    created = [part for part in parts if part.kind == "created" and part.seq <= seq]
    return sum(file.rows for part in (loaded, *created) for file in part.files)
