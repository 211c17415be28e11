"""Which control totals are added up at an output, and whose amounts the events of a run may carry."""

from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.plan.planned_controls import PlannedControl
from clew.plan.privacy import privacy_by_column


def controls_at(plan: Plan, output: OutputStep) -> tuple[PlannedControl, ...]:
    """The control totals whose columns exist at an output."""
    known = {column.name for column in plan.columns_after(output.seq)} | SYSTEM_COLUMNS.keys()
    return tuple(control for control in plan.controls if control.columns <= known)


def recorded_controls(plan: Plan, output: OutputStep) -> tuple[PlannedControl, ...]:
    """Those that Spark adds up while it writes. Not those of personal or secret columns: many people read events."""
    return tuple(control for control in controls_at(plan, output) if not is_protected(plan, control))


def is_protected(plan: Plan, control: PlannedControl) -> bool:
    """Whether a control total reads a column that is personal or secret."""
    return bool(control.columns & privacy_by_column(plan).keys())
