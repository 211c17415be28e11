"""Parquet files that a run keeps as they are: copied byte by byte, where writing them again would change nothing.

That is so where every column of a file is one of the dataset, in a type that all readers take for the same values, and
every row counts. What is pinned is looked at, not what lies outside: each page of the copy is decoded, and columns that
need values are counted. Whatever is not as it must be, Spark reads like any other file, and says what is wrong with it.
"""

import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.deferred import dataclass
from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics import ClewError
from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.columnar import arrow_fields, cells_of
from clew.engine.loading.conversions import TypedCell, holds_all
from clew.engine.loading.periods import periods_read
from clew.engine.loading.source_digests import digest_of, state_of
from clew.engine.loading.sources import PinRequest, changed_meanwhile, positions_of
from clew.engine.loading.text_rows import FoundFile
from clew.engine.parts import DraftedPart
from clew.lang.types import Kind, Type
from clew.plan.file_rules import PLAIN
from clew.storage.block_digests import BLOCK, FileDigests, digests_of
from clew.storage.drafts import Draft, draft
from clew.storage.local import LocalStorage
from clew.storage.parts import FileView, Part, PartFile, SourceRead, ViewColumn
from clew.storage.root import StorageKey, StorageRoot

_MOST_ROWS = 1 << 20
"""Rows of a row group: a question about one row decodes what stands before it in its group."""
_MOST_SENT = 1 << 30
"""Bytes that this process sends to a store itself. More is for Spark, whose executors send at the same time."""
_AT_ONCE = 4
_BATCH = 1 << 16
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
"""What Spark, Arrow and DuckDB all decompress."""
_SPARK_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacy"
_OLD_CALENDAR = re.compile(rb"[012]\.")
"""Versions of Spark whose days before 1582 are those of another calendar, which only Spark knows."""
_UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A file that is worth copying."""

    found: FoundFile
    view: FileView
    rows: int


def keep_whole_files(
    request: PinRequest, described: Part, folder: StorageKey, found: Sequence[FoundFile]
) -> DraftedPart | None:
    """Copy the files of a dataset as they are; None where their rows must go through Spark."""
    if not _may_be_kept(request, found):
        return None
    wholes = [_whole(request, each) for each in found]
    known = [each for each in wholes if each is not None]
    if len(known) < len(wholes) or not any(each.rows for each in known):
        return None
    started = draft(request.storage_root, folder)
    try:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copies") as threads:
            copied = list(threads.map(lambda each: _copied(request, each, started), known))
        files = [file for file, _ in copied if file is not None]
        if len(files) < sum(1 for each in known if each.rows):
            started.abandon()
            return None
    except BaseException:
        started.abandon()
        raise
    numbered = (replace(file, ordinal=request.first_file_ordinal + number) for number, file in enumerate(files))
    part = replace(described, files=tuple(numbered), sources=tuple(read for _, read in copied))
    return DraftedPart(started, part)


def _may_be_kept(request: PinRequest, found: Sequence[FoundFile]) -> bool:
    """Whether the definitions leave rows of files as they are."""
    use, rules = request.use, request.sources[0].rules
    if not found or any(each.format != "parquet" or each.corrections is not None for each in request.sources):
        return False
    is_plain = rules.bad_rows == "fail" and all(rules.of(column.name) == PLAIN for column in use.columns)
    is_here = all(each.file.is_local for each in found)
    is_light = isinstance(request.storage_root, LocalStorage) or sum(each.file.size for each in found) <= _MOST_SENT
    return is_plain and is_here and is_light and use.temporal_mode != "bitemporal"


def _whole(request: PinRequest, found: FoundFile) -> _Whole | None:
    """What the footer of a file says; None where its rows must go through Spark, which also says what is wrong."""
    try:
        with pq.ParquetFile(found.file.path) as opened:
            footer, schema = opened.metadata, opened.schema_arrow
        if not _is_read_by_all(footer, schema):
            return None
        columns = _columns(request, found, schema)
    except OutOfReach:
        raise
    except (*_UNREADABLE, ClewError):
        return None
    if columns is None or not _is_of_periods(request, columns, footer):
        return None
    return _Whole(found, FileView(title=found.file.shown, base="", columns=columns), footer.num_rows)


def _is_read_by_all(footer: pq.FileMetaData, schema: pa.Schema) -> bool:
    """Whether Spark, Arrow and DuckDB find the same rows in a file, and a single row quickly."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    codecs = {group.column(number).compression for group in groups for number in range(group.num_columns)}
    written = footer.metadata or {}
    is_of_today = not _OLD_CALENDAR.match(written.get(_SPARK_VERSION, b"")) and not any(
        key.startswith(_LEGACY) for key in written
    )
    names = [name.casefold() for name in schema.names]
    return (
        is_of_today
        and codecs <= _CODECS
        and all(group.num_rows <= _MOST_ROWS for group in groups)
        and len(set(names)) == len(names) == footer.num_columns
        and all(name == PERIOD_COLUMN or not name.startswith("_") for name in schema.names)
        and all(_is_simple(each.type) for each in schema)
    )


def _is_simple(type_: pa.DataType) -> bool:
    is_number = pa.types.is_signed_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_)
    is_other = pa.types.is_string(type_) or pa.types.is_boolean(type_) or pa.types.is_date32(type_)
    is_moment = pa.types.is_timestamp(type_) and type_.unit in {"ms", "us"} and type_.tz in {None, "UTC"}
    return is_number or is_other or is_moment or pa.types.is_decimal128(type_)


def _columns(request: PinRequest, found: FoundFile, schema: pa.Schema) -> tuple[ViewColumn, ...] | None:
    """How a file holds the columns of the dataset; None where it has others too, or needs conversions."""
    use, rules, fields = request.use, request.sources[0].rules, arrow_fields(schema)
    positions = positions_of(use, schema.names, found.origin, rules)
    if {*positions.values()} != {*range(len(fields))}:
        return None  # values that nothing declares are not kept: nobody has said who may see them
    _, cells = cells_of(use, fields, found.origin, rules)
    columns = list[ViewColumn]()
    for column in use.columns:
        cell = cells[column.name]
        if column.name not in positions:
            columns.append(ViewColumn(column.name, "string", None, found.period))
        elif isinstance(cell, TypedCell) and _is_read_alike(cell.type, column.type):
            columns.append(ViewColumn(column.name, cell.type, schema.names[positions[column.name]]))
        else:
            return None
    return tuple(columns)


def _is_read_alike(source: str, target: Type) -> bool:
    """Whether every reader gets the same value out of a file without a conversion that could fail."""
    match target.kind:
        case Kind.STRING | Kind.BOOLEAN:
            return source == target.kind.value
        case Kind.TIMESTAMP:
            return source in {"timestamp_ntz", "timestamp_ltz"}
        case _:
            return holds_all(source, target)


def _is_of_periods(request: PinRequest, columns: Sequence[ViewColumn], footer: pq.FileMetaData) -> bool:
    """Whether a file seems to have rows of the periods that count alone."""
    wanted = _wanted(request)
    if wanted is None:
        return True
    [period] = [column for column in columns if column.name == PERIOD_COLUMN]
    if period.stored is None:
        return period.value in wanted
    position = footer.schema.names.index(period.stored)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    bounds = [group.column(position).statistics for group in groups if group.num_rows]
    return all(each is not None and each.has_min_max and {each.min, each.max} <= {*wanted} for each in bounds)


def _wanted(request: PinRequest) -> Collection[str] | None:
    return periods_read(request.period, request.periods) if request.use.temporal_mode == "period" else None


def _copied(request: PinRequest, whole: _Whole, started: Draft) -> tuple[PartFile | None, SourceRead]:
    """Copy a file. None where it has no rows, and where the copy does not show what its footer has promised."""
    source = whole.found.file
    if not whole.rows:
        return None, digest_of(source)
    # One file name differs from all others of the run: ordinals are looked up by the name of the file.
    name = f"part-00000-{uuid.uuid4()}.parquet"
    before = state_of(source)
    digests, size = _copy(Path(source.path), started, name)
    if state_of(source) != before or size != source.size:
        raise changed_meanwhile(source.shown)
    read = SourceRead(source.shown, size, f"sha256:{digests.sha256}")
    key = f"{started.folder}/{name}"
    if not _is_as_promised(request, whole, started.root, key):
        return None, read
    return PartFile(key, whole.rows, size, digests.sha256, view=whole.view, blocks=digests.blocks), read


def _copy(source: Path, started: Draft, name: str) -> tuple[FileDigests, int]:
    with source.open("rb") as read, started.create(name) as written:

        def blocks() -> Iterator[bytes]:
            while block := read.read(BLOCK):
                written.write(block)
                yield block

        digests = digests_of(blocks())
        return digests, read.tell()


def _is_as_promised(request: PinRequest, whole: _Whole, root: StorageRoot, key: StorageKey) -> bool:
    """Whether a copy can be read to its end, has values where they must be, and no rows of other periods."""
    stored = {column.name: column.stored for column in whole.view.columns}
    needed = [stored[column.name] for column in request.use.columns if not column.nullable]
    wanted, period = _wanted(request), stored.get(PERIOD_COLUMN)
    rows = 0
    try:
        with root.open_parquet(key) as opened:
            if opened.metadata.num_rows != whole.rows:
                return False
            for batch in opened.iter_batches(_BATCH):
                rows += batch.num_rows
                if any(name is not None and batch.column(name).null_count for name in needed):
                    return False
                if wanted is not None and period is not None and not _are_among(batch.column(period), wanted):
                    return False
    except OutOfReach:
        raise
    except _UNREADABLE:
        return False
    return rows == whole.rows


def _are_among(values: pa.Array, wanted: Collection[str]) -> bool:
    return {*values.unique().to_pylist()} <= {*wanted}
