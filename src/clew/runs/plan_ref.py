"""How a run names its plan and the plan's steps, without holding the plan."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanRef:
    """A plan by name. `plan_version` goes into every idempotency key."""

    plan_id: str
    plan_version: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as the run knows it: an id that never changes, the number and the name that users gave it."""

    step_id: str
    seq: int
    name: str
    type: str = ""
