"""An aggregate on Spark: one row for each group of the rows that it selects."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame

from clew.engine.creating import aggregated, as_working_rows, link_columns, out_column, sorted_by_keys
from clew.engine.expressing import Expressing
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect, arguments_of, selector_suspects
from clew.plan.columns import Column
from clew.plan.operations import AggregateStep
from clew.plan.steps import Assignment


def summary_rows(
    chosen: DataFrame,
    step: AggregateStep,
    expressing: Expressing,
    columns: Sequence[Column],
    period: str,
    *,
    with_links: bool,
) -> DataFrame:
    """One row for each group of the chosen rows. A group has rows: nothing is summed up over none."""
    having = None if step.having is None else expressing.sql(step.having.tree)
    grouped = aggregated(chosen, step.group_by, step.aggregations, expressing.sql, having, with_links=with_links)
    filled = {name: quoted(name) for name in step.group_by}
    filled |= {aggregation.column: quoted(out_column(index)) for index, aggregation in enumerate(step.aggregations)}
    kept = link_columns(with_links=with_links)
    return as_working_rows(sorted_by_keys(grouped, step.group_by), columns, filled, period, kept)


def aggregate_suspects(rows: DataFrame, step: AggregateStep, expressing: Expressing) -> Iterator[Suspect]:
    """Its selector, and what its aggregations evaluate row by row."""
    yield from selector_suspects(step.selector, rows.where("NOT `_deleted`"))
    chosen = rows.where(expressing.filter(step.selector))
    yield from (Suspect(what, tree, chosen) for what, tree in arguments_of(step.aggregations))
    if step.having is not None:
        having = (Assignment("having", step.having, adds_column=False),)
        yield from (Suspect(what, tree, chosen) for what, tree in arguments_of(having))
