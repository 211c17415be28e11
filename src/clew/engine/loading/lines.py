"""Lines of text files with their numbers, counted by Spark itself.

Spark numbers the rows of a partition, not the lines of a file. A few small files are read one by one, each as one
partition. Large files stay split, so that all cores read them: a first pass counts the lines of every block, and each
block continues the numbers of the one before it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.engine.loading.files import SourceFile, file_of_metadata, metadata_path
from clew.engine.sql.literals import text_literal
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE

LINE = "__line"
"""The text of a line."""

_SMALL = 4 * 1024 * 1024
"""Spark does not split files up to this size."""
_FEW = 16
_POSITION = "monotonically_increasing_id() & 8589934591L"
"""SQL for the position of a row in its partition: the lower 33 bits."""
_PLACE = ["__path", "__block"]


@dataclass(frozen=True, slots=True)
class NumberedLines:
    """Lines that are neither blank nor comments, after the header, each with its file and number."""

    rows: DataFrame
    expected: "LineTotals | None"
    """What the first pass counted; None where there was none."""


@dataclass(frozen=True, slots=True)
class LineTotals:
    """How many lines there are, and the sum of their numbers: two readings of the same files agree on both."""

    lines: int
    sum_of_numbers: int

    def __add__(self, other: "LineTotals") -> "LineTotals":
        return LineTotals(self.lines + other.lines, self.sum_of_numbers + other.sum_of_numbers)


@dataclass(frozen=True, slots=True)
class LinesBefore:
    """The lines of a file before its rows: skipped ones and the header."""

    last: int = 0
    """The number of the last one; 0 where there are none."""
    totals: LineTotals = LineTotals(0, 0)
    """Those of them that are neither blank nor comments."""


def is_left_out(comment: str) -> str:
    """SQL for whether a line is blank or a comment."""
    blank = f"trim({LINE}) = ''"
    return f"({blank} OR startswith({LINE}, {text_literal(comment)}))" if comment else blank


def can_be_read_one_by_one(files: Sequence[SourceFile]) -> bool:
    """Whether files are so few and small that each is one partition."""
    return len(files) <= _FEW and all(file.size <= _SMALL for file in files)


def lines_one_by_one(
    spark: SparkSession, files: Sequence[SourceFile], skipped: Mapping[str, LinesBefore], comment: str
) -> NumberedLines:
    """Lines of small files. A file that is split against expectation has no numbers, which the caller finds out."""
    read = (_small(spark, file, skipped[file.path].last, comment) for file in files)
    return NumberedLines(reduce(DataFrame.union, read), None)


def _small(spark: SparkSession, file: SourceFile, skipped: int, comment: str) -> DataFrame:
    number = f"CASE WHEN _metadata.file_block_start = 0 THEN ({_POSITION}) + 1 END"
    return (
        spark.read.text(file.literal_path)
        .select(F.col("value").alias(LINE), F.lit(file.shown).alias(SOURCE_FILE), F.expr(number).alias(SOURCE_LINE))
        .where(f"NOT {is_left_out(comment)} AND coalesce({SOURCE_LINE} > {skipped}, TRUE)")
    )


def lines_by_block(
    spark: SparkSession, files: Sequence[SourceFile], skipped: Mapping[str, LinesBefore], comment: str
) -> NumberedLines:
    """Lines of files of any size and number. `skipped` has what stands before the rows of each."""
    is_one = len(files) == 1
    placed = spark.read.text([file.literal_path for file in files]).select(
        F.col("value").alias(LINE),
        (F.lit(metadata_path(files[0])) if is_one else F.col("_metadata.file_path")).alias("__path"),
        F.col("_metadata.file_block_start").alias("__block"),
        F.expr(_POSITION).alias("__position"),
    )
    blocks, totals = _blocks(placed, {file.path: file for file in files}, skipped, comment)
    schema = f"__path STRING, __block BIGINT, __shift BIGINT, __skipped BIGINT, {SOURCE_FILE} STRING"
    known = F.broadcast(spark.createDataFrame(blocks, schema))
    # Numbers are found quicker than texts, and most large inputs are one file.
    numbered = placed.join(known.drop("__path"), "__block", "left") if is_one else placed.join(known, _PLACE, "left")
    rows = numbered.select(
        LINE,
        F.lit(files[0].shown).alias(SOURCE_FILE)
        if is_one
        else F.expr(f"coalesce({SOURCE_FILE}, __path)").alias(SOURCE_FILE),
        F.expr("__position + __shift").alias(SOURCE_LINE),
        "__skipped",
    )
    rows = rows.where(f"NOT {is_left_out(comment)} AND coalesce({SOURCE_LINE} > __skipped, TRUE)").drop("__skipped")
    return NumberedLines(rows, totals)


Block = tuple[str, int, int, int, str]
"""Path and start of a block, what its positions lack to line numbers, the heading of the file, the file's name."""


def _blocks(
    placed: DataFrame, files: Mapping[str, SourceFile], skipped: Mapping[str, LinesBefore], comment: str
) -> tuple[list[Block], LineTotals]:
    counts = (
        placed.groupBy(*_PLACE)
        .agg(
            F.count(F.lit(1)).alias("lines"),
            F.min("__position").alias("first"),
            F.count_if(F.expr(f"NOT {is_left_out(comment)}")).alias("filled"),
            F.sum(F.expr(f"CASE WHEN NOT {is_left_out(comment)} THEN __position ELSE 0L END")).alias("positions"),
        )
        .collect()
    )
    by_file = defaultdict[str, list[Row]](list)
    for row in counts:
        by_file[row["__path"]].append(row)
    blocks, totals = list[Block](), LineTotals(0, 0)
    for path, rows in by_file.items():
        file = files[file_of_metadata(path)]
        heading = skipped[file.path]
        before = 0
        for row in sorted(rows, key=lambda each: each["__block"]):
            shift = before - row["first"] + 1
            blocks.append((path, row["__block"], shift, heading.last, file.shown))
            totals += LineTotals(row["filled"], row["positions"] + shift * row["filled"])
            before += row["lines"]
        totals += LineTotals(-heading.totals.lines, -heading.totals.sum_of_numbers)
    return blocks, totals
