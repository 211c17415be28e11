"""Rows of typed files and tables: Parquet, other formats of Spark, JDBC."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from clew.definitions.dataset import PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN
from clew.diagnostics.file_system import OutOfReach
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.conversions import BROKEN, RawCell, RawRows, TextCell, TypedCell, serves
from clew.engine.loading.files import METADATA_PATH, SourceFile, metadata_path
from clew.engine.loading.sources import Origin, mismatch, positions_of, unavailable
from clew.engine.loading.text_rows import FoundFile
from clew.engine.names import named
from clew.engine.reasons import reason_of
from clew.engine.sql import quoted, text_literal
from clew.plan.datasets import DatasetUse
from clew.plan.file_rules import FileRules
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE
from clew.storage.source_files import opened_source

Fields = tuple[tuple[str, str], ...]
"""Names and Spark types of the columns of a file."""

_SIMPLE_TYPES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.date32(): "date",
}

_ALL_NULL = frozenset({"null", "void"})
"""The type of a column in which no row has a value."""


def parquet_rows(
    spark: SparkSession, use: DatasetUse, found: Sequence[FoundFile], rules: FileRules | None = None
) -> list[RawRows]:
    """The rows of Parquet files; files with the same columns and types are read together."""
    groups = dict[tuple[Fields, str | None], list[FoundFile]]()
    for each in found:
        fields = _fields_of(each.file)
        has_period = any(name == PERIOD_COLUMN for name, _ in fields)
        groups.setdefault((fields, None if has_period else each.period), []).append(each)
    raws = list[RawRows]()
    for (fields, _), members in groups.items():
        chosen, cells = cells_of(use, fields, members[0].origin, rules)
        schema = ", ".join(f"{quoted(name)} {type_}" for name, type_ in chosen)
        rows = spark.read.schema(schema).parquet(*(member.file.literal_path for member in members))
        raws.append(RawRows(_placed(spark, rows, [member.file for member in members]), cells))
    return raws


def _placed(spark: SparkSession, rows: DataFrame, files: Sequence[SourceFile]) -> DataFrame:
    path = METADATA_PATH if len(files) > 1 else text_literal(files[0].shown)
    numbered = rows.selectExpr(
        "*",
        named("_metadata.row_index + 1", SOURCE_LINE),
        named(path, "__path" if len(files) > 1 else SOURCE_FILE),
        named("CAST(NULL AS STRING)", BROKEN),
    )
    if len(files) > 1:
        names = [(metadata_path(file), file.shown) for file in files]
        known = spark.createDataFrame(names, f"__path STRING, {SOURCE_FILE} STRING")
        numbered = numbered.join(F.broadcast(known), "__path", "left").withColumn(
            SOURCE_FILE, F.coalesce(SOURCE_FILE, "__path")
        )
    return numbered


def format_rows(
    spark: SparkSession, use: DatasetUse, format_: str, options: Mapping[str, str], path: str, origin: Origin
) -> RawRows:
    """The rows of any other format that Spark has a connector for. Their lines are not known."""
    try:
        rows = spark.read.format(format_).options(**options).load(path)
        schema = rows.schema
    except SPARK_ERRORS as error:
        raise unavailable(f"cannot read {origin.shown} as {format_}: {reason_of(error)}") from None
    return frame_rows(use, rows, fields_of_schema(schema), origin)


def frame_rows(use: DatasetUse, rows: DataFrame, fields: Fields, origin: Origin) -> RawRows:
    """The rows of something that Spark reads as a whole."""
    _, cells = cells_of(use, fields, origin)
    return RawRows(
        rows.selectExpr(
            "*",
            named(text_literal(origin.shown), SOURCE_FILE),
            named("CAST(NULL AS BIGINT)", SOURCE_LINE),
            named("CAST(NULL AS STRING)", BROKEN),
        ),
        cells,
    )


def cells_of(
    use: DatasetUse, fields: Fields, origin: Origin, rules: FileRules | None = None
) -> tuple[Fields, dict[str, RawCell]]:
    """The columns to read and what they are for, after checking that their types serve the dataset's."""
    rules = rules or FileRules()
    positions = positions_of(use, [name for name, _ in fields], origin, rules)
    cells = dict[str, RawCell]()
    for column in use.columns:
        if column.name not in positions:
            continue
        name, type_ = fields[positions[column.name]]
        if type_ in _ALL_NULL:
            cells[column.name] = TextCell("CAST(NULL AS STRING)", rules.of(column.name))
        elif column.name in {PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN} and type_ == "string":
            cells[column.name] = TextCell(quoted(name))
        elif serves(type_, column.type):
            cells[column.name] = TypedCell(quoted(name), type_, rules.of(column.name))
        else:
            problem = f'column "{column.name}" of {origin.shown} is {type_}, but {column.type} in "{use.name}"'
            raise mismatch(problem, "write the data with the type of the dataset, or correct the dataset")
    if use.temporal_mode == "period" and PERIOD_COLUMN not in cells and origin.period is not None:
        cells[PERIOD_COLUMN] = TextCell(text_literal(origin.period))
    read = (fields[position] for position in dict.fromkeys(positions.values()))
    return tuple((name, type_) for name, type_ in read if type_ not in _ALL_NULL), cells


def fields_of_schema(schema: StructType) -> Fields:
    """The columns of something that Spark has looked at."""
    return tuple((each.name, _unambiguous(each.dataType.simpleString())) for each in schema.fields)


def _unambiguous(name: str) -> str:
    """What Spark calls a timestamp is one with a zone here, and without one in the text of a schema."""
    return "timestamp_ltz" if name == "timestamp" else name


def _fields_of(file: SourceFile) -> Fields:
    try:
        with opened_source(file) as opened:
            arrow = pq.read_schema(opened)
    except OutOfReach:
        raise
    except FileNotFoundError:
        raise unavailable(f"{file.shown} no longer exists") from None
    except (pa.ArrowException, OSError):
        text = next((name for name in ("csv", "jsonl") if f".{name}" in PurePath(file.shown).suffixes), None)
        remedy = f"set `format: {text}` in the rule" if text else "write the file again, as a whole"
        raise unavailable(f"{file.shown} is not a Parquet file, or is cut short", remedy) from None
    return arrow_fields(arrow)


def arrow_fields(schema: pa.Schema) -> Fields:
    """The columns of a file as Spark reads them."""
    return tuple((each.name, _spark_name(each.type)) for each in schema)


def _spark_name(type_: pa.DataType) -> str:
    """The type as which Spark reads an Arrow type; the name of the Arrow type where Spark has none."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_) and type_.unit in {"ms", "us"}:
        return "timestamp_ntz" if type_.tz is None else "timestamp_ltz"
    if pa.types.is_dictionary(type_):
        return _spark_name(type_.value_type)
    return _SIMPLE_TYPES.get(type_, str(type_))
