"""Rows that steps create: which rows they are made from, how groups are summed up, what is written of them."""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.engine.expressing import Expressing
from clew.engine.names import SYSTEM_TYPES, named
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted, spark_type, text_literal
from clew.lang.typed import Expression
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.operations import CreatingStep
from clew.plan.steps import Assignment
from clew.storage.parts import ORDINAL, PARENTS, TRACE_ID

_GROUP_SIZE = "__group_size"
_COUNTS = "__counts"

Pinned = Callable[[DatasetUse], DataFrame]
"""Gives the loaded rows of a dataset, those of the run's period."""


def visible(pinned: DataFrame) -> DataFrame:
    """The rows of a dataset that steps see: those that were not deleted before it was registered."""
    return pinned.where("NOT `_deleted`")


def chosen_rows(step: CreatingStep, rows: DataFrame, expressing: Expressing) -> DataFrame:
    """The rows that a step makes new rows from; `rows` are those of the dataset that they are chosen from."""
    if step.made_from is None:
        return rows.where(expressing.filter(step.condition))
    rows = visible(rows)
    return rows.where(expressing.source_sql(step.condition.tree)) if step.condition else rows


def sql_over_chosen(step: CreatingStep, expressing: Expressing) -> Callable[[Expression], str]:
    """What gives the SQL of expressions over those rows."""
    return expressing.sql if step.made_from is None else expressing.source_sql


def out_column(index: int) -> str:
    """The column of an aggregation before it has its name."""
    return f"__out{index}"


def link_columns(*, with_links: bool) -> tuple[str, ...]:
    """The columns that lead from a summary row to its source rows, where they are written."""
    return (PARENTS,) if with_links else ()


def aggregated(
    rows: DataFrame,
    group_by: tuple[str, ...],
    aggregations: tuple[Assignment, ...],
    sql: Callable[[Expression], str],
    having: str | None = None,
    *,
    with_links: bool = False,
) -> DataFrame:
    """One row for each group, with the values of the aggregations and, if asked for, the trace ids of its rows.

    `having` is SQL that is TRUE for the groups that count.
    """
    values = [F.expr(sql(item.value.tree)).alias(out_column(index)) for index, item in enumerate(aggregations)]
    if with_links:
        values.append(F.sort_array(F.collect_set(TRACE_ID)).alias(PARENTS))
    size = F.count(F.lit(1)).alias(_GROUP_SIZE)
    if having is not None:
        values.append(F.expr(having).alias(_COUNTS))
    grouped = rows.groupBy(*map(quoted, group_by)).agg(size, *values).where(f"{_GROUP_SIZE} > 0")
    return grouped if having is None else grouped.where(_COUNTS)


def sorted_by_keys(grouped: DataFrame, group_by: tuple[str, ...]) -> DataFrame:
    """Groups by their keys within each file; few groups make one file, so that people find them in order."""
    return grouped.sortWithinPartitions(*map(quoted, group_by)) if group_by else grouped


def as_working_rows(
    rows: DataFrame,
    columns: Sequence[Column],
    filled: Mapping[str, str],
    period: str,
    kept: tuple[str, ...] = (),
) -> DataFrame:
    """All columns of the working dataset; NULL where the new rows say nothing. `_period` is the run's unless given.

    `kept` are columns of ours that go along as they are.
    """
    texts = {column.name: f"CAST({filled.get(column.name, 'NULL')} AS {spark_type(column.type)})" for column in columns}
    texts["_period"] = filled.get("_period") or text_literal(period)
    texts["_labels"] = filled.get("_labels", "''")
    return select_sql(rows, [*(named(sql, name) for name, sql in texts.items()), *kept])


def columns_looked_at(step: CreatingStep) -> set[str]:
    """The columns of the rows that a step makes new rows from, as far as it looks at them."""
    return {*(step.keys or ()), *(read.column for read in step.reads)}


def written_rows(spark: SparkSession, files: Sequence[str], step: CreatingStep, columns: Sequence[Column]) -> DataFrame:
    """The rows of an output, as far as a later step looks at them. None of them is deleted."""
    types = {column.name: spark_type(column.type) for column in columns} | SYSTEM_TYPES
    schema = ", ".join(f"{quoted(name)} {types[name]}" for name in sorted(columns_looked_at(step)))
    rows = spark.read.schema(schema).parquet(*files)
    return rows.withColumns({"_deleted": F.lit(False), ORDINAL: F.lit(0).cast("bigint")})
