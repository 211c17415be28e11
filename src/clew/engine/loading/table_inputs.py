"""Delta and Iceberg tables as sources: the version that counts, and how its files show the rows of a dataset.

What is pinned is a version: its files where they lie, the columns of the dataset in them, and which rows are deleted.
Nothing is copied, unless reading the files later would not give what was loaded; then the reason is on record.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from clew.definitions import FilesDatasource
from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading.columnar import cells_of
from clew.engine.loading.conversions import RawCell, TextCell, TypedCell, holds_all
from clew.engine.loading.files import local_folder
from clew.engine.loading.periods import periods_read
from clew.engine.loading.sources import Origin, PinRequest, TablePolicy, positions_of, unavailable
from clew.engine.sql import quoted
from clew.lang.types import Kind, Type
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.drafts import Draft
from clew.storage.parts import ORDINAL, SOURCE_ROW_ID, FileView, PartFile, SourceRead, ViewColumn
from clew.storage.roots import storage_at
from clew.storage.tables.iceberg_tags import remove_tag, tag_of, tag_snapshot
from clew.storage.tables.table_places import TablePlace, is_remote
from clew.storage.tables.table_snapshot import (
    DataFile,
    TableColumn,
    TableFormat,
    TableProblem,
    TableSnapshot,
    UnsupportedTable,
)
from clew.storage.tables.table_versions import LocatedTable, read_snapshot, table_folder, version_option

Locate = Callable[[ResolvedSource], LocatedTable]
"""Says where the table of a source lies. UnsupportedTable where its own files will not do."""
TABLE_FORMATS: Mapping[str, TableFormat] = {"delta": "delta", "iceberg": "iceberg"}
_THREADS = 8
_MOST_FILES = 1_000
"""Files up to which rows are read where they lie: a question about rows looks into each of them."""
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


def find_tables(request: PinRequest, locate: Locate) -> list[FoundTable]:
    """The tables of all sources. UnsupportedTable where one takes its connector to read."""
    return [_found(source, locate(source)) for source in request.sources]


def with_versions(request: PinRequest) -> PinRequest:
    """The request with sources that name the newest version of their tables, for the connectors of the formats."""
    sources = list[ResolvedSource]()
    for source in request.sources:
        table = table_at_path(request, source)
        try:
            option = version_option(table.place, table.format, table.metadata)
        except TableProblem as problem:
            raise unavailable(f"cannot read {source.location} as {source.format}: {problem}") from None
        sources.append(replace(source, options=source.options or option))
    return replace(request, sources=tuple(sources))


def table_at_path(request: PinRequest, source: ResolvedSource) -> LocatedTable:
    """The table that a path names: its folder, or its metadata file."""
    datasource = request.datasources[source.datasource_id]
    assert isinstance(datasource, FilesDatasource)  # noqa: S101 - the caller has looked
    location, metadata = table_folder(source.location.strip("/"), TABLE_FORMATS[source.format])
    folder = local_folder(datasource, request.workspace_root)
    if folder is not None:
        path = (folder / location).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise unavailable(f"{source.location} is not below the root of {source.datasource_id}")
        place = TablePlace(storage_at(path), str(path))
    else:
        root = request.root_of(datasource).below(location)
        place = TablePlace(root, root.address)
    known = None if metadata is None else place.below(metadata.removeprefix(location + "/"))
    return LocatedTable(place, location, TABLE_FORMATS[source.format], known)


def _found(source: ResolvedSource, table: LocatedTable) -> FoundTable:
    try:
        snapshot = read_snapshot(table.place, table.format, source.options, table.metadata)
    except TableProblem as problem:
        raise unavailable(f"cannot read {source.location} as {table.format}: {problem}") from None
    return FoundTable(source, table.place, snapshot, f"{table.shown} {snapshot.shown}")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the footer of a file says."""

    rows: int
    names: frozenset[str]
    by_id: Mapping[int, str]
    nulls: Mapping[str, int | None]
    """How many rows have no value, by column; None where the file does not say."""


@dataclass(frozen=True, slots=True)
class TableInput:
    """The rows of a dataset in its tables."""

    files: tuple[PartFile, ...]
    excluded: PartFile | None
    cells: Mapping[str, RawCell]
    sources: tuple[SourceRead, ...]
    is_tied: bool
    """Whether all rows are known to be of the periods that count."""
    may_miss: frozenset[str]
    """Columns that must have a value, and for which the files do not say that all rows have one."""
    reason_to_copy: str | None


def table_input(request: PinRequest, tables: Sequence[FoundTable], draft: Draft) -> TableInput:
    """Look at the files of tables. Rows that do not count are written to the draft, where there are any."""
    use = request.use
    files, reasons = list[PartFile](), list[str]()
    excluded, may_miss = list[int](), set[str]()
    tied = list[bool]()
    cells: Mapping[str, RawCell] = {}
    for table in tables:
        columns, cells = _columns(use, table)
        wanted = periods_read(request.period, request.periods) if use.temporal_mode == "period" else None
        listed = [file for file in table.snapshot.files if _may_count(file, table, columns, wanted)]
        tied += [use.temporal_mode != "period" or _is_tied(file, table, columns) for file in listed]
        reasons += _reasons(use, table, cells, listed)
        if request.table_policy.copies_short_lived and is_short_lived(table, request.table_policy):
            reasons.append(retention_note(table))
        facts = _footers(table, listed)
        for file, found in zip(listed, facts, strict=True):
            if not found.rows:
                continue
            view = _view(use, table, columns, file, found)
            may_miss |= _may_miss(use, view, found)
            positions = _positions(table, file, found.rows)
            described = PartFile(
                path=file.address,
                rows=found.rows,
                size=file.size,
                sha256="",
                ordinal=request.first_file_ordinal + len(files),
                view=view,
                skipped=len(positions),
                first_row_id=file.first_row_id,
            )
            files.append(described)
            excluded += [described.first_ordinal + each for each in positions]
    if len(files) > _MOST_FILES:
        reasons.append(f"it has {len(files):,} files, and a question about its rows would look into each of them")
    if request.table_policy.copies:
        reasons.insert(0, "the environment says so")
    return TableInput(
        files=tuple(files),
        excluded=_written(draft, excluded),
        cells=cells,
        sources=tuple(table.read for table in tables),
        is_tied=all(tied),
        may_miss=frozenset(may_miss),
        reason_to_copy=reasons[0] if reasons else None,
    )


def is_short_lived(table: FoundTable, policy: TablePolicy) -> bool:
    """Whether housekeeping of a table may delete files of a version while runs that read it are still kept."""
    kept_hours = table.snapshot.kept_hours
    if kept_hours is None or table.tag is not None or not table.snapshot.files:
        return False
    return policy.keep_days is None or kept_hours < policy.keep_days * 24


def retention_note(table: FoundTable) -> str:
    """How long a version can be relied on, in words."""
    snapshot, hours = table.snapshot, table.snapshot.kept_hours or 0
    kept = f"{hours / 24:g} days" if hours >= 24 else f"{hours:g} hours"
    if snapshot.format == "delta":
        return f"VACUUM may delete files of {snapshot.shown} {kept} after a later version has replaced them"
    untagged = "" if table.untagged is None else f"; no tag could be set: {table.untagged}"
    return f"expire_snapshots may delete {snapshot.shown} {kept} after it was made{untagged}"


def held(tables: Sequence[FoundTable], request: PinRequest) -> list[FoundTable]:
    """The tables, with tags on snapshots of Iceberg tables in folders, where the environment wants them."""
    return [_held(table, request) for table in tables]


def _held(table: FoundTable, request: PinRequest) -> FoundTable:
    policy, snapshot = request.table_policy, table.snapshot
    if not policy.tags or policy.copies or snapshot.format != "iceberg" or not snapshot.files:
        return table
    tag = tag_of(request.run_id, snapshot.version)
    try:
        tag_snapshot(table.place, snapshot.version, tag, policy.keep_days)
    except (TableProblem, OSError, ValueError, KeyError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        return replace(table, untagged=reason)
    return replace(table, tag=tag)


def let_go(tables: Sequence[FoundTable]) -> None:
    """Remove the tags again, as far as possible: nothing was pinned."""
    for table in tables:
        if table.tag is not None:
            with suppress(TableProblem, OSError, ValueError, KeyError):
                remove_tag(table.place, table.tag)


def _columns(use: DatasetUse, table: FoundTable) -> tuple[dict[str, TableColumn], dict[str, RawCell]]:
    """The table's columns for those of the dataset, after checking that their types serve."""
    known = table.snapshot.columns
    positions = positions_of(use, [column.name for column in known], table.origin)
    columns = {name: known[position] for name, position in positions.items()}
    _, cells = cells_of(use, tuple((column.name, column.type) for column in known), table.origin)
    return columns, {name: _renamed(cell, name) if name in columns else cell for name, cell in cells.items()}


def _renamed(cell: RawCell, name: str) -> RawCell:
    """A cell of rows that have the names of the dataset already."""
    return TypedCell(quoted(name), cell.type) if isinstance(cell, TypedCell) else TextCell(quoted(name))


def _value_of(file: DataFile, column: TableColumn | None) -> tuple[bool, str | None]:
    """Whether all rows of a file have one value in a column, and which."""
    if column is None or column.name not in file.values:
        return False, None
    return True, file.values[column.name]


def _is_tied(file: DataFile, table: FoundTable, columns: Mapping[str, TableColumn]) -> bool:
    if PERIOD_COLUMN not in columns:
        return table.origin.period is not None
    return _value_of(file, columns[PERIOD_COLUMN])[0]


def _may_count(
    file: DataFile, table: FoundTable, columns: Mapping[str, TableColumn], wanted: Sequence[str] | None
) -> bool:
    """Whether a file may have rows of the periods that are wanted."""
    if wanted is None:
        return True
    if PERIOD_COLUMN not in columns:
        return table.origin.period is None or table.origin.period in wanted
    is_known, value = _value_of(file, columns[PERIOD_COLUMN])
    return not is_known or value is None or value in wanted


def _reasons(use: DatasetUse, table: FoundTable, cells: Mapping[str, RawCell], files: Sequence[DataFile]) -> list[str]:
    """Why rows must be copied: reading the files later would not give what was loaded."""
    reasons = list[str]()
    if use.temporal_mode == "bitemporal":
        reasons.append("the dataset is bitemporal, and its rows are chosen by their days while they are loaded")
    if any(is_remote(file.address) for file in files):
        reasons.append("its files are in an object store, and readers have no credentials for it")
    for column in use.columns:
        cell = cells.get(column.name)
        if isinstance(cell, TypedCell) and not _is_read_alike(cell.type, column.type):
            reasons.append(f'column "{column.name}" is {cell.type} in the table and {column.type} in the dataset')
        is_constant = any(_value_of(file, _named(table, column.name))[0] for file in files)
        if column.type.kind is Kind.TIMESTAMP and is_constant:
            reasons.append(f'the table is partitioned by the timestamp "{column.name}"')
    return reasons


def _is_read_alike(source: str, target: Type) -> bool:
    """Whether every reader gets the same value out of a file without a conversion that could fail."""
    if target.kind is Kind.TIMESTAMP:
        return source in {"timestamp_ltz", "timestamp_ntz"}
    return holds_all(source, target)


def _named(table: FoundTable, name: str) -> TableColumn | None:
    return next((column for column in table.snapshot.columns if column.name == name), None)


# Files


def _footers(table: FoundTable, files: Sequence[DataFile]) -> list[_Facts]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="footers") as threads:
        return list(threads.map(lambda file: _facts(table, file), files))


def _facts(table: FoundTable, file: DataFile) -> _Facts:
    root, key = table.place.opened(file.address)
    try:
        size = root.stat(key).size
        with root.open_parquet(key) as opened:
            footer, schema = opened.metadata, opened.schema_arrow
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
    return _Facts(footer.num_rows, frozenset(schema.names), by_id, _nulls(footer))


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


def _view(
    use: DatasetUse, table: FoundTable, columns: Mapping[str, TableColumn], file: DataFile, facts: _Facts
) -> FileView:
    found = list[ViewColumn]()
    for name, column in columns.items():
        stored = _stored(column, facts)
        is_constant, value = _value_of(file, column)
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
    )


def _row_id_column(snapshot: TableSnapshot, facts: _Facts) -> str | None:
    """The column in which a file keeps the table's own ids of rows that were moved to it; None where it has none."""
    if snapshot.format == "iceberg":
        return facts.by_id.get(_ICEBERG_ROW_ID)
    return snapshot.row_id_column if snapshot.row_id_column in facts.names else None


def _stored(column: TableColumn, facts: _Facts) -> str | None:
    """What a file calls a column; None where it does not have it."""
    if column.field_id is None:
        return column.stored if column.stored in facts.names else None
    if not facts.by_id:
        raise UnsupportedTable("its files do not number their columns")
    return facts.by_id.get(column.field_id)


def _may_miss(use: DatasetUse, view: FileView, facts: _Facts) -> set[str]:
    missing = set[str]()
    for column in use.columns:
        found = view.column(column.name)
        if column.nullable or found is None:
            continue
        has_all = found.value is not None if found.stored is None else facts.nulls.get(found.stored) == 0
        if not has_all:
            missing.add(column.name)
    return missing


def _positions(table: FoundTable, file: DataFile, rows: int) -> Sequence[int]:
    if file.deleted is None:
        return ()
    try:
        positions = file.deleted()
    except (TableProblem, ValueError, OSError, pa.ArrowException) as problem:
        raise unavailable(f"cannot read the deleted rows of {table.title}: {problem}") from None
    if positions and positions[-1] >= rows:
        raise unavailable(f"{table.title} deletes row {positions[-1]:,} of {file.address}, which has {rows:,}")
    return positions


def _written(draft: Draft, excluded: list[int]) -> PartFile | None:
    if not excluded:
        return None
    table = pa.table({ORDINAL: pa.array(sorted(excluded), pa.int64())})
    with draft.create(_EXCLUDED_FILE) as file:
        pq.write_table(table, file, compression="zstd", row_group_size=100_000)
    key = f"{draft.folder}/{_EXCLUDED_FILE}"
    return PartFile(key, len(excluded), draft.root.stat(key).size, draft.root.sha256(key))
