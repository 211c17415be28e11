"""Rows that aggregate and append create, as the columns that are written once and read ever after."""

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.lang.typed import Expression
from clew.plan.columns import Column
from clew.plan.steps import AggregateStep, AppendStep, Assignment
from clew.spark.names import own_columns
from clew.spark.narrow import Expressing
from clew.spark.selecting import named
from clew.spark.sql import quoted, spark_type, sql_of, text_literal
from clew.trace.layout import PARENTS, SOURCE_FILE, SOURCE_LINE, TRACE_ID, group_key_column

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
