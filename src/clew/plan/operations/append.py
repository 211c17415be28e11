"""Planning an append: rows of another dataset, or summaries of them, under the columns that exist."""

from collections.abc import Mapping
from functools import partial

from clew.definitions import Append, AppendAggregation
from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.project import APPEND_COLUMN_MISMATCH
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE, RESERVED_COLUMN
from clew.lang import Scope, Table
from clew.lang.conversion import assignable
from clew.lang.typed import ColumnValue
from clew.lang.types import NULL, Type
from clew.plan.columns import KEPT_COLUMNS, UNDERIVED_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import converted
from clew.plan.lineage import LineageState
from clew.plan.operations.context import (
    Context,
    PlannedOperation,
    PlanningState,
    dataset_table,
    grouping_columns,
    reads,
)
from clew.plan.steps import AppendStep, Assignment, PlannedExpression, Read


def plan_append(context: Context, operation: Append) -> PlannedOperation:
    """The step of an append."""
    arguments = operation.arguments
    if operation.selector is not None:
        problem = "append takes no selector: it changes no row that exists"
        hint = "use source_selector, under arguments, to choose the rows that come in"
        context.problems.report(INVALID_VALUE.at(operation.place_of_key("selector"), problem=problem, hint=hint))
    source = context.catalogue.use(arguments.source, context.problems)
    table = dataset_table(source, source.table) if source else Table("", {}, is_opaque=True)
    scope = Scope((table,), table_elsewhere=partial(_only_the_source, context))
    condition = None
    if arguments.source_selector is not None:
        condition = context.expressions.selector(arguments.source_selector, scope, "in a source_selector")
    aggregation = arguments.aggregation
    if aggregation is None:
        group_by, has_all_keys = None, True
        values = _raw(context, operation, table)
    else:
        group_by = grouping_columns(aggregation.group_by, scope, context.problems, frozenset())
        has_all_keys = len(group_by) == len(aggregation.group_by)
        usable = frozenset(group_by if has_all_keys else table.columns)
        values = _aggregated(context, aggregation, scope, group_by, usable)
    if source is None:
        return PlannedOperation(None, context.state)
    state = _state_after(context, source, condition, group_by or (), values)
    is_wrong = operation.selector or (arguments.source_selector and not condition) or not has_all_keys
    if is_wrong or None in values.values():
        return PlannedOperation(None, state)
    step = AppendStep(
        seq=context.placed.seq,
        id=context.id,
        name=operation.name,
        description=operation.description or None,
        path=context.placed.path,
        place=operation.span,
        breakpoint=context.breakpoint,
        selector=None,
        reads=(
            *(Read(table.name, name, "group key") for name in group_by or ()),
            *reads([("source_selector", condition), *((f"column {name}", value) for name, value in values.items())]),
        ),
        adds=(),
        source=source,
        source_selector=condition,
        group_by=group_by,
        columns=tuple(
            Assignment(name, value, adds_column=False) for name, value in values.items() if value is not None
        ),
    )
    return PlannedOperation(step, state)


def _only_the_source(context: Context, table: str) -> str | None:
    return "only the rows of the source can be seen here" if table == context.state.table else None


def _raw(context: Context, operation: Append, table: Table) -> dict[str, PlannedExpression | None]:
    """Every column of the source under its own name. `_period` is a system column on both sides.

    The columns that say when a bitemporal row counts come along where the working dataset has them too; nobody could
    add them there.
    """
    span = operation.arguments.place("source", "dataset_id")
    values = dict[str, PlannedExpression | None]()
    for name, type_ in table.columns.items():
        target = context.state.schema.types.get(name)
        if target is None and name in KEPT_COLUMNS:
            continue
        problem = _mismatch(context, name, type_, target)
        if problem is not None:
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem[0], hint=problem[1]))
            values[name] = None
        else:
            value = ColumnValue(table.name, name, type_)
            values[name] = PlannedExpression(f"{table.name}.{name}", converted(value, target or NULL))
    return values


def _aggregated(
    context: Context, aggregation: AppendAggregation, scope: Scope, group_by: tuple[str, ...], usable: frozenset[str]
) -> dict[str, PlannedExpression | None]:
    table = scope.tables[0]
    values = dict[str, PlannedExpression | None]()
    for index, name in enumerate(group_by):
        target = context.state.schema.types.get(name)
        type_ = table.columns.get(name, NULL)
        mismatch = _mismatch(context, name, type_, target)
        if mismatch is not None:
            span = aggregation.place("group_by", index)
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=mismatch[0], hint=mismatch[1]))
        value = ColumnValue(table.name, name, type_)
        values[name] = PlannedExpression(name, converted(value, target or NULL)) if mismatch is None else None
    for item in aggregation.aggregations:
        span, column = item.place("column"), context.own_name(item.column)
        if column in values:
            context.problems.report(DUPLICATE_COLUMN.at(span, column=column))
            continue
        target = context.state.schema.types.get(column)
        values[column] = context.expressions.aggregation(item.expression, scope, usable, target or NULL)
        if target is None and not context.state.is_opaque:
            problem, hint = _unknown_column(context, column)
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem, hint=hint))
        elif column in KEPT_COLUMNS:
            context.problems.report(RESERVED_COLUMN.at(span, column=column, action="set"))
    return values


def _mismatch(context: Context, name: str, type_: Type, target: Type | None) -> tuple[str, str | None] | None:
    """What is wrong with a column that comes in, and a hint."""
    if target is None:
        return None if context.state.is_opaque else _unknown_column(context, name)
    if not assignable(type_, target):
        return f'the column "{name}" comes in as {type_}, the working dataset has it as {target}', None
    return None


def _unknown_column(context: Context, name: str) -> tuple[str, str | None]:
    hint = did_you_mean(name, [column.name for column in context.state.schema.columns])
    return f'the working dataset has no column "{name}"', hint


def _state_after(
    context: Context,
    source: DatasetUse,
    condition: PlannedExpression | None,
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression | None],
) -> PlanningState:
    lineage = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    chosen = lineage.of([condition.tree] if condition else []).as_influence()
    grouped = chosen
    for name in group_by:
        grouped |= lineage.working[name].as_influence()
    changes = {
        name: lineage.of([value.tree]) | (chosen if name in group_by else grouped)
        for name, value in values.items()
        if value and name not in UNDERIVED_COLUMNS
    }
    return context.state.changed((), context.state.lineage.changed(changes))
