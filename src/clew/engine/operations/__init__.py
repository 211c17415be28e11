"""Spark's part of each operation type, one file for each, and the tables by which the engine finds it.

A step that changes rows is a function on them. A step that creates rows returns new ones. Every step can say which of
its expressions may have failed.
"""

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from clew.engine.creating import Pinned, visible
from clew.engine.expressing import Expressing
from clew.engine.operations.aggregate import aggregate_suspects, summary_rows
from clew.engine.operations.append import append_suspects, appended_rows
from clew.engine.operations.delete import apply_delete, delete_suspects
from clew.engine.operations.output import output_suspects
from clew.engine.operations.update import apply_update, joined_rows, update_suspects
from clew.engine.suspects import Suspect
from clew.plan.columns import Column
from clew.plan.operations import (
    AggregateStep,
    AppendStep,
    ChangingStep,
    CreatingStep,
    DeleteStep,
    OutputStep,
    Step,
    UpdateStep,
)


def changed_rows(
    rows: DataFrame, step: ChangingStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> DataFrame:
    """The rows after a step that changes them. `joined` has the datasets that it looks up in, by alias."""
    match step:
        case UpdateStep():
            return apply_update(rows, step, expressing, joined)
        case DeleteStep():
            return apply_delete(rows, step, expressing)


def new_rows(
    chosen: DataFrame,
    step: CreatingStep,
    expressing: Expressing,
    columns: Sequence[Column],
    period: str,
    *,
    with_links: bool,
) -> DataFrame:
    """The rows that a step creates from those that it has chosen, with all columns of the working dataset."""
    match step:
        case AggregateStep():
            return summary_rows(chosen, step, expressing, columns, period, with_links=with_links)
        case AppendStep():
            return appended_rows(chosen, step, expressing, columns, period, with_links=with_links)


def suspects(rows: DataFrame, step: Step, pinned: Pinned, expressing: Expressing) -> Iterator[Suspect]:
    """The expressions of a step that may have failed on a value; `rows` is the working dataset before the step."""
    match step:
        case UpdateStep():
            return update_suspects(rows, step, expressing, joined_for(step, pinned))
        case DeleteStep():
            return delete_suspects(rows, step)
        case AggregateStep():
            return aggregate_suspects(rows, step, expressing)
        case AppendStep():
            return append_suspects(visible(pinned(step.source)), step, expressing)
        case OutputStep():
            return output_suspects(rows, step)


def joined_for(step: ChangingStep, pinned: Pinned) -> dict[str, DataFrame]:
    """The datasets that a step looks up in, by alias."""
    return {join.alias: joined_rows(visible(pinned(join.dataset)), join) for join in step.lookups}
