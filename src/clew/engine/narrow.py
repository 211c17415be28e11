"""Updates and deletions as pure functions on rows.

A narrow step adds columns that say what it changed (a mask, and the values after it) and gives the assigned columns
their new values. Nothing runs here: Spark evaluates the chain when something is written, and leaves out what the
writer does not ask for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.engine.conditions import can_fail, guarded
from clew.engine.names import joined_column, new_column, selected_column, with_sql, working_columns
from clew.engine.sql import quoted, spark_type, sql_of
from clew.lang.typed import ColumnValue, Expression, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.operations import DeleteStep, UpdateStep
from clew.plan.steps import Join, PlannedExpression
from clew.storage.parts import DELETED_MASK, MASK_BITS, ORDINAL, TracedStep, after_column, mask_column, mask_words

NarrowStep = UpdateStep | DeleteStep


@dataclass(frozen=True, slots=True)
class Expressing:
    """What turns expressions of a plan into SQL: the run, the working table's name, and what TODAY() means."""

    run_id: str
    table: str
    today: date

    def sql(self, tree: Expression) -> str:
        """The SQL of an expression over the working dataset and the joins of a step."""
        return sql_of(tree, working_columns(self.run_id, self.table), self.today)

    def selected(self, selector: PlannedExpression | None) -> str:
        """SQL that is TRUE for the rows that a step with this selector acts on and FALSE for all others."""
        if selector is None:
            return "NOT `_deleted`"
        return f"(NOT `_deleted` AND coalesce({self.sql(selector.tree)}, FALSE))"

    def filter(self, selector: PlannedExpression | None) -> str:
        """The same as a condition for `where`.

        Spark takes the parts of a condition to where each can be decided first. So where a selector can fail, it must
        not come apart, or it would fail on rows that were deleted because it fails on them.
        """
        if selector is None or not can_fail(selector.tree):
            return self.selected(selector)
        return f"CASE WHEN NOT `_deleted` THEN coalesce({self.sql(selector.tree)}, FALSE) ELSE {ORDINAL} < 0L END"


def apply_delete(rows: DataFrame, step: DeleteStep, expressing: Expressing) -> DataFrame:
    """The rows behind a deletion."""
    selected = selected_column(step.seq)
    changes = {
        mask_column(step.seq): f"CASE WHEN {quoted(selected)} THEN {DELETED_MASK}L END",
        "_deleted": f"`_deleted` OR {quoted(selected)}",
    }
    return with_sql(with_sql(rows, {selected: expressing.selected(step.selector)}), changes, without={selected})


def apply_update(
    rows: DataFrame, step: UpdateStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> DataFrame:
    """The rows behind an update. `joined` has for each alias its dataset, columns named by `joined_column`."""
    rows = rows_with_joins(rows, step, expressing, joined)
    selected = selected_column(step.seq)
    new = {
        new_column(step.seq, position): (
            f"CASE WHEN {quoted(selected)} THEN {expressing.sql(assignment.value.tree)} ELSE {_old(step, position)} END"
        )
        for position, assignment in enumerate(step.assignments)
    }
    joined_columns = {joined_column(join.alias, column.name) for join in step.joins for column in join.dataset.columns}
    return with_sql(with_sql(rows, new), _changes(step), without={selected, *new, *joined_columns})


def rows_with_joins(
    rows: DataFrame, step: UpdateStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> DataFrame:
    """Rows with the columns of a step's joins, and `selected_column`, which says whether the step is for them."""
    rows = guarded_rows(rows, step, expressing)
    for join in step.joins:
        rows = matched_rows(rows, step, join, joined[join.alias], expressing, "left")
    if not _looks_at_joins(step, expressing):
        return rows
    return with_sql(rows, {selected_column(step.seq): expressing.selected(step.selector)})


def guarded_rows(rows: DataFrame, step: UpdateStep, expressing: Expressing) -> DataFrame:
    """Rows with `selected_column`, as far as it can be told before anything is joined."""
    selector = None if _looks_at_joins(step, expressing) else step.selector
    return with_sql(rows, {selected_column(step.seq): expressing.selected(selector)})


def matched_rows(
    rows: DataFrame, step: UpdateStep, join: Join, other: DataFrame, expressing: Expressing, how: str
) -> DataFrame:
    """Guarded rows joined to one dataset.

    Rows that the step is not for match nothing, so that what would match them twice cannot double them.
    """
    guard = ColumnValue(expressing.table, selected_column(step.seq), BOOLEAN)
    condition = guarded(join.on.tree, join.alias, guard)
    return rows.join(other, F.expr(expressing.sql(condition)), how)


def _looks_at_joins(step: UpdateStep, expressing: Expressing) -> bool:
    return step.selector is not None and any(table != expressing.table for table, _ in columns_of(step.selector.tree))


def _changes(step: UpdateStep) -> dict[str, str]:
    """Mask, values after, and the assigned columns themselves, all from the values before and the new ones."""
    columns = dict[str, str]()
    for word in range(mask_words(len(step.assignments))):
        first = word * MASK_BITS
        columns[mask_column(step.seq, word)] = _mask(step, range(first, first + MASK_BITS))
    for position, assignment in enumerate(step.assignments):
        new = quoted(new_column(step.seq, position))
        columns[after_column(step.seq, position)] = f"CASE WHEN {_is_changed(step, position)} THEN {new} END"
        columns[assignment.column] = new
    return columns


def _mask(step: UpdateStep, positions: range) -> str:
    """One bit for each assignment that changed a value, NULL where none did.

    A single assignment needs it only where it has left no value behind, which is seldom, and such a mask costs next to
    nothing. Of several assignments the mask tells for a row whether anything has changed.
    """
    if len(step.assignments) == 1:
        new = quoted(new_column(step.seq, 0))
        return f"CASE WHEN {new} IS NULL AND {_is_changed(step, 0)} THEN 1L END"
    bits = {1 << bit: position for bit, position in enumerate(positions) if position < len(step.assignments)}
    total = " | ".join(f"IF({_is_changed(step, position)}, {bit}L, 0L)" for bit, position in bits.items())
    return f"nullif({total}, 0L)"


def _is_changed(step: UpdateStep, position: int) -> str:
    """Rows that the step is not for need no comparison of values."""
    new = quoted(new_column(step.seq, position))
    return f"{quoted(selected_column(step.seq))} AND NOT ({_old(step, position)} <=> {new})"


def _old(step: UpdateStep, position: int) -> str:
    assignment = step.assignments[position]
    if assignment.adds_column:
        return f"CAST(NULL AS {spark_type(assignment.value.tree.type)})"
    return quoted(assignment.column)


def traced(step: NarrowStep) -> TracedStep:
    """What the trace keeps of a step."""
    if isinstance(step, UpdateStep):
        return TracedStep(step.seq, "update", tuple(assignment.column for assignment in step.assignments))
    return TracedStep(step.seq, "delete", ())
