"""Writes parts of a run to storage, and reads them back with the ordinals of their rows.

A part is a draft until all its files are there and hold the rows that were written; then it is described, and an event
may name it. What no event names counts for nothing.

Counts come from Parquet footers, which say how many rows and NULLs a file has. Decimals of the trace that fit into 64
bits are stored as numbers, not as bytes.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, LongType, NumericType, StructField, StructType

from clew.deferred import dataclass
from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.counting import counted, require_rows, rows_in
from clew.engine.names import named
from clew.engine.spark_internals import arrow_schema, select_sql
from clew.engine.sql import quoted
from clew.engine.table_rows import is_of_table, table_rows
from clew.storage.block_digests import BLOCK, digests_of, digests_of_file
from clew.storage.checked_files import TraceFiles
from clew.storage.committed import DescribedPart, publish_part
from clew.storage.drafts import Draft, draft
from clew.storage.parts import (
    ORDINAL,
    SOURCE_FILE,
    SOURCE_LINE,
    TRACE_ID,
    Part,
    PartFile,
    TracedStep,
    after_column,
)
from clew.storage.root import StorageKey, StorageRoot, StoredFile

FEW_ROWS = 1_000
"""Parts with no more rows than these are handed to Spark as they are, not as files."""

_WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",
    "parquet.block.row.count.limit": "100000",
    "parquet.page.row.count.limit": "100000",
    f"parquet.enable.dictionary#{ORDINAL}": "false",
    f"parquet.enable.dictionary#{TRACE_ID}": "false",
}
"""Small row groups make lookups by ordinal quick."""

_PLACES = frozenset({SOURCE_FILE, SOURCE_LINE})

_AT_ONCE = 8
"""Files whose digests are worked out at the same time."""

_LONGEST_WORD = 18
"""Decimals with more digits than these are not whole numbers in a file but bytes."""


def write_options(schema: StructType) -> dict[str, str]:
    """How Parquet is written: with the second version's encodings, except where there are long decimals.

    These encodings make ordinals small, but take three times as long over the bytes of decimals.
    """
    is_wide = [field.dataType.precision > _LONGEST_WORD for field in schema if isinstance(field.dataType, DecimalType)]
    return {**_WRITE_OPTIONS, "parquet.writer.version": "PARQUET_1_0" if any(is_wide) else "PARQUET_2_0"}


def options_for_changes(schema: StructType) -> dict[str, str]:
    """The same for changes: numbers without a dictionary, which takes time and saves no space."""
    numbers = [field.name for field in schema if isinstance(field.dataType, NumericType)]
    return write_options(schema) | {f"parquet.enable.dictionary#{name}": "false" for name in numbers}


@dataclass(frozen=True, slots=True)
class DraftedPart:
    """A part whose files are written and counted, and that no event can name yet."""

    draft: Draft
    part: Part
    beside: "tuple[DraftedPart, ...]" = ()
    """Parts that go with it: the rows of an input that were kept apart."""

    def abandon(self) -> None:
        """Remove what was written."""
        for each in (self, *self.beside):
            each.draft.abandon()

    @property
    def root(self) -> StorageRoot:
        """Where its files lie."""
        return self.draft.root

    def publish(self) -> DescribedPart:
        """Describe it, so that an event can name it."""
        return publish_part(self.draft, self.part)


def write_part(
    rows: DataFrame,
    root: StorageRoot,
    folder: StorageKey,
    part: Part,
    first_ordinal: int | None = None,
    finished: Callable[[Part], Part] = lambda part: part,
    *,
    is_small: bool = False,
) -> DescribedPart:
    """Write rows as a part, in a folder below the storage root.

    `finished` may add to the description what is known only when the files are there.
    """
    drafted = draft_part(rows, root, folder, part, first_ordinal, is_small=is_small)
    try:
        finished_part = DraftedPart(drafted.draft, finished(drafted.part))
    except BaseException:
        drafted.draft.abandon()
        raise
    return finished_part.publish()


def draft_part(
    rows: DataFrame,
    root: StorageRoot,
    folder: StorageKey,
    part: Part,
    first_ordinal: int | None = None,
    *,
    is_small: bool = False,
) -> DraftedPart:
    """Write the files of a part. `first_ordinal` numbers them where their rows get new ordinals.

    Few rows are brought here and written here, which takes a third of the time that Spark needs to write a file.
    """
    started = draft(root, folder)
    try:
        if is_small:
            return DraftedPart(started, replace(part, files=_written_here(started, rows.toArrow(), first_ordinal)))
        options = options_for_changes if part.kind == "changes" else write_options
        written, count = counted(rows)
        written.write.options(**options(rows.schema)).parquet(started.spark_uri)
        files = _described_files(started, first_ordinal)
        require_rows(sum(file.rows for file in files), count(), place=f"{root.address}/{started.folder}")
        return DraftedPart(started, replace(part, files=files))
    except BaseException:
        started.abandon()
        raise


def _written_here(started: Draft, table: pa.Table, first_ordinal: int | None) -> tuple[PartFile, ...]:
    """Write a few rows as one file; none where there are no rows.

    What is written is known, so it is not read again; it must only be there, and as long as it was written.
    """
    if table.num_rows == 0:
        return ()
    content = BytesIO()
    pq.write_table(table, content, compression="zstd")
    # One file name differs from all others of the run: ordinals are looked up by the name of the file.
    name = f"part-00000-{uuid.uuid4()}.parquet"
    with started.create(name) as file:
        file.write(content.getbuffer())
    key, size = f"{started.folder}/{name}", content.tell()
    is_there = any((file.key, file.size) == (key, size) for file in started.files(".parquet"))
    require_rows(table.num_rows if is_there else 0, table.num_rows, place=f"{started.root.address}/{started.folder}")
    content.seek(0)
    digests = digests_of(iter(lambda: content.read(BLOCK), b""))
    return (PartFile(key, table.num_rows, size, digests.sha256, first_ordinal, blocks=digests.blocks),)


def _described_files(started: Draft, first_ordinal: int | None) -> tuple[PartFile, ...]:
    """The data files of a draft. Those without rows are not named.

    Several are read at a time: what executors have written to a store passes through here once.
    """
    root = started.root

    def described(file: StoredFile) -> PartFile:
        rows = rows_in(root, [file.key])
        if not rows:
            return PartFile(file.key, rows, file.size, "")
        digests = digests_of_file(root, file.key)
        return PartFile(file.key, rows, file.size, digests.sha256, blocks=digests.blocks)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digests") as threads:
        files = [file for file in threads.map(described, started.files(".parquet")) if file.rows]
    if first_ordinal is None:
        return tuple(files)
    return tuple(replace(file, ordinal=first_ordinal + number) for number, file in enumerate(files))


def sources_of_files(root: StorageRoot, part: Part) -> list[str]:
    """Where Spark reads the files of a part."""
    return [root.spark_uri(file.path) for file in part.files]


def arrow_tables(root: StorageRoot, part: Part, columns: list[str] | None = None) -> list[pa.Table]:
    """The rows of each file of a part that count; all columns where none are named."""
    if is_of_table(part):
        return _tables_of_views(root, part, columns)
    tables = list[pa.Table]()
    for file in part.files:
        with root.open_parquet(file.path) as opened:
            tables.append(opened.read(columns=columns))
    return tables


def _tables_of_views(root: StorageRoot, part: Part, columns: list[str] | None) -> list[pa.Table]:
    files = TraceFiles(root)
    excluded = part.excluded
    skipped = pa.array([], pa.int64()) if excluded is None else files.whole(excluded, [ORDINAL])[ORDINAL]
    tables = list[pa.Table]()
    for file in part.files:
        names = columns or [column.name for column in (file.view.columns if file.view else ())]
        table = files.whole(file, names)
        if file.skipped:
            ordinals = pa.array(range(file.first_ordinal, file.first_ordinal + table.num_rows), pa.int64())
            table = table.filter(pc.invert(pc.is_in(ordinals, value_set=skipped)))
        tables.append(table)
    return tables


def read_part(
    spark: SparkSession, root: StorageRoot, part: Part, columns: Sequence[tuple[str, str]], extra: Iterable[str] = ()
) -> DataFrame:
    """The rows of an input or created part with their ordinals; `columns` are names and SQL types."""
    if is_of_table(part) and not are_few(part):
        rows = table_rows(spark, root, part, [name for name, _ in columns if name not in _PLACES])
        typed = (f"CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in columns)
        return select_sql(rows, [*typed, ORDINAL])
    if are_few(part) and not extra:
        return _few_rows(spark, root, part, columns)
    schema = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)
    rows = spark.read.schema(schema).parquet(*sources_of_files(root, part))
    names = [quoted(name) for name, _ in columns]
    return select_sql(rows, [*names, *extra, named(_ordinal_sql(part), ORDINAL)])


def are_few(part: Part) -> bool:
    """Whether the rows of a part are read here and become part of queries. Those of tables are left to Spark."""
    return sum(file.rows for file in part.files) <= FEW_ROWS and not any(file.is_foreign for file in part.files)


def _few_rows(spark: SparkSession, root: StorageRoot, part: Part, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows themselves as part of the query, which Spark answers in a fraction of the time of a scan."""
    schema = cast(StructType, StructType.fromDDL(", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)))
    fields = arrow_schema(schema)
    names = list(fields.names) if is_of_table(part) else None
    tables = [_typed(table, fields) for table in arrow_tables(root, part, names)]
    rows = pa.concat_tables(tables) if tables else fields.empty_table()
    ordinals = [
        file.first_ordinal + index
        for file, table in zip(part.files, tables, strict=True)
        for index in range(table.num_rows)
    ]
    numbered = rows.append_column(ORDINAL, pa.array(ordinals, pa.int64()))
    return spark.createDataFrame(numbered, StructType([*schema, StructField(ORDINAL, LongType())]))


def _typed(table: pa.Table, fields: pa.Schema) -> pa.Table:
    """The columns of a schema, those that the file lacks as NULL."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)


def _ordinal_sql(part: Part) -> str:
    if len(part.files) == 1:
        return f"{part.files[0].first_ordinal}L + _metadata.row_index"
    pairs = ", ".join(f"'{file.path.rpartition('/')[2]}', {file.first_ordinal}L" for file in part.files)
    return f"element_at(map({pairs}), _metadata.file_name) + _metadata.row_index"


def given_count(root: StorageRoot, part: Part, columns: Sequence[str]) -> int:
    """How many rows of a part have a value in at least one of the columns."""
    if len(columns) == 1:
        return sum(_given_in(root, file.path, columns[0]) for file in part.files)
    return sum(_given_in_any(root, file.path, columns) for file in part.files)


def _given_in(root: StorageRoot, key: StorageKey, column: str) -> int:
    with root.open_parquet(key) as opened:
        footer = opened.metadata
    position = footer.schema.names.index(column)
    count = 0
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(position).statistics
        if statistics is None or not statistics.has_null_count:
            return _given_in_any(root, key, [column])
        count += footer.row_group(group).num_rows - statistics.null_count
    return count


def _given_in_any(root: StorageRoot, key: StorageKey, columns: Sequence[str]) -> int:
    with root.open_parquet(key) as opened:
        table = opened.read(columns=list(columns))
    values = pc.coalesce(*(table.column(name) for name in columns))
    return len(values) - int(values.null_count)


def count_of_periods(root: StorageRoot, files: Sequence[PartFile], periods: Collection[str]) -> int:
    """How many rows of files belong to one of the periods; a group of rows of a single period is not read."""
    return sum(_count_in(root, file.path, periods) for file in files)


def _count_in(root: StorageRoot, key: StorageKey, periods: Collection[str]) -> int:
    with root.open_parquet(key) as opened:
        footer = opened.metadata
        if PERIOD_COLUMN not in footer.schema.names:
            return 0
        position, count = footer.schema.names.index(PERIOD_COLUMN), 0
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            known = group.column(position).statistics
            if known is not None and known.has_min_max and known.has_null_count and known.min == known.max:
                count += group.num_rows - known.null_count if known.min in periods else 0
            else:
                values = opened.read_row_group(number, columns=[PERIOD_COLUMN]).column(0)
                count += pc.sum(pc.is_in(values, pa.array(sorted(periods), values.type))).as_py() or 0
    return count


def count_of_deleted(root: StorageRoot, files: Sequence[PartFile], periods: Collection[str] | None) -> int:
    """How many rows of files were deleted before they were registered, of the periods or of all."""
    return sum(_deleted_in(root, file.path, periods) for file in files)


def _deleted_in(root: StorageRoot, key: StorageKey, periods: Collection[str] | None) -> int:
    with root.open_parquet(key) as opened:
        if "_deleted" not in opened.schema_arrow.names:
            return 0
        if periods is None:
            return pc.sum(opened.read(columns=["_deleted"]).column(0)).as_py() or 0
        rows = opened.read(columns=["_deleted", PERIOD_COLUMN])
    known = pa.array(sorted(periods), rows.column(PERIOD_COLUMN).type)
    counted = pc.and_(rows.column("_deleted"), pc.is_in(rows.column(PERIOD_COLUMN), known))
    return pc.sum(counted).as_py() or 0


_LONGEST = 18
"""Digits of a decimal that Parquet stores in 64 bits."""
_LEAST_BEFORE_POINT = 10
"""With fewer digits before the point too many values would not fit."""


def with_short_decimals(rows: DataFrame, steps: Sequence[TracedStep]) -> DataFrame | None:
    """Rows of changes with short types for the values after them; None where that changes no type.

    Writing them fails where a value does not fit. Readers take values as the types of the plan, whatever the file says.
    """
    values = {after_column(step.seq, position) for step in steps for position in range(len(step.columns))}
    short = {
        field.name: F.col(quoted(field.name)).cast(DecimalType(_LONGEST, field.dataType.scale))
        for field in rows.schema
        if field.name in values and isinstance(field.dataType, DecimalType) and _is_long(field.dataType)
    }
    return rows.withColumns(short) if short else None


def _is_long(type_: DecimalType) -> bool:
    return type_.precision > _LONGEST and type_.scale <= _LONGEST - _LEAST_BEFORE_POINT
