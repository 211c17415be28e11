"""Which control totals are added up at an output, and whose amounts the events of a run may carry."""

from collections.abc import Mapping

from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.plan.planned_controls import PlannedControl
from clew.plan.privacy import privacy_by_column


def controls_at(plan: Plan, output: OutputStep) -> tuple[PlannedControl, ...]:
    """The control totals whose columns exist at an output."""
    known = {column.name for column in plan.columns_after(output.seq)} | SYSTEM_COLUMNS.keys()
    return tuple(control for control in plan.controls if control.columns <= known)


def recorded_amounts(plan: Plan, amounts: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    """The amounts, by control total, that events may carry.

    Those of personal or secret columns are compared with the trace before an output is published, and then forgotten:
    many people read events.
    """
    protected = {control.name for control in plan.controls if is_protected(plan, control)}
    return {name: sides for name, sides in amounts.items() if name not in protected}


def is_protected(plan: Plan, control: PlannedControl) -> bool:
    """Whether a control total reads a column that is personal or secret."""
    return bool(control.columns & privacy_by_column(plan).keys())
