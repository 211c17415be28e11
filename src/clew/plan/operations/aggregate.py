"""Planning an aggregate: one summary row per group, appended to the working dataset."""

from collections.abc import Mapping

from clew.definitions import Aggregate
from clew.lang import Scope
from clew.lang.types import NULL
from clew.plan.columns import Column
from clew.plan.expressions import types_of
from clew.plan.lineage import Origins
from clew.plan.operations.context import UNGROUPABLE, Context, PlannedOperation, PlanningState, grouping_columns, reads
from clew.plan.steps import AggregateStep, Assignment, PlannedExpression, Read


def plan_aggregate(context: Context, operation: Aggregate) -> PlannedOperation:
    """The step of an aggregate."""
    arguments = operation.arguments
    scope = context.scope()
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    group_by = grouping_columns(arguments.group_by, scope, context.problems, UNGROUPABLE)
    has_all_keys = len(group_by) == len(arguments.group_by)
    usable = frozenset(group_by if has_all_keys else context.state.schema.types)
    values = _values(context, operation, scope, group_by, usable)
    state = _state_after(context, selector, group_by, values)
    if (operation.selector and not selector) or None in values.values() or not has_all_keys:
        return PlannedOperation(None, state)
    step = AggregateStep(
        seq=context.placed.seq,
        id=context.id,
        name=operation.name,
        description=operation.description or None,
        path=context.placed.path,
        place=operation.span,
        breakpoint=context.breakpoint,
        selector=selector,
        reads=(
            *(Read(context.state.table, name, "group key") for name in group_by),
            *reads([("selector", selector), *((f"aggregation {column}", value) for column, value in values.items())]),
        ),
        adds=context.added(state),
        group_by=group_by,
        aggregations=tuple(
            Assignment(column, value, adds_column=column not in context.state.schema.types)
            for column, value in values.items()
            if value is not None
        ),
    )
    return PlannedOperation(step, state)


def _values(
    context: Context, operation: Aggregate, scope: Scope, group_by: tuple[str, ...], usable: frozenset[str]
) -> dict[str, PlannedExpression | None]:
    values = dict[str, PlannedExpression | None]()
    for aggregation in operation.arguments.aggregations:
        column, span = context.own_name(aggregation.column), aggregation.place("column")
        can_be_set = context.can_be_set(column, span, (*group_by, *values))
        target = context.state.schema.types.get(column) if can_be_set else NULL
        value = context.expressions.aggregation(aggregation.expression, scope, usable, target)
        values[column] = value if can_be_set else None
    return values


def _state_after(
    context: Context,
    selector: PlannedExpression | None,
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression | None],
) -> PlanningState:
    before = context.state.lineage
    influence = before.of([selector.tree] if selector else []).as_influence() | before.deletions
    for name in group_by:
        influence |= before.working.get(name, Origins()).as_influence()
    changes = {name: before.of([value.tree]) | influence for name, value in values.items() if value}
    added = (Column(name, type_) for name, type_ in types_of(values).items())
    return context.state.changed(added, before.changed(changes))
