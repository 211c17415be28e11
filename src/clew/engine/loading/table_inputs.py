"""Delta and Iceberg tables as sources: the version that counts, and how its files show the rows of a dataset.

What is pinned is a version: its files where they lie, the columns of the dataset in them, and which rows are deleted.
Nothing is copied, unless reading the files later would not give what was loaded; then the reason is on record.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from clew.deferred import dataclass
from clew.definitions import FilesDatasource
from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import NOT_KNOWN_THEN
from clew.engine.loading.conversions import RawCell, TypedCell
from clew.engine.loading.files import local_folder
from clew.engine.loading.periods import periods_read
from clew.engine.loading.sources import PinRequest, TablePolicy, unavailable
from clew.engine.loading.table_files import (
    MOST_FILES,
    FileFacts,
    FoundTable,
    columns_of_table,
    constant_of,
    deleted_positions,
    excluded_file,
    facts_of_files,
    is_read_alike,
    view_of,
)
from clew.lang.types import Kind
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.runs.known_then import shown
from clew.storage.drafts import Draft
from clew.storage.parts import FileView, PartFile, SourceRead
from clew.storage.roots import storage_at
from clew.storage.tables.iceberg_tags import remove_tag, tag_of, tag_snapshot
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import DataFile, TableColumn, TableFormat, TableProblem
from clew.storage.tables.table_versions import LocatedTable, option_then, read_snapshot, table_folder, version_option

Locate = Callable[[ResolvedSource], LocatedTable]
"""Says where the table of a source lies. UnsupportedTable where its own files will not do."""
TABLE_FORMATS: Mapping[str, TableFormat] = {"delta": "delta", "iceberg": "iceberg"}


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


def with_versions_then(request: PinRequest, at: datetime) -> PinRequest:
    """The request with sources that name the versions of their tables that were the newest at a time.

    A rule that names a version itself is left as it is. UserError NotKnownThen where a table does not say.
    """
    sources = list[ResolvedSource]()
    for source in request.sources:
        table = table_at_path(request, source)
        try:
            option = source.options or option_then(table, at)
        except TableProblem as problem:
            told = f"the version of the table {source.location} is not known: {problem}"
            raise UserError(NOT_KNOWN_THEN.anywhere(problem=told, at=shown(at))) from None
        sources.append(replace(source, options=option))
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
        columns, cells = columns_of_table(use, table)
        wanted = periods_read(request.period, request.periods) if use.temporal_mode == "period" else None
        listed = [file for file in table.snapshot.files if _may_count(file, table, columns, wanted)]
        tied += [use.temporal_mode != "period" or _is_tied(file, table, columns) for file in listed]
        reasons += _reasons(use, table, cells, listed)
        if request.table_policy.copies_short_lived and is_short_lived(table, request.table_policy):
            reasons.append(retention_note(table))
        facts = facts_of_files(table, listed)
        for file, found in zip(listed, facts, strict=True):
            if not found.rows:
                continue
            view = view_of(use, table, columns, file, found)
            may_miss |= _may_miss(use, view, found)
            positions = deleted_positions(table, file, found.rows)
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
    if len(files) > MOST_FILES:
        reasons.append(f"it has {len(files):,} files, and a question about its rows would look into each of them")
    if request.table_policy.copies:
        reasons.insert(0, "the environment says so")
    return TableInput(
        files=tuple(files),
        excluded=excluded_file(draft, excluded),
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


def _is_tied(file: DataFile, table: FoundTable, columns: Mapping[str, TableColumn]) -> bool:
    if PERIOD_COLUMN not in columns:
        return table.origin.period is not None
    return constant_of(file, columns[PERIOD_COLUMN])[0]


def _may_count(
    file: DataFile, table: FoundTable, columns: Mapping[str, TableColumn], wanted: Sequence[str] | None
) -> bool:
    """Whether a file may have rows of the periods that are wanted."""
    if wanted is None:
        return True
    if PERIOD_COLUMN not in columns:
        return table.origin.period is None or table.origin.period in wanted
    is_known, value = constant_of(file, columns[PERIOD_COLUMN])
    return not is_known or value is None or value in wanted


def _reasons(use: DatasetUse, table: FoundTable, cells: Mapping[str, RawCell], files: Sequence[DataFile]) -> list[str]:
    """Why rows must be copied: reading the files later would not give what was loaded."""
    reasons = list[str]()
    if use.temporal_mode == "bitemporal":
        reasons.append("the dataset is bitemporal, and its rows are chosen by their days while they are loaded")
    for column in use.columns:
        cell = cells.get(column.name)
        if isinstance(cell, TypedCell) and not is_read_alike(cell.type, column.type):
            reasons.append(f'column "{column.name}" is {cell.type} in the table and {column.type} in the dataset')
        is_constant = any(constant_of(file, _named(table, column.name))[0] for file in files)
        if column.type.kind is Kind.TIMESTAMP and is_constant:
            reasons.append(f'the table is partitioned by the timestamp "{column.name}"')
    return reasons


def _named(table: FoundTable, name: str) -> TableColumn | None:
    return next((column for column in table.snapshot.columns if column.name == name), None)


def _may_miss(use: DatasetUse, view: FileView, facts: FileFacts) -> set[str]:
    missing = set[str]()
    for column in use.columns:
        found = view.column(column.name)
        if column.nullable or found is None:
            continue
        has_all = found.value is not None if found.stored is None else facts.nulls.get(found.stored) == 0
        if not has_all:
            missing.add(column.name)
    return missing
