"""Update: sets columns of the rows that its selector matches, with values that it may look up in other datasets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.diagnostics import Span, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.project import DUPLICATE_ALIAS
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE, RESERVED_COLUMN
from clew.lang import Scope, Table
from clew.lang.text_form import name_text
from clew.lang.typed import OVER, ColumnValue, columns_of
from clew.lang.types import NULL
from clew.lang.windowing import WindowCall
from clew.plan import words
from clew.plan.columns import SYSTEM_COLUMNS, Column
from clew.plan.expressions import types_of
from clew.plan.joined_days import on_day, read_on
from clew.plan.lineage import LineageState, Origins
from clew.plan.operations.context import Context, PlannedOperation, PlanningState, dataset_table, reads
from clew.plan.steps import Assignment, ChangingStepBase, Detail, Join, PlannedExpression, Read, StepDataset

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import RuntimeJoin, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep(ChangingStepBase):
    """Sets columns on the rows that the selector matches."""

    type: Literal["update"] = "update"
    joins: tuple[Join, ...]
    assignments: tuple[Assignment, ...]
    windows: tuple[WindowCall, ...] = ()
    """The calls with OVER in its assignments. There they are columns of the table `OVER`."""
    drops: tuple[str, ...] = ()
    """The columns that later steps do not see, also those that got another name."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Updating, joining where it looks something up, and looking at other rows."""
        joins = ("cap.clew.runtime_join.v1",) if self.joins else ()
        return ("cap.clew.update.v1", *joins, *(("cap.clew.window.v1",) if self.windows else ()))

    @property
    def summary(self) -> str:
        """The columns that it sets and drops."""
        drops = f"drops {', '.join(self.drops)}" if self.drops else ""
        return ", ".join(filter(None, (f"sets {', '.join(self.columns_set)}" if self.assignments else "", drops)))

    def details(self) -> Iterator[Detail]:
        """Its rows, its joins and its assignments."""
        yield words.selected(self.selector)
        for join in self.joins:
            described = f"{join.alias} = {words.dataset(join.dataset)}"
            yield Detail("joins", (described, f"on {join.on.text}", words.found(join.dataset)))
        yield from words.assigned(self.assignments)
        if self.drops:
            yield Detail("drops", (", ".join(self.drops),))
        if self.windows:
            yield Detail("windows", tuple(each.column for each in self.windows))

    def lineage_after(self, state: LineageState) -> LineageState:
        """Values come from what the assignments read; selector and joins decide."""
        values = {each.column: each.value for each in self.assignments}
        return _lineage_after(state, self.selector, self.joins, values, self.windows)

    @property
    def lookups(self) -> tuple[Join, ...]:
        """Its joins."""
        return self.joins

    @property
    def datasets(self) -> tuple[StepDataset, ...]:
        """The datasets that it joins."""
        return tuple(StepDataset(join.dataset, f"joined as {join.alias}", becomes_rows=False) for join in self.joins)

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns that it assigns."""
        return tuple(each.column for each in self.assignments)

    @property
    def columns_calculated(self) -> tuple[str, ...]:
        """The columns that it assigns."""
        return self.columns_set

    @property
    def columns_dropped(self) -> tuple[str, ...]:
        """What it drops."""
        return self.drops

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns by which windows put rows together and in order."""
        return tuple(dict.fromkeys(name for each in self.windows for name in each.deciding))

    @property
    def is_wide(self) -> bool:
        """Whether a value depends on other rows."""
        return bool(self.windows)

    @property
    def window_calls(self) -> tuple[WindowCall, ...]:
        """The calls with OVER."""
        return self.windows

    @property
    def traced_as(self) -> Literal["update", "delete"]:
        """An update of the assigned columns."""
        return "update"

    @property
    def assigned(self) -> tuple[Assignment, ...]:
        """Its assignments."""
        return self.assignments


def plan_update(context: Context, operation: "Update") -> PlannedOperation[UpdateStep]:
    """The step of an update."""
    joins, scope = _joins(context, operation)
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    windows = list[WindowCall]()
    values = _values(context, operation, scope, windows)
    renamed, drops = _renamed(context, operation, values), _dropped(context, operation)
    if renamed is not None:
        values |= renamed
    state = _state_after(context, selector, joins, values, windows)
    if drops is not None:
        state = replace(state, schema=state.schema.without(drops))
    is_wrong = (operation.selector and not selector) or None in values.values()
    is_wrong |= _chooses_by_joins(context, operation, selector, windows)
    if is_wrong or renamed is None or drops is None or len(joins) < len(operation.arguments.joins):
        return PlannedOperation(None, state)
    step = UpdateStep(
        **context.identity(operation),
        selector=selector,
        reads=reads(
            [
                ("selector", selector),
                *((f"join {join.alias}", join.on) for join in joins),
                *((f"assignment of {column}", value) for column, value in values.items()),
            ]
        )
        + _reads_of_windows(context, windows),
        adds=context.added(state),
        joins=joins,
        assignments=tuple(
            Assignment(column, value, adds_column=column not in context.state.schema.types)
            for column, value in values.items()
            if value is not None
        ),
        windows=tuple(windows),
        drops=drops,
    )
    return PlannedOperation(step, state)


def _renamed(
    context: Context, operation: "Update", before: Mapping[str, PlannedExpression | None]
) -> dict[str, PlannedExpression | None] | None:
    """The columns that get the values of others, which are dropped; None if one cannot."""
    found = dict[str, PlannedExpression | None]()
    is_right = True
    for old, new in operation.arguments.rename.items():
        place = operation.arguments.place("rename", old)
        name = context.own_name(old)
        if not _can_go(context, name, place):
            is_right = False
        elif new in context.state.schema.types:
            problem = f'"{old}" cannot be called "{new}": there is such a column'
            context.problems.report(INVALID_VALUE.at(place, problem=problem, hint="choose another name"))
            is_right = False
        elif not context.can_be_set(new, place, {*before, *found}):
            is_right = False
        else:
            tree = ColumnValue(context.state.table, name, context.state.schema.types[name])
            found[new] = PlannedExpression(name_text(name), tree)
    return found if is_right else None


def _dropped(context: Context, operation: "Update") -> tuple[str, ...] | None:
    """The columns that later operations do not see; None if one cannot be dropped."""
    found = [context.own_name(name) for name in operation.arguments.rename]
    is_right = True
    for index, written in enumerate(operation.arguments.drop):
        name, place = context.own_name(written), operation.arguments.place("drop", index)
        if name in found:
            context.problems.report(DUPLICATE_COLUMN.at(place, column=name, hint="it is dropped or renamed already"))
            is_right = False
        elif _can_go(context, name, place):
            found.append(name)
        else:
            is_right = False
    return tuple(found) if is_right else None


def _can_go(context: Context, name: str, place: Span) -> bool:
    """Whether a column can be dropped or get another name; says why not."""
    if name in SYSTEM_COLUMNS:
        context.problems.report(RESERVED_COLUMN.at(place, column=name, action="dropped or renamed", hint=None))
        return False
    if name in context.state.schema.types or context.state.is_opaque:
        return name in context.state.schema.types
    known = [column.name for column in context.state.schema.visible]
    hint = context.elsewhere(name) or did_you_mean(name, known)
    context.problems.report(UNKNOWN_COLUMN.at(place, column=name, table=context.state.table, hint=hint))
    return False


def _chooses_by_joins(
    context: Context, operation: "Update", selector: PlannedExpression | None, windows: Sequence[WindowCall]
) -> bool:
    """Which rows are in a window must be known before anything is looked up for them."""
    own = {context.state.table}
    if (
        not windows
        or selector is None
        or not context.state.table
        or {table for table, _ in columns_of(selector.tree)} <= own
    ):
        return False
    assert operation.selector is not None  # noqa: S101 - it has been planned
    problem = "the selector of an update with OVER reads columns of a join"
    hint = "set a column from the join in an update before, and select by that"
    span = operation.selector.span(0, len(operation.selector.value))
    context.problems.report(INVALID_VALUE.at(span, problem=problem, hint=hint))
    return True


def _reads_of_windows(context: Context, windows: Iterable[WindowCall]) -> tuple[Read, ...]:
    found = dict[Read, None]()
    for window in windows:
        read = {name for tree in window.values for _, name in columns_of(tree)}
        for name in (*sorted(read), *window.deciding):
            found[Read(context.state.table, name, window.column)] = None
    return tuple(found)


def _joins(context: Context, operation: "Update") -> tuple[tuple[Join, ...], Scope]:
    """The joins that are right, and what expressions see beside them.

    A table that cannot be told, because its dataset is wrong or its alias is taken, is opaque: any column may be its.
    """
    joins = list[Join]()
    scope = replace(context.scope(), column_elsewhere=lambda name: _added_here(context, operation, name))
    for join in operation.arguments.joins:
        use = read_on(context.catalogue.use(join.dataset, context.problems), join, context.problems)
        before = scope
        taken = next((table for table in scope.tables if table.name.casefold() == join.alias.casefold()), None)
        if taken is not None:
            where = " by the project's own table" if taken is scope.tables[0] else " by a join before it"
            context.problems.report(DUPLICATE_ALIAS.at(join.place("alias"), alias=join.alias, where=where))
            opaque = replace(taken, is_opaque=True)
            scope = replace(scope, tables=tuple(opaque if table is taken else table for table in scope.tables))
        else:
            table = dataset_table(use, join.alias) if use else Table(join.alias, {}, is_opaque=True)
            scope = replace(scope, tables=(*scope.tables, table))
        condition = context.expressions.condition(join.on, _scope_of_condition(scope, operation, join), _CONDITION)
        condition = on_day(condition, join, before, context.expressions)
        if use is not None and condition is not None and taken is None:
            joins.append(Join(join.alias, use, condition))
    return tuple(joins), scope


_CONDITION = "in a join condition"


def _scope_of_condition(scope: Scope, operation: "Update", join: "RuntimeJoin") -> Scope:
    """What the condition of a join sees: the joins before it and itself."""
    later = operation.arguments.joins[operation.arguments.joins.index(join) + 1 :]

    def table_elsewhere(name: str) -> str | None:
        if any(other.alias == name for other in later):
            return "a condition sees the joins before its own: put that one first"
        return scope.table_elsewhere(name)

    return replace(scope, table_elsewhere=table_elsewhere)


def _values(
    context: Context, operation: "Update", scope: Scope, windows: list[WindowCall]
) -> dict[str, PlannedExpression | None]:
    values = dict[str, PlannedExpression | None]()
    for assignment in operation.arguments.assignments:
        column, span = context.own_name(assignment.column), assignment.place("column")
        can_be_set = _is_not_joined(context, operation, column, span) and context.can_be_set(column, span, values)
        target = context.state.schema.types.get(column) if can_be_set else NULL
        value = context.expressions.value(assignment.expression, scope, "in an assignment", target, windows)
        values[column] = value if can_be_set else None
    return values


def _is_not_joined(context: Context, operation: "Update", column: str, span: Span) -> bool:
    """A column with an alias in front of it would be a new one with a strange name, which is never intended."""
    alias, dot, name = column.partition(".")
    if not dot or column in context.state.schema.types:
        return True
    if alias.casefold() not in {join.alias.casefold() for join in operation.arguments.joins}:
        return True
    problem = f'"{column}" cannot be set: an update sets columns of {context.state.table}, not of what it joins'
    context.problems.report(INVALID_VALUE.at(span, problem=problem, hint=f'write "{name}" to add such a column'))
    return False


def _added_here(context: Context, operation: "Update", column: str) -> str | None:
    if any(context.own_name(assignment.column) == column for assignment in operation.arguments.assignments):
        return "this same operation adds it; its expressions all see the row as it was before"
    return context.column_elsewhere(column)


def _state_after(
    context: Context,
    selector: PlannedExpression | None,
    joins: tuple[Join, ...],
    values: Mapping[str, PlannedExpression | None],
    windows: Sequence[WindowCall],
) -> PlanningState:
    known = {name: value for name, value in values.items() if value}
    lineage = _lineage_after(context.state.lineage, selector, joins, known, windows)
    added = (Column(name, type_) for name, type_ in types_of(values).items())
    return context.state.changed(added, lineage)


def _lineage_after(
    state: LineageState,
    selector: PlannedExpression | None,
    joins: tuple[Join, ...],
    values: Mapping[str, PlannedExpression],
    windows: Sequence[WindowCall],
) -> LineageState:
    before = state.joining({join.alias: join.dataset.dataset_id for join in joins})
    influence = before.of([join.on.tree for join in joins]).as_choice()
    influence |= before.selected_by(selector.tree if selector else None)
    looked_at = {each.column: _origins_of_window(before, each, selector) for each in windows}
    origins = dict[str, Origins]()
    for name, value in values.items():
        origins[name] = before.of([value.tree]) | influence
        for table, column in sorted(columns_of(value.tree)):
            if table == OVER:
                origins[name] |= looked_at[column]
    return state.changed(origins)


def _origins_of_window(before: LineageState, window: WindowCall, selector: PlannedExpression | None) -> Origins:
    """What goes into a value from other rows. Which rows those are is decided by all that has deleted rows, too."""

    def of(names: Iterable[str]) -> Origins:
        return before.of([ColumnValue(before.working_table, name, NULL) for name in names])

    chosen = of(name for name, _ in window.order).as_choice() | before.selected_by(selector.tree if selector else None)
    return before.of(window.values) | of(window.keys).as_influence() | chosen | before.deletions
