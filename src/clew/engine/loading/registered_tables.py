"""Pins datasets that are tables: the versions that outputs have committed and registered, where they lie.

Rows keep the row ids that they had in the runs that wrote them, in a column of the table, so that explanations and
lineage lead from a row to the very row that it was.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import SparkSession

from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading.accepting import nothing_to_load
from clew.engine.loading.periods import periods_read
from clew.engine.loading.sources import PinRequest, unavailable
from clew.engine.loading.table_files import (
    FoundTable,
    columns_of_table,
    deleted_positions,
    excluded_file,
    facts_of_files,
    view_of,
)
from clew.engine.loading.table_inputs import TABLE_FORMATS, held, is_short_lived, let_go, retention_note
from clew.engine.parts import DraftedPart
from clew.engine.session import tuned_for_few_rows
from clew.engine.sharing import require_sources_shared
from clew.engine.sql import text_literal
from clew.engine.table_rows import table_rows
from clew.plan.local_files import SourceFile
from clew.plan.resolution import ResolvedSource
from clew.runs.registry import RegisteredTable
from clew.storage.drafts import Draft, draft
from clew.storage.layout import part_folder
from clew.storage.parts import COUNTED_ROWS, DELETED_ROWS, WRITTEN_ROW_ID, Part, PartFile
from clew.storage.tables.iceberg_tags import TABLE_TAGS, tags_text
from clew.storage.tables.table_places import is_remote, place_at
from clew.storage.tables.table_snapshot import ROW_ID_COLUMNS, TableProblem, UnsupportedTable
from clew.storage.tables.table_versions import LocatedTable, version_at
from clew.trace.run_parts import periods_of

_SMALL = 1024 * 1024
"""Bytes. Up to here it takes longer to compile a query for the rows than to interpret it."""


def pin_registered_tables(
    spark: SparkSession, request: PinRequest, version: int, tables: Sequence[RegisteredTable]
) -> DraftedPart:
    """An input part over the files of tables, in the versions that were registered. Nothing is copied."""
    started = draft(request.storage_root, part_folder(request.run_id, "input", request.use.key))
    found = list[FoundTable]()
    try:
        found = held([_found(request, version, table) for table in tables], request)
        digests = {file: digest for table in tables for file, digest in table.digests}
        part = _part(request, version, found, digests, started)
        require_sources_shared(
            spark,
            [
                SourceFile(file.path, file.shown, file.size, is_local=True)
                for file in part.files
                if not is_remote(file.path)
            ],
        )
        part = _counted(spark, request, part)
        _require_rows(request, part, found)
    except BaseException:
        started.abandon()
        let_go(found)
        raise
    return DraftedPart(started, part)


def _require_rows(request: PinRequest, part: Part, tables: Sequence[FoundTable]) -> None:
    if not part.counted and not request.may_be_empty:
        raise nothing_to_load(request, [table.title for table in tables], sum(file.counted for file in part.files))


def _found(request: PinRequest, version: int, table: RegisteredTable) -> FoundTable:
    """A table in the version that was registered. UserError where that version is gone, or is not what it was."""
    what = f'version {version} of the dataset "{request.use.dataset_id}" is version {table.version} of {table.shown}'
    hint = f"run {table.run_id[:8]} has written it: restore the table, or run that project again"
    place = place_at(request.storage_root, table.address, table.store)
    located = LocatedTable(place, table.shown, TABLE_FORMATS[table.format], table.metadata)
    try:
        snapshot = version_at(located, table.version)
    except (TableProblem, UnsupportedTable) as problem:
        raise unavailable(f"{what}, which can no longer be read: {problem}", hint) from None
    if (snapshot.table_id, snapshot.digest) != (table.table_id, table.digest):
        raise unavailable(f"{what}, and what is there now is not what was registered", hint)
    source = ResolvedSource("", "path", table.shown, "", table.period, holds_one_period=False, format=table.format)
    return FoundTable(source, place, snapshot, f"{table.shown} {snapshot.shown}")


def _part(
    request: PinRequest, version: int, tables: Sequence[FoundTable], digests: Mapping[str, str], draft: Draft
) -> Part:
    use, files, excluded = request.use, list[PartFile](), list[int]()
    for table in tables:
        columns, _ = columns_of_table(use, table)
        known = {column.name: column for column in table.snapshot.columns}
        carried = {"_labels": "_labels", "_deleted": "_deleted", WRITTEN_ROW_ID: ROW_ID_COLUMNS[table.snapshot.format]}
        further = {name: known[written] for name, written in carried.items() if written in known}
        listed = table.snapshot.files
        for file, facts in zip(listed, facts_of_files(table, listed), strict=True):
            if not facts.rows:
                continue
            positions = deleted_positions(table, file, facts.rows)
            described = PartFile(
                path=file.address,
                rows=facts.rows,
                size=file.size,
                sha256=digests.get(file.address, ""),
                ordinal=request.first_file_ordinal + len(files),
                view=view_of(use, table, columns, file, facts, further),
                skipped=len(positions),
                first_row_id=file.first_row_id,
            )
            files.append(described)
            excluded += [described.first_ordinal + each for each in positions]
    short_lived = [each for each in tables if is_short_lived(each, request.table_policy)]
    periods = ", ".join(periods_read(request.period, request.periods))
    return Part(
        kind="input",
        name=use.key,
        files=tuple(files),
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != PERIOD_COLUMN),
        details={
            "dataset": use.dataset_id,
            "version": version,
            "period": request.period.identifier,
            "periods": periods if use.temporal_mode == "period" else None,
            "format": "managed",
            "places": "row",
            "pinned": "version",
            "retention": retention_note(short_lived[0]) if short_lived else None,
            TABLE_TAGS: tags_text([(each.place.address, each.tag) for each in tables if each.tag is not None]),
            "table_id": "; ".join(each.snapshot.table_id for each in tables),
            "table_version": "; ".join(str(each.snapshot.version) for each in tables),
            "metadata_digest": "; ".join(each.snapshot.digest for each in tables),
            "sources": "; ".join(each.title for each in tables),
        },
        sources=tuple(each.read for each in tables),
        excluded=excluded_file(draft, excluded),
    )


def _counted(spark: SparkSession, request: PinRequest, part: Part) -> Part:
    """The part with how many of its rows count, and how many of them were deleted before."""
    seen = periods_of(part, request.use)
    may_be_deleted = any(file.view is not None and file.view.column("_deleted") for file in part.files)
    counts = {DELETED_ROWS: 0} if seen is None else {DELETED_ROWS: 0, COUNTED_ROWS: 0}
    if part.files and (seen is not None or may_be_deleted):
        is_small = sum(file.size for file in part.files) <= _SMALL
        of_period = "TRUE" if seen is None else f"_period IN ({', '.join(map(text_literal, sorted(seen)))})"
        with tuned_for_few_rows(spark) if is_small else nullcontext():
            rows = table_rows(spark, request.storage_root, part, ["_period", "_deleted"])
            asked = f"count_if({of_period})", f"count_if({of_period} AND CAST(_deleted AS BOOLEAN))"
            [(counted, deleted)] = rows.selectExpr(*asked).collect()
        counts = {**counts, DELETED_ROWS: deleted, **({} if seen is None else {COUNTED_ROWS: counted})}
    return replace(part, details={**(part.details or {}), **counts})
