"""What the compiler knows when it comes to an operation, and what it hands to the next."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, Problems, Span, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE, RESERVED_COLUMN
from clew.lang import Scope, Table, parse
from clew.lang.column_names import reserved_because
from clew.lang.syntax import Reference
from clew.lang.typed import OVER, ColumnValue, columns_of
from clew.plan.columns import KEPT_COLUMNS, SYSTEM_COLUMNS, Column, Schema
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import Expressions
from clew.plan.lineage import LineageState
from clew.plan.sort_keys import SortKey
from clew.plan.steps import PlannedExpression, Read, StepBase

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import DatasetRef, ExpressionText
    from clew.definitions.operations import OperationBase

PlannedStep_co = TypeVar("PlannedStep_co", bound=StepBase, covariant=True)


class KnownDatasets(Protocol):
    """Finds the datasets that operations name."""

    def use(self, ref: "DatasetRef", problems: Problems) -> DatasetUse | None:
        """The dataset that a reference names; None if it cannot be used, which is reported."""
        ...

    def registered_id(self, name: str) -> str:
        """Under what an output that becomes a dataset is kept."""
        ...


@dataclass(frozen=True, slots=True)
class PlanningState:
    """The working dataset between two steps."""

    table: str
    schema: Schema
    lineage: LineageState
    is_opaque: bool = False
    """There may be other columns too: the dataset or a fragment before could not be found, which was reported."""

    def changed(self, columns: Iterable[Column], lineage: LineageState) -> "PlanningState":
        """The working dataset after a step that sets these columns, which may be there already."""
        data = (column for column in columns if column.name not in SYSTEM_COLUMNS)
        return replace(self, schema=self.schema.with_columns(data), lineage=lineage)


@dataclass(frozen=True, slots=True)
class PlannedOperation(Generic[PlannedStep_co]):
    """A step, None if something about it is wrong, and the working dataset after it as far as it is known."""

    step: PlannedStep_co | None
    state: PlanningState


class StepIdentity(TypedDict):
    """Who a step is: the fields that say nothing about what it does."""

    seq: int
    id: str
    name: str
    description: str | None
    path: str
    place: Span
    breakpoint: str | None


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that planning one operation needs."""

    seq: int
    path: str
    """The fragment instances that the operation came through."""
    id: str
    breakpoint: str | None
    state: PlanningState
    catalogue: KnownDatasets
    expressions: Expressions
    problems: Problems
    column_elsewhere: Callable[[str], str | None]
    table_elsewhere: Callable[[str], str | None]

    def identity(self, operation: "OperationBase") -> StepIdentity:
        """The fields that every step takes from its operation and its place in the plan."""
        return StepIdentity(
            seq=self.seq,
            id=self.id,
            name=operation.name,
            description=operation.description or None,
            path=self.path,
            place=operation.span,
            breakpoint=self.breakpoint,
        )

    def scope(self, joined: Iterable[Table] = ()) -> Scope:
        """The working table, and the tables that an update joins."""
        working = Table(self.state.table, self.state.schema.types, is_opaque=self.state.is_opaque)
        return Scope((working, *joined), self.elsewhere, self.table_elsewhere)

    def elsewhere(self, column: str) -> str | None:
        """A hint for a column that there is not: one that was dropped, or that is added later."""
        return WAS_DROPPED if column in self.state.schema.hidden else self.column_elsewhere(column)

    def added(self, after: PlanningState) -> tuple[Column, ...]:
        """The columns that the step adds. New columns always come after existing ones."""
        return after.schema.columns[len(self.state.schema.columns) :]

    def own_name(self, column: str) -> str:
        """The name of a column of the working dataset, without the table that may precede it."""
        table, dot, name = column.partition(".")
        is_own = bool(dot and name) and table.casefold() == self.state.table.casefold()
        return name if is_own and column not in self.state.schema.types else column

    def can_be_set(self, column: str, span: Span, before: Collection[str]) -> bool:
        """Whether an operation may set a column of this name beside those that it sets before; says why not."""
        if column in KEPT_COLUMNS:
            hint = "an operation of type delete marks rows as deleted" if column == "_deleted" else None
            self.problems.report(RESERVED_COLUMN.at(span, column=column, action="set", hint=hint))
            return False
        reason = None if column in self.state.schema.types else reserved_because(column)
        if reason is not None:
            problem = f'no column can be called "{column}": {reason}'
            self.problems.report(INVALID_VALUE.at(span, problem=problem, hint="choose another name"))
            return False
        if column.casefold() in map(str.casefold, self.state.schema.hidden):
            problem = f'"{column}" cannot be set: {WAS_DROPPED}'
            self.problems.report(INVALID_VALUE.at(span, problem=problem, hint="choose another name"))
            return False
        if column in before:
            self.problems.report(DUPLICATE_COLUMN.at(span, column=column, hint="this operation sets it already"))
            return False
        known = self.state.schema.types
        like = None if column in known else _differing_in_case(column, (*known, *before))
        if like is not None:
            hint = f'"{like}" exists and differs in upper and lower case only'
            self.problems.report(DUPLICATE_COLUMN.at(span, column=column, hint=hint))
            return False
        return True


def _differing_in_case(column: str, names: Sequence[str]) -> str | None:
    folded = column.casefold()
    if folded not in map(str.casefold, names):  # nearly always, and ten times faster than the line below
        return None
    return next(name for name in names if name.casefold() == folded)


def reads(table_of: Iterable[tuple[str, PlannedExpression | None]]) -> tuple[Read, ...]:
    """The columns that expressions read, each with the reason given before it."""
    found = dict[tuple[str, str, str], Read]()
    for because, planned in table_of:
        if planned is not None:
            for table, column in sorted(columns_of(planned.tree)):
                if table == OVER:  # no column of a dataset; the caller knows what is behind it
                    continue
                found.setdefault((table, column, because), Read(table, column, because))
    return tuple(found.values())


def dataset_table(use: DatasetUse, name: str) -> Table:
    """A dataset as a table that expressions can see under a name."""
    return Table(name, {column.name: column.type for column in use.columns})


def grouping_columns(
    references: Iterable["ExpressionText"], scope: Scope, problems: Problems, kept: frozenset[str]
) -> tuple[str, ...]:
    """The columns of a `group_by`, without the table in front of them. `kept` ones cannot be grouped by."""
    names = list[str]()
    for text in references:
        span = text.span(0, len(text.value))
        found = _reference(text, scope)
        if isinstance(found, tuple):
            problems.report(*found)
        elif found.column in kept:
            hint = "it is different on every row" if found.column == "_row_id" else "deleted rows are never grouped"
            problems.report(RESERVED_COLUMN.at(span, column=found.column, action="grouped by", hint=hint))
        elif found.column in names:
            problems.report(DUPLICATE_COLUMN.at(span, column=found.column))
        else:
            names.append(found.column)
    return tuple(names)


def sort_keys(texts: Iterable["ExpressionText"], scope: Scope, problems: Problems) -> tuple[SortKey, ...]:
    """The columns of an order, each with `desc` behind it where it runs down."""
    found = list[SortKey]()
    for text in texts:
        column, descending = _without_direction(text)
        named = _reference(column, scope, "only columns can be sorted by", "add a column for it with an update before")
        span = text.span(0, len(text.value))
        if isinstance(named, tuple):
            problems.report(*named)
        elif named.column in UNSORTABLE:
            problems.report(RESERVED_COLUMN.at(span, column=named.column, action="sorted by", hint=None))
        elif named.column in {key.column for key in found}:
            problems.report(DUPLICATE_COLUMN.at(span, column=named.column))
        else:
            found.append(SortKey(named.column, descending))
    return tuple(found)


def _without_direction(text: "ExpressionText") -> tuple["ExpressionText", bool]:
    """The text of a column without `asc` or `desc` behind it, and whether it was `desc`."""
    match = _DIRECTION.search(text.value)
    if match is None:
        return text, False
    return replace(text, value=text.value[: match.start()]), match[1].casefold() == "desc"


_DIRECTION = re.compile(r"\s+(asc|desc)\s*$", re.IGNORECASE)


def _reference(
    text: "ExpressionText",
    scope: Scope,
    problem: str = "only columns can be grouped by",
    hint: str = "add a column for it with an update before, and group by that",
) -> ColumnValue | tuple[Diagnostic, ...]:
    try:
        node = parse(text)
    except UserError as error:
        return error.diagnostics
    found = scope.resolve(node) if isinstance(node, Reference) else None
    if isinstance(found, ColumnValue | Diagnostic):
        return found if isinstance(found, ColumnValue) else (found,)
    return (SYNTAX_ERROR.at(node.region.span, problem=problem, hint=hint),)


WAS_DROPPED = "an update before has dropped it"
"""Why there is no column of a name."""

UNGROUPABLE = frozenset(SYSTEM_COLUMNS) - {"_period", "_labels"}
"""System columns that mean nothing on a summary row."""

UNSORTABLE = frozenset({"_deleted", "_row_id"})
"""System columns that give no order: rows that are equal in an order stand in that of their ids anyway."""
