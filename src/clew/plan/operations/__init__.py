"""The operation types: what each is, how it is planned, and what its step answers. One file for each type.

The unions are closed: if a `match` lacks a type, the type checker reports it.
"""

from clew.plan.operations.aggregate import AggregateStep, plan_aggregate
from clew.plan.operations.append import AppendStep, plan_append
from clew.plan.operations.context import Context, PlannedOperation, PlanningState
from clew.plan.operations.delete import DeleteStep, plan_delete
from clew.plan.operations.output import Destination, OutputStep, plan_output
from clew.plan.operations.update import UpdateStep, plan_update

__all__ = [
    "AggregateStep",
    "AppendStep",
    "ChangingStep",
    "Context",
    "CreatingStep",
    "DeleteStep",
    "Destination",
    "OutputStep",
    "PlannedOperation",
    "PlanningState",
    "Step",
    "UpdateStep",
    "plan_aggregate",
    "plan_append",
    "plan_delete",
    "plan_output",
    "plan_update",
]

ChangingStep = UpdateStep | DeleteStep
"""Steps that change rows which exist."""

CreatingStep = AggregateStep | AppendStep
"""Steps that add rows."""

Step = UpdateStep | AggregateStep | AppendStep | DeleteStep | OutputStep
"""Every step of a plan."""
