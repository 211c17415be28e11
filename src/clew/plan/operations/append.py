"""Planning an append: rows of another dataset, or summaries of them, under the columns that exist."""

from collections.abc import Mapping

from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.project import APPEND_COLUMN_MISMATCH
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE
from clew.lang import Scope, Table
from clew.lang.conversion import assignable
from clew.lang.typed import ColumnValue
from clew.lang.types import NULL, Type
from clew.model import Append
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import converted
from clew.plan.lineage import Origins, SourceColumn
from clew.plan.operations.context import Context, Outcome, State, dataset_table, grouping_columns, reads
from clew.plan.steps import AppendStep, Assignment, PlannedExpression, Read


def plan_append(context: Context, operation: Append) -> Outcome:
    """The step of an append."""
    arguments = operation.arguments
    if operation.selector is not None:
        problem = "append takes no selector: it changes no row that exists"
        hint = "use source_selector, under arguments, to choose the rows that come in"
        context.problems.report(INVALID_VALUE.at(operation.place_of_key("selector"), problem=problem, hint=hint))
    source = context.catalogue.use(arguments.source, context.problems)
    if source is None:
        return Outcome(None, context.state)
    table = dataset_table(source, source.table)
    scope = Scope((table,))
    condition = None
    if arguments.source_selector is not None:
        condition = context.expressions.selector(arguments.source_selector, scope, "in a source_selector")
    group_by = _group_by(context, operation, table)
    values = (
        _raw(context, operation, source, table)
        if group_by is None
        else _aggregated(context, operation, table, group_by)
    )
    state = _state_after(context, source, condition, values)
    if None in values.values() or operation.selector or (arguments.source_selector and not condition):
        return Outcome(None, state)
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
    return Outcome(step, state)


def _group_by(context: Context, operation: Append, table: Table) -> tuple[str, ...] | None:
    aggregation = operation.arguments.aggregation
    if aggregation is None:
        return None
    return grouping_columns(aggregation.group_by, Scope((table,)), context.problems, frozenset())


def _raw(context: Context, operation: Append, source: DatasetUse, table: Table) -> dict[str, PlannedExpression | None]:
    """Every column of the source under its own name. `_period` is a system column on both sides."""
    span = operation.arguments.place("source")
    values = dict[str, PlannedExpression | None]()
    for column in source.columns:
        target = context.state.schema.type_of(column.name)
        problem = _mismatch(context, column.name, column.type, target)
        if problem is not None:
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem[0], hint=problem[1]))
            values[column.name] = None
        elif target is not None:
            value = ColumnValue(table.name, column.name, column.type)
            values[column.name] = PlannedExpression(f"{table.name}.{column.name}", converted(value, target))
    return values


def _aggregated(
    context: Context, operation: Append, table: Table, group_by: tuple[str, ...]
) -> dict[str, PlannedExpression | None]:
    aggregation = operation.arguments.aggregation
    assert aggregation is not None  # noqa: S101 - there is a group_by
    values = dict[str, PlannedExpression | None]()
    for index, name in enumerate(group_by):
        target = context.state.schema.type_of(name)
        mismatch = _mismatch(context, name, table.columns[name], target)
        if mismatch is not None:
            span = aggregation.place("group_by", index)
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=mismatch[0], hint=mismatch[1]))
        value = ColumnValue(table.name, name, table.columns[name])
        values[name] = PlannedExpression(name, converted(value, target or NULL)) if mismatch is None else None
    for item in aggregation.aggregations:
        span = item.place("column")
        if item.column in values:
            context.problems.report(DUPLICATE_COLUMN.at(span, column=item.column))
            continue
        target = context.state.schema.type_of(item.column)
        if target is None:
            problem, hint = _unknown_column(context, item.column)
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem, hint=hint))
        planned = context.expressions.aggregation(item.expression, Scope((table,)), frozenset(group_by), target or NULL)
        values[item.column] = planned if target is not None else None
    return values


def _mismatch(context: Context, name: str, type_: Type, target: Type | None) -> tuple[str, str | None] | None:
    """What is wrong with a column that comes in, and a hint."""
    if target is None:
        return _unknown_column(context, name)
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
    values: Mapping[str, PlannedExpression | None],
) -> State:
    lineage = context.state.lineage.joining({source.table: source.dataset_id})
    if source.table == context.state.table:
        loaded = {
            column.name: Origins(frozenset({SourceColumn(source.dataset_id, column.name)})) for column in source.columns
        }
        lineage = type(lineage)(loaded, source.table)
    influence = lineage.of([condition.tree] if condition else []).as_influence()
    changes = {
        name: lineage.of([value.tree]) | influence
        for name, value in values.items()
        if value and name not in SYSTEM_COLUMNS
    }
    return State(context.state.table, context.state.schema, context.state.lineage.changed(changes))
