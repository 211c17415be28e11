"""Planning an aggregate: one summary row per group, appended to the working dataset."""

from collections.abc import Mapping

from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN
from clew.model import Aggregate
from clew.plan.columns import SYSTEM_COLUMNS, Column
from clew.plan.expressions import types_of
from clew.plan.lineage import Origins
from clew.plan.operations.context import UNGROUPABLE, Context, Outcome, State, grouping_columns, reads
from clew.plan.steps import AggregateStep, Assignment, PlannedExpression, Read


def plan_aggregate(context: Context, operation: Aggregate) -> Outcome:
    """The step of an aggregate."""
    arguments = operation.arguments
    scope = context.scope()
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    group_by = grouping_columns(arguments.group_by, scope, context.problems, UNGROUPABLE)
    values = _values(context, operation, group_by)
    state = _state_after(context, selector, group_by, values)
    is_wrong = (operation.selector and not selector) or None in values.values()
    if is_wrong or len(group_by) < len(arguments.group_by) or len(values) < len(arguments.aggregations):
        return Outcome(None, state)
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
            Assignment(column, value, adds_column=context.state.schema.type_of(column) is None)
            for column, value in values.items()
            if value is not None
        ),
    )
    return Outcome(step, state)


def _values(context: Context, operation: Aggregate, group_by: tuple[str, ...]) -> dict[str, PlannedExpression | None]:
    values = dict[str, PlannedExpression | None]()
    for aggregation in operation.arguments.aggregations:
        column, span = aggregation.column, aggregation.place("column")
        if column in values or column in group_by:
            hint = "the group key fills it already" if column in group_by else None
            context.problems.report(DUPLICATE_COLUMN.at(span, column=column, hint=hint))
        elif context.can_be_set(column, span):
            target = context.state.schema.type_of(column)
            values[column] = context.expressions.aggregation(
                aggregation.expression, context.scope(), frozenset(group_by), target
            )
    return values


def _state_after(
    context: Context,
    selector: PlannedExpression | None,
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression | None],
) -> State:
    before = context.state.lineage
    added = [Column(name, type_) for name, type_ in types_of(values).items() if name not in SYSTEM_COLUMNS]
    influence = before.of([selector.tree] if selector else []).as_influence()
    for name in group_by:
        influence |= before.working.get(name, Origins()).as_influence()
    changes = {name: before.of([value.tree]) | influence for name, value in values.items() if value}
    return State(context.state.table, context.state.schema.with_columns(added), before.changed(changes))
