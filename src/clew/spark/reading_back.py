"""Summaries that are worked out from the rows of the output behind them.

Where an aggregate is followed by an output of the same rows, both would compute every step before them, each for
itself. So the rows are written first, the sums are taken from what was written, and the summaries are added behind.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.plan.columns import Column
from clew.plan.steps import AggregateStep, OutputStep
from clew.spark.names import SYSTEM_TYPES
from clew.spark.sql import quoted, spark_type
from clew.spark.working import Storage
from clew.trace.layout import ORDINAL


def shows_what_is_summed_up(aggregate: AggregateStep, output: OutputStep) -> bool:
    """Whether an output has all rows and columns that the aggregate before it looks at."""
    has_all_rows = output.selector is None and not output.include_deleted and output.registers is None
    return has_all_rows and _needed(aggregate) <= set(output.columns) - {"_row_id"}


def written_rows(
    storage: Storage, files: Sequence[Path], aggregate: AggregateStep, columns: Sequence[Column]
) -> DataFrame:
    """The rows of an output, as far as an aggregate looks at them. None of them is deleted."""
    types = {column.name: spark_type(column.type) for column in columns} | SYSTEM_TYPES
    schema = ", ".join(f"{quoted(name)} {types[name]}" for name in sorted(_needed(aggregate)))
    rows = storage.spark.read.schema(schema).parquet(*map(str, files))
    return rows.withColumns({"_deleted": F.lit(False), ORDINAL: F.lit(0).cast("bigint")})


def _needed(aggregate: AggregateStep) -> set[str]:
    return {*aggregate.group_by, *(read.column for read in aggregate.reads)}
