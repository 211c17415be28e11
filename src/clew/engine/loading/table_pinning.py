"""Pins versions of Delta and Iceberg tables: by their files where they lie, or as a copy with the reason on record."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading.accepting import no_rows, nothing_to_load, require_good
from clew.engine.loading.checking import Checking, Findings, require_unique_rows
from clew.engine.loading.conversions import BROKEN, RawRows
from clew.engine.loading.periods import periods_read
from clew.engine.loading.sources import Pinned, PinRequest
from clew.engine.loading.table_files import FoundTable
from clew.engine.loading.table_inputs import (
    Locate,
    TableInput,
    find_tables,
    held,
    is_short_lived,
    let_go,
    retention_note,
    table_input,
)
from clew.engine.names import named
from clew.engine.parts import DraftedPart, draft_part
from clew.engine.session import tuned_for_few_rows
from clew.engine.sharing import require_sources_shared
from clew.engine.sql import quoted
from clew.engine.table_rows import PerFile, table_rows
from clew.plan.local_files import SourceFile
from clew.storage.drafts import draft
from clew.storage.parts import COUNTED_ROWS, SOURCE_LINE, SOURCE_ROW_ID, Part
from clew.storage.root import StorageKey
from clew.storage.tables.iceberg_tags import TABLE_TAGS, tags_text
from clew.storage.tables.table_places import is_remote
from clew.storage.tables.table_snapshot import UnsupportedTable

_FIRST_ROW_ID = "__first_row_id"
_NOT_BROKEN = f"CAST(NULL AS STRING) AS {BROKEN}"
_SMALL = 1024 * 1024
"""Bytes. Up to here it takes longer to compile a query for the rows than to interpret it."""


ByConnector = Callable[[], tuple[Pinned, str]]
"""Copies the rows of tables through Spark, and says of which versions."""


def pin_tables(
    spark: SparkSession, request: PinRequest, folder: StorageKey, locate: Locate, by_connector: ByConnector
) -> Pinned:
    """Pin versions of tables where they lie, or copy their rows where that would not do.

    `by_connector` copies rows of tables with features that only the connector of the format knows.
    """
    started = draft(request.storage_root, folder)
    tables = list[FoundTable]()
    try:
        tables = held(find_tables(request, locate), request)
        found = table_input(request, tables, started)
        part = _part_of_tables(request, tables, found)
        _require_tables_shared(spark, found)
        with tuned_for_few_rows(spark) if sum(file.size for file in part.files) <= _SMALL else nullcontext():
            if found.reason_to_copy is None:
                return _referenced(spark, request, found, DraftedPart(started, part))
            copied = _copied(spark, request, found, DraftedPart(started, part), folder)
    except UnsupportedTable as reason:
        started.abandon()
        let_go(tables)
        pinned, versions = by_connector()
        details = {**(pinned.part.details or {}), "pinned": "copy", "reason": str(reason)}
        if versions:
            details["table_version"] = versions
        drafted = replace(pinned.drafted, part=replace(pinned.part, details=details))
        return replace(pinned, drafted=drafted)
    except BaseException:
        started.abandon()
        let_go(tables)
        raise
    started.abandon()
    let_go(tables)
    return copied


def _part_of_tables(request: PinRequest, tables: Sequence[FoundTable], found: TableInput) -> Part:
    use, source = request.use, request.sources[0]
    snapshots = [table.snapshot for table in tables]
    short_lived = [each for each in tables if is_short_lived(each, request.table_policy)]
    is_copy = found.reason_to_copy is not None
    tags = [(table.place.address, table.tag) for table in tables if table.tag is not None and not is_copy]
    return Part(
        kind="input",
        name=use.key,
        files=found.files,
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != PERIOD_COLUMN),
        details={
            "dataset": use.dataset_id,
            **request.resolution,
            "period": request.period.identifier,
            "periods": None if found.is_tied or is_copy else ", ".join(periods_read(request.period, request.periods)),
            "datasource": source.datasource_id,
            "rule": source.rule,
            "format": snapshots[0].format,
            "places": "row",
            "pinned": "copy" if is_copy else "version",
            "reason": found.reason_to_copy,
            "retention": retention_note(short_lived[0]) if short_lived and not is_copy else None,
            TABLE_TAGS: tags_text(tags),
            "table_id": "; ".join(each.table_id for each in snapshots),
            "table_version": "; ".join(str(each.version) for each in snapshots),
            "schema_id": "; ".join(each.schema_id for each in snapshots),
            "metadata_digest": "; ".join(each.digest for each in snapshots),
            "sources": "; ".join(table.title for table in tables),
        },
        sources=found.sources,
        excluded=found.excluded,
    )


def _require_tables_shared(spark: SparkSession, found: TableInput) -> None:
    files = [file for file in found.files if not is_remote(file.path)]
    require_sources_shared(spark, [SourceFile(file.path, file.shown, file.size, is_local=True) for file in files])


def _raw_rows(spark: SparkSession, request: PinRequest, found: TableInput, part: Part) -> list[RawRows]:
    if not part.files:
        return []
    names, has_ids = list(found.cells), any(file.has_row_ids for file in part.files)
    if not has_ids:
        rows = table_rows(spark, request.storage_root, part, names)
        return [RawRows(rows.selectExpr("*", _NOT_BROKEN), found.cells)]
    first: PerFile = {_FIRST_ROW_ID: ("BIGINT", lambda file: file.first_row_id)}
    rows = table_rows(spark, request.storage_root, part, [*names, SOURCE_ROW_ID], first)
    row_id = f"coalesce(CAST({SOURCE_ROW_ID} AS BIGINT), {_FIRST_ROW_ID} + {SOURCE_LINE} - 1)"
    others = [quoted(name) for name in rows.columns if name not in {SOURCE_ROW_ID, _FIRST_ROW_ID}]
    rows = rows.selectExpr(*others, named(row_id, SOURCE_ROW_ID), _NOT_BROKEN)
    return [RawRows(rows, found.cells, has_row_ids=True)]


def _referenced(spark: SparkSession, request: PinRequest, found: TableInput, drafted: DraftedPart) -> Pinned:
    """Pin versions without a copy. What their files do not say about their rows is looked up in the rows."""
    use, part = request.use, drafted.part
    is_known = found.is_tied and not found.may_miss and not use.natural_key
    raws = [] if is_known else _raw_rows(spark, request, found, part)
    if found.may_miss and raws:
        checking = Checking(use, request.period, request.periods)
        checking.rows(raws).write.format("noop").mode("overwrite").save()
        problem = checking.problem(checking.findings(), "row")
        if problem is not None:
            raise problem
    counted = _of_periods(request, raws[0].rows) if raws and not found.is_tied else None
    loaded = part.counted if counted is None else counted.count()
    if raws:
        require_unique_rows(use, raws[0].rows if counted is None else counted, "row")
    read = part.counted
    if not loaded and not request.may_be_empty:
        raise nothing_to_load(request, [source.location for source in request.sources], read)
    if counted is not None:
        part = replace(part, details={**(part.details or {}), COUNTED_ROWS: loaded})
    sources = tuple(each.name for each in part.sources)
    return Pinned(replace(drafted, part=part), read, loaded, read - loaded, sources)


def _of_periods(request: PinRequest, rows: DataFrame) -> DataFrame:
    return rows.where(F.col(PERIOD_COLUMN).isin(*periods_read(request.period, request.periods)))


def _copied(
    spark: SparkSession, request: PinRequest, found: TableInput, referring: DraftedPart, folder: StorageKey
) -> Pinned:
    """Copy the rows of versions, with their places in the files of the tables."""
    sources = tuple(each.name for each in found.sources)
    raws = _raw_rows(spark, request, found, referring.part)
    checking = Checking(request.use, request.period, request.periods)
    rows = checking.rows(raws) if raws else no_rows(spark, checking)
    described = replace(referring.part, files=(), excluded=None)
    is_small = sum(file.size for file in referring.part.files) <= _SMALL
    drafted = draft_part(rows, request.storage_root, folder, described, request.first_file_ordinal, is_small=is_small)
    try:
        findings = checking.findings() if raws else Findings(0, 0, 0, 0, None)
        require_good(spark, request, sources, "row", checking, findings, drafted)
    except BaseException:
        drafted.draft.abandon()
        raise
    loaded = drafted.part.counted
    return Pinned(drafted, findings.rows_read, loaded, findings.rows_read - loaded, sources)
