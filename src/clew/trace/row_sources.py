"""Where rows are read from: files that give ordinals by position, and written states that hold them."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Mapping
from functools import cached_property

from clew.deferred import dataclass
from clew.lang.types import INTEGER, STRING, Type
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID, Part, PartFile, ViewColumn
from clew.storage.row_identity import place_of
from clew.trace.run_parts import STATE_COLUMNS
from clew.trace.sql import Sql, joined, parquet, quoted, sql_type, typed_column

_POSITION = "file_row_number"
"""The column that DuckDB adds with the position of a row in its file."""

_OWN_POSITION = "__file_row_number"
"""What a column of that name in a file is called meanwhile."""

RowBounds = tuple[int, int | None]
"""The least and the greatest ordinal that is asked for; None if there is no greatest."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of one file that have their ordinals from their positions."""

    file: PartFile
    columns: frozenset[str]
    defaults: tuple[tuple[str, Sql], ...]
    """Columns that the file may lack or leave empty, and what they are then."""
    periods: frozenset[str] | None = None
    """The periods whose rows count; None if all do."""
    excluded: PartFile | None = None
    """A file with the ordinals of rows that do not count; None if all do."""


def excluded_from(part: Part, file: PartFile) -> PartFile | None:
    """The file that says which rows of a file of a pinned table do not count; None if all do."""
    return part.excluded if file.skipped else None


@dataclass(frozen=True)
class StateSource:
    """The state after a step, as a part of changes holds it."""

    files: TraceFiles
    part: Part
    bounds: RowBounds

    @property
    def read(self) -> list[PartFile]:
        """The files that a query over it reads."""
        return list(self.part.files)

    def select(self, types: Mapping[str, Type]) -> Sql:
        """Ordinals and these columns of the rows in the range."""
        columns = "".join(f", {self._column(name, type_)} AS {quoted(name)}" for name, type_ in types.items())
        table = parquet([self.files.source(file) for file in self.part.files])
        low, high = self.bounds
        within = Sql(f" WHERE {ORDINAL} >= ?", (low,))
        if high is not None:
            within += Sql(f" AND {ORDINAL} <= ?", (high,))
        return f"SELECT {ORDINAL}{columns} FROM " + table + within

    def _column(self, name: str, type_: Type) -> str:
        if name in {*dict(self.part.columns), *dict(STATE_COLUMNS)}:
            return typed_column(name, type_)
        return f"CAST(NULL AS {sql_type(type_)})"


@dataclass(frozen=True)
class FileSource:
    """The rows of one file."""

    files: TraceFiles
    origin: FileRows
    bounds: RowBounds

    @property
    def read(self) -> list[PartFile]:
        """The files that a query over it reads."""
        excluded = self.origin.excluded
        return [self.origin.file] if excluded is None else [self.origin.file, excluded]

    @cached_property
    def positions(self) -> tuple[int, int]:
        """The first and the last position of the file in the range."""
        number = self.origin.file.ordinal or 0
        first, last = 0, self.origin.file.rows - 1
        low, high = self.bounds
        if place_of(low)[0] == number:
            first = place_of(low)[1]
        elif place_of(low)[0] > number:
            first = last + 1
        if high is not None:
            if place_of(high)[0] == number:
                last = min(last, place_of(high)[1])
            elif place_of(high)[0] < number:
                last = -1
        return first, last

    @property
    def counts_all(self) -> bool:
        """Whether all rows count, so that their ordinals are known without reading."""
        return self.origin.periods is None and self.origin.excluded is None

    @property
    def ordinals(self) -> range:
        """The ordinals in the range."""
        base = self.origin.file.first_ordinal
        first, last = self.positions
        return range(base + first, base + last + 1)

    @property
    def is_outside(self) -> bool:
        """Whether the file has no row in the range."""
        return self.positions[0] > self.positions[1]

    def select(self, types: Mapping[str, Type]) -> Sql:
        """Ordinals and these columns of the rows in the range."""
        base = self.origin.file.first_ordinal
        columns = [", " + self._column(name, type_) + f" AS {quoted(name)}" for name, type_ in types.items()]
        table = self._numbered()
        within = Sql(f" WHERE {_POSITION} BETWEEN ? AND ?", self.positions)
        if self.origin.periods is not None:
            period = self._column("_period", STRING)
            within += Sql(" AND list_contains(?, ", (sorted(self.origin.periods),)) + period + ")"
        if self.origin.excluded is not None:
            excluded = parquet([self.files.source(self.origin.excluded)])
            within += f" AND {base} + {_POSITION} NOT IN (SELECT {ORDINAL} FROM " + excluded + ")"
        return f"SELECT {base} + {_POSITION} AS {ORDINAL}" + joined("", columns) + " FROM " + table + within

    def _numbered(self) -> Sql:
        """The rows with their positions, which DuckDB adds unless a column of the file has the name it gives them."""
        path = [self.files.source(self.origin.file)]
        names = self.files.stored_columns(self.origin.file)
        own = next((name for name in names if name.casefold() == _POSITION), None)
        if own is None:
            return parquet(path, f", {_POSITION} = true")
        renamed = f"* RENAME ({quoted(own)} AS {quoted(_OWN_POSITION)})"
        return f"(SELECT {renamed}, row_number() OVER () - 1 AS {_POSITION} FROM " + parquet(path) + ")"

    def _column(self, name: str, type_: Type) -> Sql:
        default = dict(self.origin.defaults).get(name)
        if name not in self.origin.columns:
            return default or Sql(f"CAST(NULL AS {sql_type(type_)})")
        stored = self._stored(name, type_)
        return stored if default is None else "coalesce(" + stored + ", " + default + ")"

    def _stored(self, name: str, type_: Type) -> Sql:
        """A column that the file has, or all rows of it."""
        file = self.origin.file
        if file.view is None:
            return _named(name, type_)
        if name == SOURCE_FILE:
            return Sql("?", (file.shown,))
        if name == SOURCE_LINE:
            return Sql(f"({_POSITION} + 1)")
        column = file.view.column(name)
        if name == SOURCE_ROW_ID:
            return _row_id(file, column)
        if column is not None and column.stored is not None:
            return _named(column.stored, type_)
        return Sql(f"CAST(? AS {sql_type(type_)})", (None if column is None else column.value,))


def _row_id(file: PartFile, column: ViewColumn | None) -> Sql:
    """The table's own id of a row: the one that it was moved with, or that of its position."""
    counted = "NULL" if file.first_row_id is None else f"{file.first_row_id} + {_POSITION}"
    kept = "NULL" if column is None or column.stored is None else typed_column(column.stored, INTEGER)
    return Sql(f"CAST(coalesce({kept}, {counted}) AS BIGINT)")


def _named(name: str, type_: Type) -> Sql:
    return Sql(typed_column(_OWN_POSITION if name.casefold() == _POSITION else name, type_))


RowSource = StateSource | FileSource
