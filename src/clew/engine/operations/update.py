"""An update on Spark: a pure function on rows.

It adds columns that say what it changed (a mask, and the values after it) and gives the assigned columns their new
values. Nothing runs here: Spark evaluates the chain when something is written, and leaves out what the writer does not
need.
"""

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.engine.conditions import conditions_on, guarded
from clew.engine.expressing import Expressing
from clew.engine.names import directed, joined_column, named, new_column, selected_column, window_argument, with_sql
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted, spark_type
from clew.engine.sql.windows import window_sql
from clew.engine.suspects import Suspect, parts_of, selector_suspects, tables_of
from clew.lang.typed import OVER, ColumnValue, columns_of
from clew.lang.types import BOOLEAN, Kind
from clew.plan.operations import ChangingStep, UpdateStep
from clew.plan.steps import Join, PlannedExpression
from clew.storage.parts import MASK_BITS, ORDINAL, after_column, mask_column, mask_words


def joined_rows(pinned: DataFrame, join: Join) -> DataFrame:
    """The rows of a joined dataset under the names that the expressions of an update use."""
    columns = join.dataset.columns
    return select_sql(pinned, [named(quoted(each.name), joined_column(join.alias, each.name)) for each in columns])


def apply_update(
    rows: DataFrame, step: UpdateStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> DataFrame:
    """The rows after an update. `joined` has for each alias its dataset, columns named by `joined_column`."""
    rows = rows_with_joins(rows, step, expressing, joined)
    selected = selected_column(step.seq)
    new = {
        new_column(step.seq, position): (
            f"CASE WHEN {quoted(selected)} THEN {expressing.sql(assignment.value.tree)} ELSE {_old(step, position)} END"
        )
        for position, assignment in enumerate(step.assignments)
    }
    looked_up = {joined_column(join.alias, column.name) for join in step.joins for column in join.dataset.columns}
    looked_up |= {joined_column(OVER, window.column) for window in step.windows}
    return with_sql(with_sql(rows, new), _changes(step), without={selected, *new, *looked_up})


def rows_with_joins(
    rows: DataFrame, step: UpdateStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> DataFrame:
    """Rows with the columns of a step's joins, and `selected_column`, which says whether the step is for them."""
    rows = _with_windows(guarded_rows(rows, step, expressing), step, expressing)
    for join in step.joins:
        rows = matched_rows(rows, step, join, joined[join.alias], expressing, "left")
    if not _looks_at_joins(step, expressing):
        return rows
    return with_sql(rows, {selected_column(step.seq): expressing.selected(step.selector)})


def _with_windows(rows: DataFrame, step: UpdateStep, expressing: Expressing) -> DataFrame:
    """Guarded rows with the values of calls with OVER. Rows that the step is not for have windows of their own."""
    if not step.windows:
        return rows
    selected = quoted(selected_column(step.seq))
    listed = list(enumerate(step.windows))
    arguments = {
        window_argument(step.seq, position, number): f"CASE WHEN {selected} THEN {expressing.sql(tree)} END"
        for position, window in listed
        for number, tree in enumerate(window.values)
    }
    values = {
        joined_column(OVER, window.column): window_sql(
            window,
            [quoted(window_argument(step.seq, position, number)) for number in range(len(window.values))],
            f"PARTITION BY {', '.join((selected, *map(quoted, window.keys)))}",
            directed((quoted(name), descending) for name, descending in window.order),
            ORDINAL,
        )
        for position, window in listed
    }
    return with_sql(with_sql(rows, arguments), values, without=set(arguments))


def guarded_rows(rows: DataFrame, step: ChangingStep, expressing: Expressing) -> DataFrame:
    """Rows with `selected_column`, as far as it can be told before anything is joined.

    Of a selector that looks at joined datasets too, the conditions on the row itself count already.
    """
    selector = step.selector
    if selector is not None and _looks_at_joins(step, expressing):
        own = conditions_on(selector.tree, expressing.table)
        selector = None if own is None else PlannedExpression(selector.text, own)
    return with_sql(rows, {selected_column(step.seq): expressing.selected(selector)})


def matched_rows(
    rows: DataFrame, step: ChangingStep, join: Join, other: DataFrame, expressing: Expressing, how: str
) -> DataFrame:
    """Guarded rows joined to one dataset.

    Rows that the step is not for match nothing, so that what would match them twice cannot double them.
    """
    guard = ColumnValue(expressing.table, selected_column(step.seq), BOOLEAN)
    condition = guarded(join.on.tree, join.alias, guard)
    return rows.join(other, F.expr(expressing.sql(condition)), how)


def _looks_at_joins(step: ChangingStep, expressing: Expressing) -> bool:
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
        is_double = assignment.value.tree.type.kind is Kind.DOUBLE
        columns[assignment.column] = (
            f"IF({_old(step, position)} <=> {new}, {_old(step, position)}, {new})" if is_double else new
        )
    return columns


def _mask(step: UpdateStep, positions: range) -> str:
    """One bit for each assignment that changed a value, NULL where none did.

    A single assignment needs it only where it has left no value behind, which is rare, and such a mask costs almost
    nothing. Of several assignments the mask tells for a row whether anything has changed.
    """
    if not step.assignments:  # it only drops columns
        return "CAST(NULL AS BIGINT)"
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


def update_suspects(
    rows: DataFrame, step: UpdateStep, expressing: Expressing, joined: Mapping[str, DataFrame]
) -> Iterator[Suspect]:
    """Its selector, its join conditions and its assignments."""
    own = {expressing.table}
    if step.selector is not None and tables_of(step.selector.tree) <= own:
        yield from selector_suspects(step.selector, rows.where("NOT `_deleted`"))
    selected = quoted(selected_column(step.seq))
    guarded = guarded_rows(rows, step, expressing).where(selected)
    for join in step.joins:
        for part in parts_of(join.on.tree):
            if tables_of(part) <= own:
                yield Suspect(f"the condition of join {join.alias}", part, guarded)
            elif tables_of(part) == {join.alias}:
                other = joined[join.alias]
                yield Suspect(f"the condition of join {join.alias}", part, other, join.dataset, join.alias)
    for window in step.windows:
        yield from (Suspect(window.column, tree, guarded) for tree in window.values)
    complete = rows_with_joins(rows, step, expressing, joined).where(selected)
    yield from (Suspect(f"column {each.column}", each.value.tree, complete) for each in step.assignments)
