"""What the files of a table hold: their rows, the columns of a dataset in them, and which rows are deleted."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from clew.deferred import dataclass
from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.columnar import cells_of
from clew.engine.loading.conversions import RawCell, TextCell, TypedCell, holds_all
from clew.engine.loading.sources import Origin, positions_of, unavailable
from clew.engine.sql import quoted
from clew.lang.types import Kind, Type
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.drafts import Draft
from clew.storage.parts import ORDINAL, SOURCE_ROW_ID, FileView, PartFile, SourceRead, ViewColumn
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import DataFile, TableColumn, TableProblem, TableSnapshot, UnsupportedTable

MOST_FILES = 1_000
"""Files up to which rows are read where they lie: a question about rows looks into each of them."""
_THREADS = 8
_EXCLUDED_FILE = "excluded.parquet"
_FIELD_ID = b"PARQUET:field_id"
_ICEBERG_ROW_ID = 2147483540
"""The number that Iceberg reserves for the column `_row_id`."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that a source means, in the version that counts."""

    source: ResolvedSource
    place: TablePlace
    snapshot: TableSnapshot
    title: str
    """Table and version, in words."""
    tag: str | None = None
    """The tag that holds the version."""
    untagged: str | None = None
    """Why no tag holds it, where one should."""

    @property
    def origin(self) -> Origin:
        """The table as messages name it, and the period that all of its rows have."""
        return Origin(self.title, self.source.period if self.source.holds_one_period else None)

    @property
    def read(self) -> SourceRead:
        """What is on record about it."""
        size = sum(file.size for file in self.snapshot.files)
        known = self.snapshot
        return SourceRead(self.title, size, f"{known.format}:{known.table_id}@{known.version}:{known.digest}")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the footer of a file says."""

    rows: int
    names: frozenset[str]
    by_id: Mapping[int, str]
    nulls: Mapping[str, int | None]
    """How many rows have no value, by column; None where the file does not say."""


def columns_of_table(use: DatasetUse, table: FoundTable) -> tuple[dict[str, TableColumn], dict[str, RawCell]]:
    """The table's columns for those of the dataset, after checking that their types serve."""
    known = table.snapshot.columns
    positions = positions_of(use, [column.name for column in known], table.origin)
    columns = {name: known[position] for name, position in positions.items()}
    _, cells = cells_of(use, tuple((column.name, column.type) for column in known), table.origin)
    return columns, {name: _renamed(cell, name) if name in columns else cell for name, cell in cells.items()}


def _renamed(cell: RawCell, name: str) -> RawCell:
    """A cell of rows that have the names of the dataset already."""
    return TypedCell(quoted(name), cell.type) if isinstance(cell, TypedCell) else TextCell(quoted(name))


def constant_of(file: DataFile, column: TableColumn | None) -> tuple[bool, str | None]:
    """Whether all rows of a file have one value in a column, and which."""
    if column is None or column.name not in file.values:
        return False, None
    return True, file.values[column.name]


def is_read_alike(source: str, target: Type) -> bool:
    """Whether every reader gets the same value out of a file without a conversion that could fail."""
    if target.kind is Kind.TIMESTAMP:
        return source in {"timestamp_ltz", "timestamp_ntz"}
    return holds_all(source, target)


def facts_of_files(table: FoundTable, files: Sequence[DataFile]) -> list[FileFacts]:
    """What the footers of files say. UserError where one is gone, or not the file that the table names."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="footers") as threads:
        return list(threads.map(lambda file: _facts(table, file), files))


def _facts(table: FoundTable, file: DataFile) -> FileFacts:
    root, key = table.place.opened(file.address)
    try:
        size = root.stat(key).size
        with root.open_parquet(key) as opened:
            footer, schema = opened.metadata, opened.schema_arrow
    except OutOfReach:
        raise
    except FileNotFoundError:
        problem = f"{table.title} names {file.address}, which is gone"
        hint = "the version was vacuumed or has expired while it was still the one to read: restore the table"
        raise unavailable(problem, hint) from None
    except (pa.ArrowException, OSError):
        raise unavailable(f"{table.title} names {file.address}, which cannot be read as Parquet") from None
    if size != file.size:
        raise unavailable(f"{file.address} has {size:,} bytes, and {table.title} says {file.size:,}")
    by_id = {
        int(each.metadata[_FIELD_ID]): each.name for each in schema if each.metadata and _FIELD_ID in each.metadata
    }
    return FileFacts(footer.num_rows, frozenset(schema.names), by_id, _nulls(footer))


def _nulls(footer: pq.FileMetaData) -> dict[str, int | None]:
    found = dict[str, int | None]()
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for position in range(group.num_columns):
            column = group.column(position)
            statistics = column.statistics
            count = statistics.null_count if statistics is not None and statistics.has_null_count else None
            before = found.get(column.path_in_schema, 0)
            found[column.path_in_schema] = None if count is None or before is None else before + count
    return found


def view_of(
    use: DatasetUse,
    table: FoundTable,
    columns: Mapping[str, TableColumn],
    file: DataFile,
    facts: FileFacts,
    further: Mapping[str, TableColumn] | None = None,
) -> FileView:
    """How a file shows the columns of a dataset, and further columns of the table under other names."""
    found = list[ViewColumn]()
    for name, column in (*columns.items(), *(further or {}).items()):
        stored = _stored(column, facts)
        is_constant, value = constant_of(file, column)
        if stored is not None:
            found.append(ViewColumn(name, column.type, stored))
        else:
            found.append(ViewColumn(name, column.type, None, value if is_constant else column.default))
    period = table.origin.period
    if use.temporal_mode == "period" and PERIOD_COLUMN not in columns and period is not None:
        found.append(ViewColumn(PERIOD_COLUMN, "string", None, period))
    kept = _row_id_column(table.snapshot, facts)
    if kept is not None:
        found.append(ViewColumn(SOURCE_ROW_ID, "bigint", kept))
    writer = file.written_by
    return FileView(
        title=table.title,
        base=table.place.address,
        columns=tuple(found),
        run_id=None if writer is None else writer.run_id,
        seq=None if writer is None else writer.seq,
        store=table.place.root.reach,
    )


def _row_id_column(snapshot: TableSnapshot, facts: FileFacts) -> str | None:
    """The column in which a file keeps the table's own ids of rows that were moved to it; None where it has none."""
    if snapshot.format == "iceberg":
        return facts.by_id.get(_ICEBERG_ROW_ID)
    return snapshot.row_id_column if snapshot.row_id_column in facts.names else None


def _stored(column: TableColumn, facts: FileFacts) -> str | None:
    """What a file calls a column; None where it does not have it."""
    if column.field_id is None:
        return column.stored if column.stored in facts.names else None
    if not facts.by_id:
        raise UnsupportedTable("its files do not number their columns")
    return facts.by_id.get(column.field_id)


def deleted_positions(table: FoundTable, file: DataFile, rows: int) -> Sequence[int]:
    """Which rows of a file the table says are deleted."""
    if file.deleted is None:
        return ()
    try:
        positions = file.deleted()
    except OutOfReach:
        raise
    except (TableProblem, ValueError, OSError, pa.ArrowException) as problem:
        raise unavailable(f"cannot read the deleted rows of {table.title}: {problem}") from None
    if positions and positions[-1] >= rows:
        raise unavailable(f"{table.title} deletes row {positions[-1]:,} of {file.address}, which has {rows:,}")
    return positions


def excluded_file(draft: Draft, excluded: Sequence[int]) -> PartFile | None:
    """Write the ordinals of rows that do not count to a draft; None where all count."""
    if not excluded:
        return None
    table = pa.table({ORDINAL: pa.array(sorted(excluded), pa.int64())})
    with draft.create(_EXCLUDED_FILE) as file:
        pq.write_table(table, file, compression="zstd", row_group_size=100_000)
    key = f"{draft.folder}/{_EXCLUDED_FILE}"
    return PartFile(key, len(excluded), draft.root.stat(key).size, draft.root.sha256(key))
