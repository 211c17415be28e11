"""One version of a table: its identity, its columns, its data files, and the rows of these that are deleted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal

from clew.deferred import dataclass

TableFormat = Literal["delta", "iceberg"]
ROW_ID_COLUMNS: Mapping[str, str] = {"delta": "_row_id", "iceberg": "_clew_row_id"}
"""Where outputs keep the row ids of their rows. Iceberg reserves `_row_id` for ids of its own."""
Positions = Callable[[], Sequence[int]]
"""Reads which rows of a file are deleted: positions, ascending."""


class UnsupportedTable(Exception):
    """A table that cannot be read by its own files alone, with the reason. Its connector may be able to."""


class TableProblem(Exception):
    """A table that is not there, or whose metadata is incomplete or damaged, with the reason."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: str
    """As Spark calls it; a word that Spark does not know where the type has no counterpart."""
    stored: str
    """What files call it that do not number their columns."""
    field_id: int | None = None
    """The number under which files know it, whatever they call it."""
    default: str | None = None
    """What rows have whose file was written before the column was added."""


@dataclass(frozen=True, slots=True)
class TableWriter:
    """A run of Clew, and the step by which it has committed to a table."""

    run_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    address: str
    """An absolute path of this machine, or an address with a scheme."""
    size: int
    values: Mapping[str, str | None] = field(default_factory=dict)
    """Columns that have one value in all of its rows, as text: those that the table is partitioned by."""
    deleted: Positions | None = None
    first_row_id: int | None = None
    """The table's own id of its first row, from which the others count on."""
    written_by: TableWriter | None = None
    """The run that has committed it, where that was one of Clew's and the metadata still says so."""


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One version of a table."""

    format: TableFormat
    version: int
    """Delta's version, or the id of Iceberg's snapshot."""
    table_id: str
    schema_id: str
    digest: str
    """Of the file that defines the version: `sha256:...`."""
    columns: tuple[TableColumn, ...]
    files: tuple[DataFile, ...]
    row_id_column: str | None = None
    """Delta's column of files in which rows that were moved keep their own ids; Iceberg's has a number."""
    kept_hours: float | None = None
    """How long the format's housekeeping keeps files that a later version no longer has; None where only people
    decide that."""

    @property
    def shown(self) -> str:
        """The version in words."""
        return f"version {self.version}" if self.format == "delta" else f"snapshot {self.version}"
