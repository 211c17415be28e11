"""A delete on Spark: a pure function on rows, which marks those that it deletes."""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from clew.engine.expressing import Expressing
from clew.engine.names import selected_column, with_sql
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect, selector_suspects
from clew.plan.operations import DeleteStep
from clew.storage.parts import DELETED_MASK, mask_column


def apply_delete(rows: DataFrame, step: DeleteStep, expressing: Expressing) -> DataFrame:
    """The rows after a deletion."""
    selected = selected_column(step.seq)
    changes = {
        mask_column(step.seq): f"CASE WHEN {quoted(selected)} THEN {DELETED_MASK}L END",
        "_deleted": f"`_deleted` OR {quoted(selected)}",
    }
    return with_sql(with_sql(rows, {selected: expressing.selected(step.selector)}), changes, without={selected})


def delete_suspects(rows: DataFrame, step: DeleteStep) -> Iterator[Suspect]:
    """Its selector."""
    yield from selector_suspects(step.selector, rows.where("NOT `_deleted`"))
