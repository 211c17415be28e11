"""Planning each type of operation."""

from clew.definitions import Aggregate, Append, Delete, Output, Update
from clew.plan.operations.aggregate import plan_aggregate
from clew.plan.operations.append import plan_append
from clew.plan.operations.context import Context, PlannedOperation, PlanningState
from clew.plan.operations.delete import plan_delete
from clew.plan.operations.output import plan_output
from clew.plan.operations.update import plan_update

__all__ = ["Context", "PlannedOperation", "PlanningState", "plan_operation"]


def plan_operation(context: Context) -> PlannedOperation:
    """The step of an operation, and the working dataset after it."""
    operation = context.placed.operation
    match operation:
        case Update():
            return plan_update(context, operation)
        case Aggregate():
            return plan_aggregate(context, operation)
        case Append():
            return plan_append(context, operation)
        case Delete():
            return plan_delete(context, operation)
        case Output():
            return plan_output(context, operation)
