"""Planning an update: joins, assignments, the columns it adds."""

from collections.abc import Mapping
from dataclasses import replace

from clew.diagnostics.codes.project import DUPLICATE_ALIAS
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN
from clew.lang import Table
from clew.model import Update
from clew.plan.columns import SYSTEM_COLUMNS, Column
from clew.plan.expressions import types_of
from clew.plan.operations.context import Context, Outcome, State, dataset_table, reads
from clew.plan.steps import Assignment, Join, PlannedExpression, UpdateStep


def plan_update(context: Context, operation: Update) -> Outcome:
    """The step of an update."""
    joins, tables = _joins(context, operation)
    scope = context.scope(tables)
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    values = _values(context, operation, tables)
    state = _state_after(context, selector, joins, values)
    is_wrong = (operation.selector and not selector) or None in values.values() or len(joins) < len(tables)
    if is_wrong or len(values) < len(operation.arguments.assignments):
        return Outcome(None, state)
    step = UpdateStep(
        seq=context.placed.seq,
        id=context.id,
        name=operation.name,
        description=operation.description or None,
        path=context.placed.path,
        place=operation.span,
        breakpoint=context.breakpoint,
        selector=selector,
        reads=reads(
            [
                ("selector", selector),
                *((f"join {join.alias}", join.on) for join in joins),
                *((f"assignment of {column}", value) for column, value in values.items()),
            ]
        ),
        adds=context.added(state),
        joins=joins,
        assignments=tuple(
            Assignment(column, value, adds_column=context.state.schema.type_of(column) is None)
            for column, value in values.items()
            if value is not None
        ),
    )
    return Outcome(step, state)


def _joins(context: Context, operation: Update) -> tuple[tuple[Join, ...], list[Table]]:
    """The joins that are right, and a table for every alias; an alias whose dataset is wrong gets an opaque one."""
    joins, tables = list[Join](), list[Table]()
    for join in operation.arguments.joins:
        if join.alias == context.state.table or any(table.name == join.alias for table in tables):
            where = " by the project's own table" if join.alias == context.state.table else " by a join before it"
            context.problems.report(DUPLICATE_ALIAS.at(join.place("alias"), alias=join.alias, where=where))
            continue
        use = context.catalogue.use(join.dataset, context.problems)
        tables.append(dataset_table(use, join.alias) if use else Table(join.alias, {}, is_opaque=True))
        condition = context.expressions.condition(join.on, context.scope(tables), "in a join condition")
        if use is not None and condition is not None:
            joins.append(Join(join.alias, use, condition))
    return tuple(joins), tables


def _values(context: Context, operation: Update, tables: list[Table]) -> dict[str, PlannedExpression | None]:
    scope = replace(context.scope(tables), column_elsewhere=lambda name: _added_here(context, operation, name))
    values = dict[str, PlannedExpression | None]()
    for assignment in operation.arguments.assignments:
        if assignment.column in values:
            context.problems.report(DUPLICATE_COLUMN.at(assignment.place("column"), column=assignment.column))
            continue
        if context.can_be_set(assignment.column, assignment.place("column")):
            target = context.state.schema.type_of(assignment.column)
            value = context.expressions.value(assignment.expression, scope, "in an assignment", target)
            values[assignment.column] = value
    return values


def _added_here(context: Context, operation: Update, column: str) -> str | None:
    if any(assignment.column == column for assignment in operation.arguments.assignments):
        return "this same operation adds it; its assignments all see the row as it was before"
    return context.column_elsewhere(column)


def _state_after(
    context: Context,
    selector: PlannedExpression | None,
    joins: tuple[Join, ...],
    values: Mapping[str, PlannedExpression | None],
) -> State:
    added = [Column(name, type_) for name, type_ in types_of(values).items() if name not in SYSTEM_COLUMNS]
    before = context.state.lineage.joining({join.alias: join.dataset.dataset_id for join in joins})
    deciding = [join.on.tree for join in joins] + ([selector.tree] if selector else [])
    influence = before.of(deciding).as_influence()
    changes = {name: before.of([value.tree]) | influence for name, value in values.items() if value}
    return State(context.state.table, context.state.schema.with_columns(added), context.state.lineage.changed(changes))
