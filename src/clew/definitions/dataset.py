"""Datasets: logical tables, without where their data lives."""

from collections.abc import Iterator
from enum import StrEnum

from clew.definitions.checks import CHECKS, Check
from clew.definitions.shapes import (
    COLUMN_TYPE,
    FLAG,
    NAME,
    SLUG,
    TEXT,
    Choice,
    Definition,
    ListOf,
    Located,
    Record,
    Whole,
    key,
    record,
)
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE, RESERVED_COLUMN
from clew.lang.column_names import reserved_because
from clew.lang.types import DATE, STRING, Type

RESERVED_COLUMNS = ("_row_id", "_deleted", "_trace_id", "_labels")
"""Columns that every row has without being declared."""

PERIOD_COLUMN = "_period"
PERIOD_FROM_COLUMN = "_period_from"
PERIOD_TO_COLUMN = "_period_to"


class Status(StrEnum):
    """Whether a definition is ready for use."""

    DRAFT = "draft"
    ACTIVE = "active"
    INACTIVE = "inactive"


class TemporalMode(StrEnum):
    """How rows belong to periods."""

    PERIOD = "period"
    """Each row names its period in `_period`."""
    BITEMPORAL = "bitemporal"
    """Each row holds from `_period_from` until before `_period_to`."""
    NONE = "none"
    """Rows belong to every period."""


class Privacy(StrEnum):
    """Why access to the values of a column is restricted."""

    PERSONAL = "personal"
    SECRET = "secret"  # noqa: S105 - a word of the file format


@record("a column")
class ColumnDefinition(Located):
    """A column of a table."""

    name: str = key(NAME, "The name, as expressions use it.")
    type: Type = key(COLUMN_TYPE, "string, integer, decimal, decimal(p,s), double, boolean, date or timestamp.")
    nullable: bool = key(FLAG, "Whether values may be missing.", default=True)
    privacy: Privacy | None = key(
        Choice(Privacy), "Marks values that only some roles see, and that captures leave out or mask.", default=None
    )
    description: str = key(TEXT, "What the column holds.", default="")


_SYSTEM_COLUMNS = {
    TemporalMode.PERIOD: (ColumnDefinition(name=PERIOD_COLUMN, type=STRING, nullable=False),),
    TemporalMode.BITEMPORAL: (
        ColumnDefinition(name=PERIOD_FROM_COLUMN, type=DATE, nullable=False),
        ColumnDefinition(name=PERIOD_TO_COLUMN, type=DATE),
    ),
    TemporalMode.NONE: (),
}
_TYPES_OF_SYSTEM_COLUMNS = {
    PERIOD_COLUMN: (STRING,),
    PERIOD_FROM_COLUMN: (DATE, STRING),
    PERIOD_TO_COLUMN: (DATE, STRING),
}


@record("a table")
class TableDefinition(Located):
    """The table of a dataset."""

    name: str = key(NAME, "The name that expressions put before a column: `table.column`.")
    temporal_mode: TemporalMode = key(Choice(TemporalMode), "How rows belong to periods.", default=TemporalMode.NONE)
    columns: tuple[ColumnDefinition, ...] = key(
        ListOf(Record(ColumnDefinition), "columns", at_least=1),
        "The columns. The ones that the temporal mode brings along need not be listed.",
    )

    @property
    def all_columns(self) -> tuple[ColumnDefinition, ...]:
        """The declared columns and, after them, those that the temporal mode brings along."""
        declared = {column.name.casefold() for column in self.columns}
        return (*self.columns, *(c for c in _SYSTEM_COLUMNS[self.temporal_mode] if c.name not in declared))

    def column(self, name: str) -> ColumnDefinition | None:
        """The column of this name, upper and lower case taken as equal."""
        folded = name.casefold()
        return next((column for column in self.all_columns if column.name.casefold() == folded), None)

    def check(self) -> Iterator[Diagnostic]:
        """Names are unique, and those that Clew keeps for itself are left alone."""
        seen: set[str] = set()
        for column in self.columns:
            folded = column.name.casefold()
            if folded in seen:
                yield DUPLICATE_COLUMN.at(column.place("name"), column=column.name)
            seen.add(folded)
            yield from self._reserved(column, folded)

    def _reserved(self, column: ColumnDefinition, name: str) -> Iterator[Diagnostic]:
        allowed_here = {system.name for system in _SYSTEM_COLUMNS[self.temporal_mode]}
        types = _TYPES_OF_SYSTEM_COLUMNS.get(name, ())
        reason = reserved_because(name)
        if reason is not None:
            yield INVALID_VALUE.at(column.place("name"), problem=f'no column can be called "{column.name}": {reason}')
        elif name in RESERVED_COLUMNS or (types and name not in allowed_here):
            action = f"declared in a table whose temporal_mode is {self.temporal_mode}" if types else "declared"
            yield RESERVED_COLUMN.at(column.place("name"), column=column.name, action=action)
        elif types and column.type not in types:
            expected = " or ".join(str(each) for each in types)
            problem = f'the type of "{column.name}" is {expected}, not {column.type}'
            yield INVALID_VALUE.at(
                column.place("type"), problem=problem, hint="correct the type, or leave the column out"
            )


@record("a dataset")
class Dataset(Definition):
    """A logical table: its columns, how its rows belong to periods, and what identifies them."""

    id: str = key(SLUG, "The id, unique among datasets.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the dataset holds.", default="")
    version: int = key(Whole(1), "The version of the definition.", default=1)
    status: Status = key(Choice(Status), "Only an active dataset can be used.", default=Status.ACTIVE)
    resolver_id: str | None = key(
        NAME, "The resolver that says where the data is; by default the default resolver.", default=None
    )
    natural_key: tuple[str, ...] = key(ListOf(NAME, "columns"), "The columns that together identify a row.", default=())
    may_be_empty: bool = key(
        FLAG, "Whether a run that has the dataset as its input may find no rows for its period.", default=False
    )
    main_table: TableDefinition = key(Record(TableDefinition), "The table.")
    adjusts: str | None = key(
        NAME,
        "The dataset that its rows correct by hand; projects apply them by `use: {fragment: ID, as: ALIAS}`.",
        default=None,
    )
    checks: tuple[Check, ...] = key(
        CHECKS, "What must be true of its rows, when they are loaded and when an output registers them.", default=()
    )

    def check(self) -> Iterator[Diagnostic]:
        """The natural key names columns of the table."""
        return key_problems(self, self.natural_key, self.main_table)


def key_problems(holder: Located, natural_key: tuple[str, ...], table: TableDefinition) -> Iterator[Diagnostic]:
    """What is wrong with the natural key of a dataset."""
    names = {column.name.casefold(): column.name for column in table.all_columns}
    seen: set[str] = set()
    for position, name in enumerate(natural_key):
        place = holder.place("natural_key", position)
        if name.casefold() not in names:
            hint = did_you_mean(name, names.values()) or f"the columns are {', '.join(names.values())}"
            yield UNKNOWN_COLUMN.at(place, column=name, table=table.name, hint=hint)
        elif name.casefold() in seen:
            yield DUPLICATE_COLUMN.at(place, column=name, hint="remove one of them")
        seen.add(name.casefold())
