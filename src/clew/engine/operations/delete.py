"""A delete on Spark: a function on rows, which marks those that it deletes.

Where one of several rows stays, the mask of the others is the ordinal of that row.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from clew.engine.expressing import Expressing
from clew.engine.names import kept_column, ordered_by, selected_column, with_sql
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect, selector_suspects
from clew.plan.keeping import Keeping
from clew.plan.operations import DeleteStep
from clew.storage.parts import DELETED_MASK, ORDINAL, mask_column


def apply_delete(rows: DataFrame, step: DeleteStep, expressing: Expressing) -> DataFrame:
    """The rows after a deletion."""
    selected = selected_column(step.seq)
    if step.keeping is not None:
        return _all_but_one(with_sql(rows, {selected: expressing.selected(step.selector)}), step, step.keeping)
    changes = {
        mask_column(step.seq): f"CASE WHEN {quoted(selected)} THEN {DELETED_MASK}L END",
        "_deleted": f"`_deleted` OR {quoted(selected)}",
    }
    return with_sql(with_sql(rows, {selected: expressing.selected(step.selector)}), changes, without={selected})


def _all_but_one(rows: DataFrame, step: DeleteStep, keeping: Keeping) -> DataFrame:
    """Rows that are not selected form groups of their own, in which nothing is deleted."""
    selected, kept = selected_column(step.seq), kept_column(step.seq)
    keys = ", ".join(quoted(name) for name in (selected, *keeping.keys))
    order = ordered_by(keeping.order, reverse=keeping.which == "last")
    gone = f"({quoted(selected)} AND {ORDINAL} <> {quoted(kept)})"
    changes = {
        mask_column(step.seq): f"CASE WHEN {gone} THEN {quoted(kept)} END",
        "_deleted": f"`_deleted` OR {gone}",
    }
    stays = f"first_value({ORDINAL}) OVER (PARTITION BY {keys} ORDER BY {order})"
    return with_sql(with_sql(rows, {kept: stays}), changes, without={selected, kept})


def delete_suspects(rows: DataFrame, step: DeleteStep) -> Iterator[Suspect]:
    """Its selector."""
    yield from selector_suspects(step.selector, rows.where("NOT `_deleted`"))
