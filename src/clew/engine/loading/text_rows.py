"""Rows of CSV and JSON lines, each with the number of its line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading import csv_files, json_files
from clew.engine.loading.conversions import BROKEN, RawCell, RawRows, TextCell
from clew.engine.loading.csv_files import FIELDS, CsvOptions, Heading
from clew.engine.loading.files import SourceFile
from clew.engine.loading.lines import LINE, LineTotals, NumberedLines
from clew.engine.loading.record_lines import record_lines
from clew.engine.loading.sources import Origin, mismatch, positions_of
from clew.engine.sql import quoted
from clew.engine.sql.literals import text_literal
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE

ReadLines = Callable[[SparkSession, Sequence[SourceFile], Mapping[str, int]], NumberedLines]
"""Reads the lines of files with their numbers, without headings."""

_RECORD = "__record"
_SPAN = "__span"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file and what is known about its rows."""

    file: SourceFile
    period: str | None
    """The period of all its rows, where the place says so."""

    @property
    def origin(self) -> Origin:
        """For messages."""
        return Origin(self.file.shown, self.period)


def csv_rows(
    spark: SparkSession,
    use: DatasetUse,
    source: ResolvedSource,
    found: Sequence[FoundFile],
    read_lines: ReadLines | None,
) -> list[RawRows]:
    """The rows of CSV files; files with the same header are read together.

    Without a way to read lines, records that may go over several lines are numbered as they come.
    """
    options = CsvOptions.of(source)
    groups = dict[tuple[tuple[str, ...], str | None], list[FoundFile]]()
    headings = dict[str, int]()
    for each in found:
        heading = csv_files.heading_of(spark, each.file, options)
        if heading is None:
            if options.has_header:
                raise mismatch(f"{each.file.shown} is empty: it has no header", "write a header")
            continue
        names = heading.fields if options.has_header else _names_by_position(use, heading, each.origin)
        headings[each.file.path] = heading.line if options.has_header else 0
        groups.setdefault((names, None if PERIOD_COLUMN in names else each.period), []).append(each)
    return [
        _csv_group(spark, use, source, options, names, members, headings, read_lines)
        for (names, _), members in groups.items()
    ]


def _names_by_position(use: DatasetUse, heading: Heading, origin: Origin) -> tuple[str, ...]:
    """Without a header, fields are in the order of the dataset's columns."""
    names = tuple(column.name for column in use.columns)
    without_period = tuple(name for name in names if name != PERIOD_COLUMN)
    if len(heading.fields) == len(names):
        return names
    if len(heading.fields) == len(without_period) and origin.period is not None:
        return without_period
    problem = f'{origin.shown} has {len(heading.fields)} fields, the dataset "{use.name}" has {len(names)} columns'
    raise mismatch(problem, "without a header, fields must be in the order of the dataset's columns")


def _csv_group(
    spark: SparkSession,
    use: DatasetUse,
    source: ResolvedSource,
    options: CsvOptions,
    names: tuple[str, ...],
    members: Sequence[FoundFile],
    headings: Mapping[str, int],
    read_lines: ReadLines | None,
) -> RawRows:
    positions = positions_of(use, names, members[0].origin)
    cells = {column: options.without_absent(f"{FIELDS}.f{position}") for column, position in positions.items()}
    files = [member.file for member in members]
    if options.is_multiline or read_lines is None:
        read = [_records(spark, file, options, source, len(names), by_line=read_lines is not None) for file in files]
        rows = reduce(DataFrame.union, (each.rows for each in read))
        totals = [each.expected for each in read]
        broken, expected = csv_files.broken_record(len(names)), _sum(totals)
    else:
        lines = read_lines(spark, files, headings)
        decoded = lines.rows.withColumn(LINE, F.expr(csv_files.decoded(options, source)))
        rows = decoded.withColumn(FIELDS, csv_files.parsed(options, len(names)))
        broken, expected = csv_files.broken(options, len(names)), lines.expected
    return RawRows(rows.withColumn(BROKEN, F.expr(broken)), _with_period(use, cells, members[0].period), expected)


def _sum(totals: Sequence[LineTotals | None]) -> LineTotals | None:
    known = [each for each in totals if each is not None]
    return reduce(add, known) if len(known) == len(totals) else None


def _records(
    spark: SparkSession, file: SourceFile, options: CsvOptions, source: ResolvedSource, fields: int, *, by_line: bool
) -> NumberedLines:
    """Records that may go over several lines, each with the line that it starts on, or else numbered as they come.

    Spark reads such a file in one piece, so records can be counted. On which line each starts is found by a second
    parser. A record has no line where the two see another number of line breaks in it, which the caller finds out.
    """
    settings = {
        **options.for_spark(),
        "multiLine": "true",
        "header": str(options.has_header).lower(),
        "encoding": csv_files.encoding_of_records(options, source),
    }
    rows = (
        spark.read.schema(csv_files.schema_of(fields))
        .options(**settings)
        .csv(file.literal_path)
        .withColumn(_RECORD, F.expr("(monotonically_increasing_id() & 8589934591L) + 1"))
    )
    lines = record_lines(file, options) if by_line else None
    if lines is None:
        placed, number = rows, "NULL" if by_line else _RECORD
    elif lines.is_one_each:
        placed, number = rows, _checked_line(f"{_RECORD} + {lines.shift}L", "1", fields)
    else:
        known = spark.createDataFrame(lines.table(_RECORD, SOURCE_LINE, _SPAN))
        placed, number = rows.join(F.broadcast(known), _RECORD, "left"), _checked_line(SOURCE_LINE, _SPAN, fields)
    recoded = [F.expr(csv_files.recoded(f"f{position}", options)).alias(f"f{position}") for position in range(fields)]
    placed = placed.select(
        F.struct(*recoded, csv_files.CORRUPT).alias(FIELDS),
        F.lit(file.shown).alias(SOURCE_FILE),
        F.expr(f"CAST({number} AS BIGINT)").alias(SOURCE_LINE),
    )
    return NumberedLines(placed, None if lines is None else lines.totals)


def _checked_line(line: str, span: str, fields: int) -> str:
    return f"IF(NOT {csv_files.is_whole()} OR {csv_files.line_breaks(fields)} + 1 = {span}, {line}, NULL)"


def json_rows(spark: SparkSession, use: DatasetUse, found: Sequence[FoundFile], read_lines: ReadLines) -> list[RawRows]:
    """The rows of files with one JSON object in each line."""
    names = [column.name for column in use.columns]
    groups = dict[str | None, list[SourceFile]]()
    for each in found:
        groups.setdefault(each.period, []).append(each.file)
    return [_json_group(spark, use, names, files, period, read_lines) for period, files in groups.items()]


def _json_group(
    spark: SparkSession,
    use: DatasetUse,
    names: Sequence[str],
    files: Sequence[SourceFile],
    period: str | None,
    read_lines: ReadLines,
) -> RawRows:
    lines = read_lines(spark, files, {file.path: 0 for file in files})
    rows = lines.rows.withColumn(FIELDS, json_files.parsed(names))
    cells = {name: f"{FIELDS}[0].{quoted(name)}" for name in names}
    if use.temporal_mode == "period" and period is not None:
        cells[PERIOD_COLUMN] = f"coalesce({cells[PERIOD_COLUMN]}, {text_literal(period)})"
    return RawRows(
        rows.withColumn(BROKEN, F.expr(json_files.broken())),
        {name: TextCell(sql) for name, sql in cells.items()},
        lines.expected,
    )


def _with_period(use: DatasetUse, cells: Mapping[str, str], period: str | None) -> dict[str, RawCell]:
    """The cells, with the period of the place if the rows have none."""
    found: dict[str, RawCell] = {name: TextCell(sql) for name, sql in cells.items()}
    if use.temporal_mode == "period" and PERIOD_COLUMN not in found and period is not None:
        found[PERIOD_COLUMN] = TextCell(text_literal(period))
    return found
