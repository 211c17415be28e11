"""An append on Spark: rows of another dataset, or summaries of them, as rows of the working dataset."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame

from clew.engine.creating import aggregated, as_working_rows, link_columns, out_column, sorted_by_keys
from clew.engine.expressing import Expressing
from clew.engine.names import named
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect, arguments_of
from clew.plan.columns import Column
from clew.plan.operations import AppendStep
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, TRACE_ID, group_key_column


def appended_rows(
    chosen: DataFrame,
    step: AppendStep,
    expressing: Expressing,
    columns: Sequence[Column],
    period: str,
    *,
    with_links: bool,
) -> DataFrame:
    """The chosen rows of the source, or summaries of them. Raw rows keep their source and their trace id."""
    sql = expressing.source_sql
    if step.group_by is None:
        filled = {column.column: sql(column.value.tree) for column in step.columns}
        return as_working_rows(chosen, columns, filled, period, (SOURCE_FILE, SOURCE_LINE, TRACE_ID))
    grouped = aggregated(chosen, step.group_by, step.columns, sql, with_links=with_links)
    filled = {column.column: quoted(out_column(index)) for index, column in enumerate(step.columns)}
    own_keys = [named(quoted(name), group_key_column(position)) for position, name in step.narrowed_keys]
    kept = (*link_columns(with_links=with_links), *own_keys)
    return as_working_rows(sorted_by_keys(grouped, step.group_by), columns, filled, period, kept)


def append_suspects(source: DataFrame, step: AppendStep, expressing: Expressing) -> Iterator[Suspect]:
    """The selector of the source, and the values of the columns that it fills."""
    chosen = source
    if step.source_selector is not None:
        yield Suspect("the source_selector", step.source_selector.tree, source, step.source)
        chosen = source.where(expressing.source_sql(step.source_selector.tree))
    trees = ((f"column {each.column}", each.value.tree) for each in step.columns)
    for what, tree in trees if step.group_by is None else arguments_of(step.columns):
        yield Suspect(what, tree, chosen, step.source)
