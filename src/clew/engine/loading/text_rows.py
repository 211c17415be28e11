"""Rows of CSV and JSON lines, each with the number of its line."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading import csv_files, json_files
from clew.engine.loading.conversions import BROKEN, RawCell, RawRows, TextCell, text_cell
from clew.engine.loading.csv_files import FIELDS, CsvOptions
from clew.engine.loading.files import SourceFile
from clew.engine.loading.lines import LINE, LinesBefore, LineTotals, NumberedLines
from clew.engine.loading.record_lines import record_lines
from clew.engine.loading.sources import Origin, mismatch, positions_of
from clew.engine.sql import quoted
from clew.engine.sql.literals import text_literal
from clew.plan.datasets import DatasetUse
from clew.plan.file_rules import FileRules
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE
from clew.storage.text_values import BLANKS

ReadLines = Callable[[SparkSession, Sequence[SourceFile], Mapping[str, LinesBefore], str], NumberedLines]
"""Reads the lines of files with their numbers, without headings and comments."""

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
    headings = dict[str, LinesBefore]()
    for each in found:
        heading = csv_files.heading_of(spark, each.file, options)
        if heading is None:
            if options.has_header:
                raise mismatch(f"{each.file.shown} is empty: it has no header", "write a header")
            continue
        names = (
            header_names(heading.fields, source.rules)
            if options.has_header
            else names_by_position(use, heading.fields, each.origin)
        )
        headings[each.file.path] = heading.before
        groups.setdefault((names, None if PERIOD_COLUMN in names else each.period), []).append(each)
    return [
        _csv_group(spark, use, source, options, names, members, headings, read_lines)
        for (names, _), members in groups.items()
    ]


def header_names(fields: Sequence[str], rules: FileRules) -> tuple[str, ...]:
    """The names of a header; where blanks around values do not count, those around names do not either."""
    return tuple(name.strip(BLANKS) if rules.others.trim else name for name in fields)


def names_by_position(use: DatasetUse, fields: Sequence[str], origin: Origin) -> tuple[str, ...]:
    """Without a header, fields are in the order of the dataset's columns."""
    names = tuple(column.name for column in use.columns)
    without_period = tuple(name for name in names if name != PERIOD_COLUMN)
    if len(fields) == len(names):
        return names
    if len(fields) == len(without_period) and origin.period is not None:
        return without_period
    problem = f'{origin.shown} has {len(fields)} fields, the dataset "{use.name}" has {len(names)} columns'
    raise mismatch(problem, "without a header, fields must be in the order of the dataset's columns")


def _csv_group(
    spark: SparkSession,
    use: DatasetUse,
    source: ResolvedSource,
    options: CsvOptions,
    names: tuple[str, ...],
    members: Sequence[FoundFile],
    headings: Mapping[str, LinesBefore],
    read_lines: ReadLines | None,
) -> RawRows:
    rules = source.rules
    positions = positions_of(use, names, members[0].origin, rules if options.has_header else None)
    empty_is_null = not options.null_value
    cells = {
        column: text_cell(
            options.without_absent(f"{FIELDS}.f{position}"), rules.of(column), empty_is_null=empty_is_null
        )
        for column, position in positions.items()
    }
    files = [member.file for member in members]
    if options.is_multiline or read_lines is None:
        read = [_records(spark, file, options, source, len(names), by_line=read_lines is not None) for file in files]
        rows = reduce(DataFrame.union, (each.rows for each in read))
        totals = [each.expected for each in read]
        broken, expected = csv_files.broken_record(len(names)), _sum(totals)
        record = f"{FIELDS}.{csv_files.CORRUPT}"
    else:
        record = LINE
        lines = read_lines(spark, files, headings, options.comment)
        decoded = lines.rows.withColumn(LINE, F.expr(csv_files.decoded(options, source)))
        rows = decoded.withColumn(FIELDS, csv_files.parsed(options, len(names)))
        broken, expected = csv_files.broken(options, len(names)), lines.expected
    placed = rows.withColumn(BROKEN, F.expr(broken))
    return RawRows(placed, with_period(use, cells, members[0].period), expected, record)


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
        **({"comment": options.comment} if options.comment else {}),
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


def json_rows(
    spark: SparkSession, use: DatasetUse, found: Sequence[FoundFile], read_lines: ReadLines, rules: FileRules
) -> list[RawRows]:
    """The rows of files with one JSON object in each line."""
    groups = dict[str | None, list[SourceFile]]()
    for each in found:
        groups.setdefault(each.period, []).append(each.file)
    return [_json_group(spark, use, rules, files, period, read_lines) for period, files in groups.items()]


def _json_group(
    spark: SparkSession,
    use: DatasetUse,
    rules: FileRules,
    files: Sequence[SourceFile],
    period: str | None,
    read_lines: ReadLines,
) -> RawRows:
    names = {column.name: rules.source(column.name) for column in use.columns}
    lines = read_lines(spark, files, {file.path: LinesBefore() for file in files}, "")
    rows = lines.rows.withColumn(FIELDS, json_files.parsed(list(dict.fromkeys(names.values()))))
    found = {name: json_files.as_written(f"{FIELDS}[0].{quoted(source)}") for name, source in names.items()}
    cells = {name: text_cell(sql, rules.of(name), empty_is_null=False) for name, sql in found.items()}
    if use.temporal_mode == "period" and period is not None:
        own = cells[PERIOD_COLUMN]
        cells[PERIOD_COLUMN] = TextCell(f"coalesce({own.sql}, {text_literal(period)})", own.rules)
    return RawRows(rows.withColumn(BROKEN, F.expr(json_files.broken())), cells, lines.expected, LINE)


def fixed_rows(
    spark: SparkSession, use: DatasetUse, source: ResolvedSource, found: Sequence[FoundFile], read_lines: ReadLines
) -> list[RawRows]:
    """The rows of files whose columns are at fixed positions of each line. What a line is too short for is blank."""
    options, rules = CsvOptions.of(source), source.rules
    missing = [
        column.name
        for column in use.columns
        if column.name not in rules.positions and not (column.name == PERIOD_COLUMN and found[0].period is not None)
    ]
    if missing:
        names = ", ".join(f'"{name}"' for name in missing)
        problem = f'the rule "{source.rule}" does not say where in a line {names} of "{use.name}" is'
        raise mismatch(problem, "add `start` and `width` under `columns` of the strategy")
    groups = dict[str | None, list[SourceFile]]()
    for each in found:
        groups.setdefault(each.period, []).append(each.file)
    raws = list[RawRows]()
    for period, files in groups.items():
        before = {file.path: csv_files.lines_before(spark, file, options) for file in files}
        lines = read_lines(spark, files, before, options.comment)
        rows = lines.rows.withColumn(LINE, F.expr(csv_files.decoded(options, source)))
        cells = {
            column.name: text_cell(
                f"nullif(substr({LINE}, {rules.positions[column.name][0]}, {rules.positions[column.name][1]}), '')",
                rules.of(column.name),
                empty_is_null=True,
            )
            for column in use.columns
            if column.name in rules.positions
        }
        rows = rows.withColumn(BROKEN, F.expr(csv_files.undecodable(options)))
        raws.append(RawRows(rows, with_period(use, cells, period), lines.expected, LINE))
    return raws


def with_period(use: DatasetUse, cells: Mapping[str, RawCell], period: str | None) -> dict[str, RawCell]:
    """The cells, with the period of the place if the rows have none."""
    found = dict(cells)
    if use.temporal_mode == "period" and PERIOD_COLUMN not in found and period is not None:
        found[PERIOD_COLUMN] = TextCell(text_literal(period))
    return found
