"""What an engine must be able to do for a plan."""

from collections.abc import Iterable, Sequence

from clew.diagnostics import UserError
from clew.diagnostics.codes.project import UNKNOWN_CAPABILITY
from clew.plan.plan import Breakpoint, Capability, Plan
from clew.plan.postlude import PostludeJob
from clew.plan.steps import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep

DEBUG_CAPABILITY = "cap.rfc.0003.debug_capture_postlude.v1"
"""Breakpoints, captures and postlude jobs, under the name that their specification gives."""

_JOIN, _REGISTER = "cap.clew.runtime_join.v1", "cap.clew.register_dataset.v1"


def capabilities_of(
    steps: Sequence[Step], breakpoints: Sequence[Breakpoint], jobs: Sequence[PostludeJob]
) -> tuple[Capability, ...]:
    """Every capability that something in the plan needs, sorted by name, each with the steps that need it."""
    needed = dict[str, set[int]]()
    for step in steps:
        for name in _needs(step):
            needed.setdefault(name, set()).add(step.seq)
    for seq in [*(point.seq for point in breakpoints), *(job.anchor_seq for job in jobs)]:
        needed.setdefault(DEBUG_CAPABILITY, set()).add(seq)
    return tuple(Capability(name, tuple(sorted(seqs))) for name, seqs in sorted(needed.items()))


def _needs(step: Step) -> list[str]:
    match step:
        case UpdateStep():
            return ["cap.clew.update.v1", *([_JOIN] if step.joins else [])]
        case AggregateStep():
            return ["cap.clew.aggregate.v1"]
        case AppendStep():
            return ["cap.clew.append.v1"]
        case DeleteStep():
            return ["cap.clew.delete.v1"]
        case OutputStep():
            return ["cap.clew.output.v1", *([_REGISTER] if step.registers else [])]


def require_capabilities(plan: Plan, available: Iterable[str]) -> None:
    """Refuse a plan that needs something which this engine does not have."""
    have = frozenset(available)
    missing = [capability for capability in plan.capabilities if capability.name not in have]
    if missing:
        raise UserError(
            *(
                UNKNOWN_CAPABILITY.anywhere(
                    capability=capability.name,
                    hint=f"needed by step {', '.join(map(str, capability.needed_by))}",
                )
                for capability in missing
            )
        )
