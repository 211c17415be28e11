"""Pinning: whatever a run reads becomes checked Parquet under the run, with the place of every row.

Datasets that Clew itself keeps never change, so pinning one only names its files.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import reduce
from operator import add
from urllib.parse import unquote

from pyspark.sql import SparkSession

from clew.deferred import dataclass
from clew.definitions import CatalogDatasource, DatabaseDatasource, Datasource, FilesDatasource, Period, PeriodTree
from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics import ClewError
from clew.diagnostics.foreign_words import without_quoted
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.accepting import no_rows, require_good
from clew.engine.loading.catalog_tables import catalog_rows, look_up
from clew.engine.loading.checking import Checking, Findings, require_unique_key
from clew.engine.loading.columnar import format_rows, parquet_rows
from clew.engine.loading.conversions import RawRows
from clew.engine.loading.corrections import NO_CORRECTIONS, Corrections, read_corrections
from clew.engine.loading.databases import driver_says, hidden, jdbc_rows, transferred_rows
from clew.engine.loading.files import find_files, local_folder
from clew.engine.loading.lines import LineTotals, can_be_read_one_by_one, lines_by_block, lines_one_by_one
from clew.engine.loading.periods import periods_read
from clew.engine.loading.preparing import prepared
from clew.engine.loading.quarantining import refused_rows, require_defaults, with_emptied
from clew.engine.loading.sheet_rows import sheet_rows
from clew.engine.loading.source_digests import DigestsOfSources
from clew.engine.loading.sources import Origin, Pinned, PinRequest, changed_meanwhile, unavailable
from clew.engine.loading.table_inputs import TABLE_FORMATS, table_at_path, with_versions
from clew.engine.loading.table_pinning import pin_tables
from clew.engine.loading.text_rows import FoundFile, ReadLines, csv_rows, fixed_rows, json_rows
from clew.engine.loading.uploads import UploadedFile, uploaded
from clew.engine.loading.whole_files import keep_whole_files
from clew.engine.parts import DraftedPart, draft_part
from clew.engine.session import tuned_for_few_rows
from clew.engine.sharing import require_sources_shared, unseen_sources
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.drafts import Draft, draft
from clew.storage.layout import part_folder, scratch_folder
from clew.storage.parts import Part, PartFile
from clew.storage.root import StorageKey
from clew.storage.store_errors import store_problem

_SMALL = 1024 * 1024
"""Bytes. Up to here it takes longer to compile a query for the rows than to interpret it."""
_TEXT_FORMATS = frozenset({"csv", "jsonl", "json", "fixed_width"})
FILE_FORMATS = frozenset({*_TEXT_FORMATS, "xlsx", "parquet"})
"""Formats of files that are read one by one, each with its digest."""
_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "PATH_NOT_FOUND", "FILE_NOT_EXIST", "FileNotFoundException")
_FILE_IN_MESSAGE = re.compile(r"[a-z][a-z0-9]*:/+[^\s,\"'\]]+")


def pin(spark: SparkSession, request: PinRequest) -> Pinned:
    """Read the sources of a dataset and write their rows as an input part of the run, or leave nothing behind."""
    folder = part_folder(request.run_id, "input", request.use.key)
    transfer = draft(request.storage_root, scratch_folder(request.run_id, request.use.key))
    try:
        if isinstance(_datasource(request, request.sources[0]), CatalogDatasource):
            return _pinned_of_catalog(spark, request, folder)
        if request.sources[0].kind == "path" and request.sources[0].format in TABLE_FORMATS:
            return _pinned_tables(spark, request, folder, transfer)
        found = found_files(request)
        whole = keep_whole_files(request, _described(request, found, "row"), folder, found)
        if whole is not None:
            return _as_they_are(spark, request, found, whole)
        sources, found = prepared(request.sources, found, transfer)
        request = replace(request, sources=sources)
        if request.sources[0].format != "xlsx":  # workbooks are read by this process alone
            found = uploaded(found, unseen_sources(spark, [each.file for each in found]), transfer)
        return _pinned(spark, request, folder, found, transfer)
    finally:
        transfer.abandon()


@dataclass(frozen=True, slots=True)
class _Reading:
    """A way to read the rows, and how messages call the place of a row."""

    raws: list[RawRows]
    unit: str = "line"


def _pinned_tables(spark: SparkSession, request: PinRequest, folder: StorageKey, transfer: Draft) -> Pinned:
    for source in request.sources:
        _datasource(request, source)

    def by_connector() -> tuple[Pinned, str]:
        known = with_versions(request)
        versions = "; ".join(value for source in known.sources for value in source.options.values())
        return _by_connector(spark, known, folder, transfer), versions

    with _told(request, ()):
        return pin_tables(spark, request, folder, lambda source: table_at_path(request, source), by_connector)


def _pinned_of_catalog(spark: SparkSession, request: PinRequest, folder: StorageKey) -> Pinned:
    """Pin tables that a catalog names: like those at a path where they have versions, else as a copy."""
    datasources = [_catalog(request, source) for source in request.sources]
    tables = [look_up(spark, each, source.location) for each, source in zip(datasources, request.sources, strict=True)]
    located = dict(zip(request.sources, tables, strict=True))

    def through_spark() -> tuple[Pinned, str]:
        read = [
            catalog_rows(spark, datasource, table, request.use, _origin(source))
            for datasource, (source, table) in zip(datasources, located.items(), strict=True)
        ]
        raws = [raw for raw, _ in read]
        checking = Checking(request.use, request.period, request.periods)
        described = _described(request, (), "row")
        ordinal = request.first_file_ordinal
        drafted = draft_part(checking.rows(raws), request.storage_root, folder, described, ordinal, is_small=False)
        try:
            findings = checking.findings()
            require_good(spark, request, _descriptions(request, ()), "row", checking, findings, drafted)
        except BaseException:
            drafted.draft.abandon()
            raise
        loaded = drafted.part.counted
        pinned = Pinned(drafted, findings.rows_read, loaded, findings.rows_read - loaded, _descriptions(request, ()))
        return pinned, "; ".join(version for _, version in read if version is not None)

    with _told(request, ()):
        root = request.storage_root
        return pin_tables(spark, request, folder, lambda source: located[source].located(spark, root), through_spark)


def _catalog(request: PinRequest, source: ResolvedSource) -> CatalogDatasource:
    datasource = _datasource(request, source)
    assert isinstance(datasource, CatalogDatasource)  # noqa: S101 - all sources are of one rule
    return datasource


def _as_they_are(spark: SparkSession, request: PinRequest, found: Sequence[FoundFile], whole: DraftedPart) -> Pinned:
    """Pin copies of files, which hold nothing but rows that count."""
    try:
        require_unique_key(spark, request.use, whole, "row")
    except BaseException:
        whole.abandon()
        raise
    rows = whole.part.counted
    return Pinned(whole, rows, rows, 0, _descriptions(request, found))


def _pinned(
    spark: SparkSession, request: PinRequest, folder: StorageKey, found: Sequence[FoundFile], transfer: Draft
) -> Pinned:
    is_small = bool(found) and sum(each.file.size for each in found) <= _SMALL
    corrections = read_corrections(request)
    with DigestsOfSources([each.file for each in (*found, *corrections.files)]) as digests:
        with tuned_for_few_rows(spark) if is_small else nullcontext(), _told(request, found):
            drafted, findings = _written(spark, request, folder, found, transfer, corrections, is_small=is_small)
        try:
            sources = digests.read()
        except BaseException:
            drafted.abandon()
            raise
    loaded = sum(file.rows for file in drafted.part.files)
    kept_apart = findings.rows_wrong if request.sources[0].rules.bad_rows == "quarantine" else 0
    return Pinned(
        drafted=replace(drafted, part=replace(drafted.part, sources=sources)),
        rows_read=findings.rows_read,
        rows_loaded=loaded,
        rows_outside_period=findings.rows_read - loaded - kept_apart,
        sources=_descriptions(request, found),
    )


def _by_connector(spark: SparkSession, request: PinRequest, folder: StorageKey, transfer: Draft) -> Pinned:
    """Copy rows as Spark's connector for the format gives them; their places are not known."""
    drafted, findings = _written(spark, request, folder, (), transfer, NO_CORRECTIONS, is_small=False)
    loaded = drafted.part.counted
    return Pinned(drafted, findings.rows_read, loaded, findings.rows_read - loaded, _descriptions(request, ()))


def _written(
    spark: SparkSession,
    request: PinRequest,
    folder: StorageKey,
    found: Sequence[FoundFile],
    transfer: Draft,
    corrections: Corrections,
    *,
    is_small: bool,
) -> tuple[DraftedPart, Findings]:
    """Write the rows. Where lines could not be numbered for sure, they are read again, the careful way."""
    rules = request.sources[0].rules
    require_defaults(request.use, rules)
    corrected = corrections.raw(spark, rules)
    for read_lines in _ways(request, found):
        reading = _reading(spark, request, found, read_lines, transfer)
        raws = [*reading.raws, *([corrected] if corrected is not None else [])]
        checking = Checking(request.use, request.period, request.periods, rules.bad_rows)
        rows = checking.rows(raws) if raws else no_rows(spark, checking)
        described = _described(request, found, reading.unit)
        ordinal = request.first_file_ordinal
        drafted = draft_part(rows, request.storage_root, folder, described, ordinal, is_small=is_small)
        try:
            findings = checking.findings() if raws else Findings(0, 0, 0, 0, None)
            if _is_numbered(reading, findings, request, corrections):
                require_good(spark, request, _descriptions(request, found), reading.unit, checking, findings, drafted)
                drafted = replace(drafted, part=with_emptied(drafted.part, findings))
                if rules.bad_rows == "quarantine":
                    kept = refused_rows(spark, request, checking, raws, findings, corrections, reading.unit, is_small)
                    drafted = replace(drafted, beside=(kept,))
                return drafted, findings
        except BaseException:
            drafted.abandon()
            raise
        drafted.abandon()
    names = ", ".join(source.location for source in request.sources)
    raise changed_meanwhile(names)


def _ways(request: PinRequest, found: Sequence[FoundFile]) -> list[ReadLines | None]:
    """Ways to number lines, the next where one fails. Without one, records that go over several lines are counted."""
    if _is_multiline(request.sources[0]):
        return [lines_by_block, None]
    careful: list[ReadLines | None] = [lines_by_block, lines_by_block]
    return [lines_one_by_one, *careful] if can_be_read_one_by_one([each.file for each in found]) else careful


def _is_multiline(source: ResolvedSource) -> bool:
    return source.format == "csv" and source.options.get("multiline", "false").lower() == "true"


def _is_numbered(reading: _Reading, findings: Findings, request: PinRequest, corrections: Corrections) -> bool:
    """Whether every line has its number: as many lines as the first pass counted, with the same sum of numbers."""
    if request.sources[0].format not in _TEXT_FORMATS or reading.unit != "line":
        return True
    expected = [raw.expected for raw in reading.raws]
    if not expected or any(each is None for each in expected):
        return findings.without_line == 0
    of_corrections = LineTotals(len(corrections.rows), sum(each.line for each in corrections.rows))
    total = reduce(add, (each for each in expected if each is not None), of_corrections)
    adds_up = findings.sum_of_lines in {None, total.sum_of_numbers}
    return findings.rows_read == total.lines and findings.without_line == 0 and adds_up


def _reading(
    spark: SparkSession, request: PinRequest, found: Sequence[FoundFile], read_lines: ReadLines | None, transfer: Draft
) -> _Reading:
    source, use = request.sources[0], request.use
    if source.kind == "table":
        return _Reading([_table_rows(spark, request, each, transfer) for each in request.sources], "row")
    match source.format:
        case "csv":
            return _Reading(csv_rows(spark, use, source, found, read_lines), "line" if read_lines else "record")
        case "jsonl" | "json" if read_lines is not None:
            return _Reading(json_rows(spark, use, found, read_lines, source.rules))
        case "fixed_width" if read_lines is not None:
            return _Reading(fixed_rows(spark, use, source, found, read_lines))
        case "xlsx":
            return _Reading(sheet_rows(spark, use, source, found, transfer), "row")
        case "parquet":
            return _Reading(parquet_rows(spark, use, found, source.rules), "row")
        case _:
            return _Reading([_other_rows(spark, request, each) for each in request.sources], "row")


def _datasource(request: PinRequest, source: ResolvedSource) -> Datasource:
    datasource = request.datasources.get(source.datasource_id)
    if datasource is None:
        raise unavailable(
            f'the rule "{source.rule}" names the datasource "{source.datasource_id}", which does not exist'
        )
    fits = isinstance(datasource, FilesDatasource) == (source.kind == "path")
    if not fits:
        kind = "files" if source.kind == "path" else "a database or a catalog"
        raise unavailable(f'the rule "{source.rule}" needs {kind}, but "{source.datasource_id}" is {datasource.type}')
    return datasource


def found_files(request: PinRequest) -> list[FoundFile]:
    """The files of all sources, each once. One that serves two periods belongs to neither."""
    by_path = dict[str, FoundFile]()
    for source in request.sources:
        datasource = _datasource(request, source)
        if not isinstance(datasource, FilesDatasource) or source.format not in FILE_FORMATS:
            continue
        for file in find_files(datasource, request.workspace_root, request.root_of, source):
            is_tied = source.holds_one_period and file.path not in by_path
            by_path[file.path] = FoundFile(file, source.period if is_tied else None)
    return list(by_path.values())


def _other_rows(spark: SparkSession, request: PinRequest, source: ResolvedSource) -> RawRows:
    datasource = _datasource(request, source)
    assert isinstance(datasource, FilesDatasource)  # noqa: S101 - _datasource gives what the kind of source needs
    folder = local_folder(datasource, request.workspace_root)
    if folder is not None:
        require_sources_shared(spark, find_files(datasource, request.workspace_root, request.root_of, source))
    path = request.root_of(datasource).spark_uri(source.location) if folder is None else str(folder / source.location)
    return format_rows(spark, request.use, source.format, source.options, path, _origin(source))


def _origin(source: ResolvedSource) -> Origin:
    is_table = source.kind == "table"
    shown = f"table {source.location} of {source.datasource_id}" if is_table else source.location
    return Origin(shown, source.period if source.holds_one_period else None)


def _table_rows(spark: SparkSession, request: PinRequest, source: ResolvedSource, transfer: Draft) -> RawRows:
    datasource = _database(request, source)
    password = _password(request, datasource)
    if datasource.options.url.startswith("jdbc:"):
        return jdbc_rows(spark, request, datasource, source.location, password, _origin(source))
    name = f"{request.sources.index(source)}.parquet"
    return transferred_rows(spark, request, datasource, source.location, password, _origin(source), transfer, name)


def _database(request: PinRequest, source: ResolvedSource) -> DatabaseDatasource:
    datasource = _datasource(request, source)
    assert isinstance(datasource, DatabaseDatasource)  # noqa: S101 - _datasource gives what the kind of source needs
    return datasource


def _password(request: PinRequest, datasource: DatabaseDatasource) -> str | None:
    return request.secrets(datasource.credential_ref) if datasource.credential_ref else None


def _described(request: PinRequest, found: Sequence[FoundFile], unit: str) -> Part:
    use, source = request.use, request.sources[0]
    return Part(
        kind="input",
        name=use.key,
        files=(),
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != "_period"),
        details={
            "dataset": use.dataset_id,
            **request.resolution,
            "period": request.period.identifier,
            "datasource": source.datasource_id,
            "rule": source.rule,
            "format": source.format or "table",
            "places": unit if source.kind == "path" else "table",
            "sources": "; ".join(_descriptions(request, found)[:20]),
        },
    )


def _descriptions(request: PinRequest, found: Sequence[FoundFile]) -> tuple[str, ...]:
    if found:
        return tuple(each.file.shown for each in found)
    return tuple(source.location for source in request.sources)


@contextmanager
def _told(request: PinRequest, found: Sequence[FoundFile]) -> Iterator[None]:
    """Say what an error of Spark means for the data that was read."""
    try:
        yield
    except SPARK_ERRORS as error:
        explained = _explained(error, request, found)
        if explained is None:
            raise
        raise explained from None


def _explained(error: Exception, request: PinRequest, found: Sequence[FoundFile]) -> ClewError | None:
    """What an error of Spark means for the data that was read; None where the data is not to blame."""
    text = str(error)
    source = request.sources[0]
    cause = driver_says(error)
    if source.kind == "table" and cause is not None and isinstance(_datasource(request, source), DatabaseDatasource):
        reason = hidden(cause, _password(request, _database(request, source)))
        if any(column.privacy for column in request.use.columns):
            reason = without_quoted(reason)
        return unavailable(f'cannot read the table {source.location} of "{source.datasource_id}": {reason}')
    if not any(word in text for word in _UNREADABLE):
        return None
    store = store_problem(text)
    if store is not None:
        return store
    file = _FILE_IN_MESSAGE.search(text)
    name = unquote(file[0].rstrip(".")) if file else "a file"
    copies = {each.file.path: each.file.shown for each in found if isinstance(each.file, UploadedFile)}
    name = copies.get(name, name)
    gone = "FILE_NOT_EXIST" in text or "FileNotFoundException" in text or "PATH_NOT_FOUND" in text
    return unavailable(f"{name} {'no longer exists' if gone else 'cannot be read: it is damaged or cut short'}")


def pin_managed(
    use: DatasetUse,
    files: Sequence[PartFile],
    *,
    version: int,
    period: Period,
    periods: PeriodTree,
    first_file_ordinal: int,
) -> Part:
    """An input part over existing files, with ordinals of this run. Nothing is copied.

    Rows of other periods are in the files too: readers of the part apply `period_condition`.
    """
    numbered = (replace(file, ordinal=first_file_ordinal + position) for position, file in enumerate(files))
    read = ", ".join(periods_read(period, periods)) if use.temporal_mode == "period" else period.identifier
    return Part(
        kind="input",
        name=use.key,
        files=tuple(numbered),
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != PERIOD_COLUMN),
        details={
            "dataset": use.dataset_id,
            "version": version,
            "period": period.identifier,
            "periods": None if use.temporal_mode == "none" else read,
            "format": "managed",
        },
    )
