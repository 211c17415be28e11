"""Rows that aggregate and append create, as the columns that are written once and read ever after.

Summaries that are worked out from the rows of the output behind them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.engine.names import SYSTEM_TYPES, named, own_columns
from clew.engine.narrow import Expressing
from clew.engine.sql import quoted, spark_type, sql_of, text_literal
from clew.engine.working import Storage
from clew.lang.typed import Expression
from clew.plan.columns import Column
from clew.plan.operations import AggregateStep, AppendStep, OutputStep
from clew.plan.steps import Assignment
from clew.storage.parts import ORDINAL, PARENTS, SOURCE_FILE, SOURCE_LINE, TRACE_ID, group_key_column

_GROUP_SIZE = "__group_size"


def summary_rows(
    rows: DataFrame,
    step: AggregateStep,
    expressing: Expressing,
    columns: tuple[Column, ...],
    period: str,
    *,
    with_links: bool = False,
) -> DataFrame:
    """One row for each group of the selected rows. A group has rows: nothing is summed up over none."""
    selected = rows.where(expressing.filter(step.selector))
    grouped = aggregated(selected, step.group_by, step.aggregations, expressing.sql, with_links=with_links)
    filled = {name: quoted(name) for name in step.group_by}
    filled |= {aggregation.column: quoted(_out(index)) for index, aggregation in enumerate(step.aggregations)}
    return _as_working_rows(_sorted(grouped, step.group_by), columns, filled, period, _links(with_links))


def appended_rows(
    source: DataFrame,
    step: AppendStep,
    expressing: Expressing,
    columns: tuple[Column, ...],
    period: str,
    *,
    with_links: bool = False,
) -> DataFrame:
    """The rows of another dataset, or summaries of them, as rows of the working dataset."""

    sql = partial(source_sql, expressing=expressing)
    chosen = source.where(sql(step.source_selector.tree)) if step.source_selector else source
    if step.group_by is None:
        filled = {column.column: sql(column.value.tree) for column in step.columns}
        return _as_working_rows(chosen, columns, filled, period, (SOURCE_FILE, SOURCE_LINE, TRACE_ID))
    grouped = aggregated(chosen, step.group_by, step.columns, sql, with_links=with_links)
    filled = {column.column: quoted(_out(index)) for index, column in enumerate(step.columns)}
    kept = [named(quoted(name), group_key_column(position)) for position, name in step.narrowed_keys]
    return _as_working_rows(_sorted(grouped, step.group_by), columns, filled, period, (*_links(with_links), *kept))


def source_sql(tree: Expression, expressing: Expressing) -> str:
    """The SQL of an expression over the rows of an appended dataset."""
    return sql_of(tree, own_columns, expressing.today)


def _out(index: int) -> str:
    return f"__out{index}"


def _links(with_links: bool) -> tuple[str, ...]:
    return (PARENTS,) if with_links else ()


def aggregated(
    rows: DataFrame,
    group_by: tuple[str, ...],
    aggregations: tuple[Assignment, ...],
    sql: Callable[[Expression], str],
    *,
    with_links: bool = False,
) -> DataFrame:
    """One row for each group, with the values of the aggregations and, if asked for, the trace ids of its rows."""
    values = [F.expr(sql(item.value.tree)).alias(_out(index)) for index, item in enumerate(aggregations)]
    if with_links:
        values.append(F.sort_array(F.collect_set(TRACE_ID)).alias(PARENTS))
    size = F.count(F.lit(1)).alias(_GROUP_SIZE)
    return rows.groupBy(*map(quoted, group_by)).agg(size, *values).where(f"{_GROUP_SIZE} > 0")


def _sorted(grouped: DataFrame, group_by: tuple[str, ...]) -> DataFrame:
    """Groups by their keys within each file; few groups make one file, so that people find them in order."""
    return grouped.sortWithinPartitions(*map(quoted, group_by)) if group_by else grouped


def _as_working_rows(
    rows: DataFrame,
    columns: tuple[Column, ...],
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
    return rows.selectExpr(*(named(sql, name) for name, sql in texts.items()), *kept)


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
