"""Append: adds rows of another dataset, or summaries of them, under the columns that exist."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.diagnostics import Span, did_you_mean
from clew.diagnostics.codes.project import APPEND_COLUMN_MISMATCH
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE, RESERVED_COLUMN
from clew.lang import Scope, Table
from clew.lang.conversion import assignable, keeps_apart
from clew.lang.typed import ColumnValue, Convert, Expression
from clew.lang.types import NULL, Kind, Type
from clew.plan import words
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
from clew.plan.steps import Assignment, CreatingStepBase, Detail, PlannedExpression, Read, StepDataset

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Append, AppendAggregation
    from clew.definitions.expression_text import ExpressionText


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendStep(CreatingStepBase):
    """Adds rows of another dataset, or summaries of them. Columns that are not filled are NULL."""

    type: Literal["append"] = "append"
    source: DatasetUse
    source_selector: PlannedExpression | None
    group_by: tuple[str, ...] | None
    """None for raw rows."""
    columns: tuple[Assignment, ...]
    """The columns that the new rows fill: from the source's columns, from expressions or aggregations over them."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Appending."""
        return ("cap.clew.append.v1",)

    @property
    def summary(self) -> str:
        """The columns that it fills."""
        return f"fills {', '.join(self.columns_set)}"

    def details(self) -> Iterator[Detail]:
        """Its source, which rows of it, and the columns that they fill."""
        yield Detail("takes", (words.dataset(self.source), words.found(self.source)))
        if self.source_selector is not None:
            yield Detail("where", tuple(words.selector(self.source_selector)))
        if self.group_by is not None:
            yield words.groups(self.group_by)
        yield Detail("fills", ("all other columns are NULL",), words.values(self.columns))

    def lineage_after(self, state: LineageState) -> LineageState:
        """Values come from the source; its selector and the keys decide."""
        filled = {each.column: each.value for each in self.columns}
        return _lineage_after(state, self.source, self.source_selector, self.group_by or (), filled)

    @property
    def datasets(self) -> tuple[StepDataset, ...]:
        """The source."""
        return (StepDataset(self.source, "appended", becomes_rows=True),)

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns that it fills."""
        return tuple(each.column for each in self.columns)

    @property
    def columns_calculated(self) -> tuple[str, ...]:
        """The columns that it fills with something else than the column of their name as the source has it."""
        return tuple(
            each.column
            for each in self.columns
            if not isinstance(each.value.tree, ColumnValue) or each.value.tree.column != each.column
        )

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns that it fills, and the keys."""
        return (*self.columns_set, *(self.group_by or ()))

    @property
    def row_names(self) -> tuple[tuple[str, ...], ...]:
        """A summary is named by the keys of its group, a raw row by what names it in the source."""
        if self.group_by is not None:
            return (self.group_by,)
        came_as = {source: each.column for each in self.columns if (source := _column_of(each.value.tree))}
        complete = [key for key in self.source.names if all(name in came_as for name in key)]
        return tuple(tuple(came_as[name] for name in key) for key in complete)

    @property
    def made_from(self) -> DatasetUse | None:
        """The source."""
        return self.source

    @property
    def condition(self) -> PlannedExpression | None:
        """The selector of the source."""
        return self.source_selector

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The columns of the source that it groups by."""
        return self.group_by

    @property
    def filled(self) -> tuple[Assignment, ...]:
        """The columns, keys among them."""
        return self.columns

    def key_values(self, table: str, types: Mapping[str, Type]) -> dict[str, Expression]:
        """Keys are columns of the source, converted to what the working dataset has."""
        del table, types
        trees = {each.column: each.value.tree for each in self.columns}
        return {name: trees[name] for name in self.group_by or ()}

    @property
    def narrowed_keys(self) -> tuple[tuple[int, str], ...]:
        """The keys, with their positions, that conversion may make equal though groups differ in them."""
        trees = {each.column: each.value.tree for each in self.columns}
        return tuple(
            (position, name)
            for position, name in enumerate(self.group_by or ())
            if isinstance(tree := trees[name], Convert) and not keeps_apart(tree.operand.type, tree.type)
        )


_EXACT = frozenset({Kind.INTEGER, Kind.DECIMAL})


def _column_of(tree: Expression) -> str | None:
    """The column that an appended value is taken from as it is."""
    inner = tree.operand if isinstance(tree, Convert) else tree
    return inner.column if isinstance(inner, ColumnValue) else None


def plan_append(context: Context, operation: "Append") -> PlannedOperation[AppendStep]:
    """The step of an append."""
    arguments = operation.arguments
    if operation.selector is not None:
        problem = "append takes no selector: it does not change existing rows"
        hint = "use source_selector, under arguments, to choose the rows to append"
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
        mapped = arguments.columns
        values = _raw(context, operation, table) if mapped is None else _mapped(context, operation, scope, mapped)
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
        **context.identity(operation),
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
    return "only the rows of the source are visible here" if table == context.state.table else None


def _raw(context: Context, operation: "Append", table: Table) -> dict[str, PlannedExpression | None]:
    """Every column of the source under its own name. `_period` is a system column on both sides.

    The columns that say when a bitemporal row counts come along where the working dataset has them too; no step could
    add them there.
    """
    span = operation.arguments.place("source", "dataset_id")
    values = dict[str, PlannedExpression | None]()
    for name, type_ in table.columns.items():
        target = context.state.schema.types.get(name)
        if target is None and name in KEPT_COLUMNS:
            continue
        problem = _mismatch(context, name, type_, target) or _loss(name, type_, target)
        if problem is not None:
            context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem[0], hint=problem[1]))
            values[name] = None
        else:
            value = ColumnValue(table.name, name, type_)
            values[name] = PlannedExpression(f"{table.name}.{name}", converted(value, target or NULL))
    return values


def _mapped(
    context: Context, operation: "Append", scope: Scope, columns: "Mapping[str, ExpressionText]"
) -> dict[str, PlannedExpression | None]:
    """The columns that the operation lists. Rows keep their period, and their validity where it has a column."""
    values = dict[str, PlannedExpression | None]()
    for written, text in columns.items():
        span, column = operation.arguments.place_of_key("columns", written), context.own_name(written)
        if column in values:
            context.problems.report(DUPLICATE_COLUMN.at(span, column=column))
            continue
        if column in KEPT_COLUMNS:
            context.problems.report(RESERVED_COLUMN.at(span, column=column, action="set"))
        values[column] = _mapped_value(context, column, text, scope, span)
    table = scope.tables[0]
    for name in sorted(KEPT_COLUMNS):
        type_, target = table.columns.get(name), context.state.schema.types.get(name)
        if type_ is not None and target is not None and name not in values:
            kept = ColumnValue(table.name, name, type_)
            values[name] = PlannedExpression(f"{table.name}.{name}", converted(kept, target))
    return values


def _mapped_value(
    context: Context, column: str, text: "ExpressionText", scope: Scope, span: Span
) -> PlannedExpression | None:
    value = context.expressions.value(text, scope, "in the columns of an append", NULL)
    target = context.state.schema.types.get(column)
    if target is None and not context.state.is_opaque:
        problem, hint = _unknown_column(context, column)
        context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=problem, hint=hint))
        return None
    if value is None or column in KEPT_COLUMNS:
        return None
    found = _mismatch(context, column, value.tree.type, target) or _loss(column, value.tree.type, target)
    if found is not None:
        context.problems.report(APPEND_COLUMN_MISMATCH.at(span, problem=found[0], hint=found[1]))
        return None
    return PlannedExpression(value.text, converted(value.tree, target or NULL))


def _aggregated(
    context: Context, aggregation: "AppendAggregation", scope: Scope, group_by: tuple[str, ...], usable: frozenset[str]
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


def _loss(name: str, type_: Type, target: Type | None) -> tuple[str, str] | None:
    """That the values of a column would be rounded, which no one has asked for."""
    if target is None or target.kind not in _EXACT or type_.kind not in {*_EXACT, Kind.DOUBLE}:
        return None
    if type_.kind is not Kind.DOUBLE and keeps_apart(type_, target):
        return None
    problem = f'the column "{name}" comes in as {type_} and would be rounded to {target}'
    return problem, f"give the column of the working dataset a type that holds {type_}, or append a rounded column"


def _unknown_column(context: Context, name: str) -> tuple[str, str | None]:
    hint = did_you_mean(name, [column.name for column in context.state.schema.visible])
    return f'the working dataset has no column "{name}"', hint


def _state_after(
    context: Context,
    source: DatasetUse,
    condition: PlannedExpression | None,
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression | None],
) -> PlanningState:
    right = {name: value for name, value in values.items() if value}
    lineage = _lineage_after(context.state.lineage, source, condition, group_by, right)
    return context.state.changed((), lineage)


def _lineage_after(
    state: LineageState,
    source: DatasetUse,
    condition: PlannedExpression | None,
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression],
) -> LineageState:
    loaded = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    chosen = loaded.selected_by(condition.tree if condition else None)
    grouped = chosen
    for name in group_by:
        grouped |= loaded.working[name].as_influence()
    return state.changed(
        {
            name: loaded.of([value.tree]) | (chosen if name in group_by else grouped)
            for name, value in values.items()
            if name not in UNDERIVED_COLUMNS
        }
    )
