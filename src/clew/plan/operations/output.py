"""Output: writes the rows that its selector matches to a destination, and may register them as a dataset."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.diagnostics import did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE
from clew.lang.types import Kind
from clew.plan import words
from clew.plan.lineage import LineageState
from clew.plan.names import is_label
from clew.plan.operations.context import Context, PlannedOperation, reads, sort_keys
from clew.plan.sort_keys import SortKey
from clew.plan.steps import Detail, PlannedExpression, StepBase

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Output, Scalar

PERIOD_COLUMN = "_period"
UPSERT_BY, NEW_COLUMNS, CREATE_MISSING = "upsert_by", "new_columns", "create_missing"
"""Options that stand for arguments of the operation, so that plans without them stay as they were."""

_WRITTEN_BY_DEFAULT = ("_period", "_labels", "_row_id")
"""System columns of an output that does not name its columns; `_deleted` joins them where it can be TRUE."""


_MODES = {
    "overwrite": "replaces what is there",
    "append": "adds to what is there",
    "replace_period": "replaces the rows of the run's period",
    "upsert": "replaces rows that have the same keys, and adds the others",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an output goes: a table or a path of a datasource, or a location that the project names."""

    datasource_id: str | None
    table: str | None
    path: str | None
    format: str | None
    options: tuple[tuple[str, str], ...]

    @property
    def described(self) -> str:
        """Where it is, and how it is written."""
        of = f" of {self.datasource_id}" if self.datasource_id else ""
        what = f"table {self.table}" if self.table else str(self.path)
        form = f", as {self.format}" if self.format else ""
        options = f" with {words.enumerated(f'{key}={value}' for key, value in self.options)}" if self.options else ""
        return f"{what}{of}{form}{options}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStep(StepBase):
    """Writes the rows that the selector matches."""

    type: Literal["output"] = "output"
    destination: Destination
    mode: Literal["overwrite", "append", "replace_period", "upsert"]
    columns: tuple[str, ...]
    include_deleted: bool
    registers: str | None
    """The dataset that the output becomes a version of."""
    sorted_by: tuple[SortKey, ...] = ()
    partition_by: tuple[str, ...] = ()
    """The columns by whose values rows go to folders."""
    file_per: PlannedExpression | None = None
    """There is one file for each value."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Writing, and registering where it does so."""
        return ("cap.clew.output.v1", *(("cap.clew.register_dataset.v1",) if self.registers else ()))

    @property
    def upsert_by(self) -> tuple[str, ...]:
        """The columns by which rows are the same, for the mode upsert."""
        return tuple(json.loads(dict(self.destination.options).get(UPSERT_BY, "[]")))

    @property
    def adds_columns(self) -> bool:
        """Whether columns that a table does not have are added to it."""
        return dict(self.destination.options).get(NEW_COLUMNS) == "add"

    @property
    def creates(self) -> str:
        """What it may create in a catalog: nothing, the table, or its schema too."""
        return dict(self.destination.options).get(CREATE_MISSING, "table")

    @property
    def summary(self) -> str:
        """How many columns it writes, and in which mode."""
        return f"writes {len(self.columns)} columns, {self.mode}"

    def details(self) -> Iterator[Detail]:
        """Its rows, its destination and its columns."""
        yield words.selected(self.selector)
        yield Detail("writes", (self.destination.described, _MODES[self.mode]))
        yield Detail("deleted", ("rows are written too" if self.include_deleted else "rows are not written",))
        yield Detail("columns", (words.enumerated(self.columns),))
        if self.sorted_by:
            yield Detail("sorted by", (words.enumerated(key.text for key in self.sorted_by),))
        if self.partition_by:
            yield Detail("folders by", (words.enumerated(self.partition_by),))
        if self.file_per is not None:
            yield Detail("a file for each", (self.file_per.text,))
        if self.registers:
            yield Detail("becomes", (f"the next version of the dataset {self.registers}",))

    def lineage_after(self, state: LineageState) -> LineageState:
        """The working dataset stays as it is."""
        return state

    @property
    def writes_output(self) -> bool:
        """That is what it is for."""
        return True

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns that it writes, and those by which it arranges rows."""
        return tuple(dict.fromkeys((*self.columns, *(key.column for key in self.sorted_by))))


def plan_output(context: Context, operation: "Output") -> PlannedOperation[OutputStep]:
    """The step of an output. The working dataset stays as it is."""
    arguments = operation.arguments
    selector = context.expressions.selector(operation.selector, context.scope()) if operation.selector else None
    columns = _columns(context, operation)
    registers = arguments.register_as_dataset
    if registers is not None and not is_label(registers):
        problem = f'a dataset cannot be registered as "{registers}": the name may have letters, digits, . _ and - only'
        span = arguments.place("register_as_dataset")
        context.problems.report(INVALID_VALUE.at(span, problem=problem, hint="choose another name"))
    keys = _upsert_keys(context, operation, columns)
    order = sort_keys(arguments.sort, context.scope(), context.problems)
    file_per = _file_per(context, operation)
    folders = () if columns is None else _folders(context, operation, columns)
    is_wrong = (operation.selector and selector is None) or len(order) < len(arguments.sort) or folders is None
    is_wrong |= arguments.file_per is not None and file_per is None
    if is_wrong or columns is None or keys is None or folders is None:
        return PlannedOperation(None, context.state)
    target = arguments.destination.target
    further: dict[str, Scalar] = {UPSERT_BY: json.dumps(keys)} if keys else {}
    if arguments.new_columns.value == "add":
        further[NEW_COLUMNS] = "add"
    step = OutputStep(
        **context.identity(operation),
        selector=selector,
        reads=reads([("selector", selector), ("file_per", file_per)]),
        adds=(),
        destination=Destination(
            target.datasource_id, target.table, target.path, target.format, _options({**target.options, **further})
        ),
        mode=arguments.write_mode.value,
        columns=columns,
        include_deleted=arguments.include_deleted,
        registers=context.catalogue.registered_id(registers) if registers is not None else None,
        sorted_by=order,
        partition_by=folders,
        file_per=file_per,
    )
    return PlannedOperation(step, context.state)


def _columns(context: Context, operation: "Output") -> tuple[str, ...] | None:
    written = operation.arguments.columns
    if written is None:
        system = (*_WRITTEN_BY_DEFAULT, *(("_deleted",) if operation.arguments.include_deleted else ()))
        return (*(column.name for column in context.state.schema.visible), *system)
    named = tuple(context.own_name(name) for name in written)
    known = context.state.schema.types
    is_right = True
    for index, name in enumerate(named):
        span = operation.arguments.place("columns", index)
        if name not in known:
            if context.state.is_opaque:
                continue
            hint = context.column_elsewhere(name) or did_you_mean(name, known)
            context.problems.report(UNKNOWN_COLUMN.at(span, column=name, table=context.state.table, hint=hint))
            is_right = False
        elif name in named[:index]:
            context.problems.report(DUPLICATE_COLUMN.at(span, column=name))
            is_right = False
    return named if is_right else None


def _file_per(context: Context, operation: "Output") -> PlannedExpression | None:
    """What each file is for: something that can be written in its name."""
    text = operation.arguments.file_per
    if text is None:
        return None
    planned = context.expressions.value(text, context.scope(), "in file_per", None)
    if planned is not None and planned.tree.type.kind in {Kind.DOUBLE, Kind.TIMESTAMP}:
        problem = f"no file is called by a {planned.tree.type}"
        hint = "write a text, an exact number, a date or a truth value"
        context.problems.report(INVALID_VALUE.at(operation.arguments.place("file_per"), problem=problem, hint=hint))
        return None
    return planned


def _folders(context: Context, operation: "Output", columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """The columns of partitions; None where the output cannot be divided by them."""
    named = tuple(context.own_name(name) for name in operation.arguments.partition_by)
    for index, name in enumerate(named):
        problem = None
        if name not in columns or name == "_row_id":
            problem = f'partition_by names "{name}", which is not a column that the output writes'
        elif name in named[:index]:
            problem = f'partition_by names "{name}" twice'
        elif len(columns) == len(named):
            problem = "partition_by names all columns, so that files would have none"
        if problem is not None:
            hint = did_you_mean(name, columns) or "list some of the columns of the output"
            place = operation.arguments.place("partition_by", index)
            context.problems.report(INVALID_VALUE.at(place, problem=problem, hint=hint))
            return None
    return named


def _upsert_keys(context: Context, operation: "Output", columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The keys of an upsert; None where the output does not have what its mode needs."""
    arguments = operation.arguments
    if columns is None:
        return None
    if arguments.write_mode.value == "replace_period" and PERIOD_COLUMN not in columns:
        problem = "the mode replace_period needs the column _period, by which the rows of a period are found"
        span = arguments.place("columns") if arguments.columns is not None else arguments.span
        context.problems.report(INVALID_VALUE.at(span, problem=problem, hint="add _period to columns"))
        return None
    named = tuple(context.own_name(name) for name in arguments.upsert_by or ())
    for index, name in enumerate(named):
        if name not in columns or name == "_row_id":
            problem = f'upsert_by names "{name}", which is not a column of the output that stays the same'
            hint = did_you_mean(name, columns) or "list columns of the output"
            context.problems.report(INVALID_VALUE.at(arguments.place("upsert_by", index), problem=problem, hint=hint))
            return None
    return named


def _options(options: Mapping[str, "Scalar"]) -> tuple[tuple[str, str], ...]:
    """Options as Spark takes them. One without a value is one that is not set."""
    return tuple(sorted((name, _option_text(value)) for name, value in options.items() if value is not None))


def _option_text(value: "Scalar") -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
