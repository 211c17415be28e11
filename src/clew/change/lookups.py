"""How many rows of a run have looked up each row of a joined dataset, found from the trace."""

# ruff: noqa: S608 - names are quoted by `clew.trace.sql`

from collections.abc import Iterator, Sequence

from clew.change.points import CountedRows, Point, rows_at, rows_where
from clew.change.recomputing import Cells, JoinLookup, before_joins
from clew.lang.evaluation import Row
from clew.lang.typed import Value, columns_of
from clew.plan.operations import Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase, Join
from clew.storage.parts import ORDINAL
from clew.trace.json_values import values_of
from clew.trace.reader import RunTrace
from clew.trace.sql import quoted


def times_looked_up(
    trace: RunTrace, point: Point, where: str | None, step: ChangingStepBase, join: Join, rows: Sequence[Cells]
) -> list[int] | None:
    """By how many of the rows that count at a point each row of a dataset was looked up in a step before it.

    Where a later step makes one row of several, all rows of the step count. None if the condition of the join looks at
    more than a row and the one that it finds.
    """
    table = trace.plan.input.table
    named = columns_of(join.on.tree)
    names = sorted({name for owner, name in named if owner == table})
    at = max((each.seq for each in trace.plan.steps if each.seq < step.seq), default=0)
    if {owner for owner, _ in named} - {table, join.alias} or not trace.working(at).names >= set(names):
        return None
    chosen = before_joins(step.selector, table)
    seen = rows_where(trace, at, [] if chosen is None else [chosen.tree], names)
    counted = None if _mixes_rows(trace.plan.steps, step.seq, point.seq) else rows_at(trace, point, where, ())
    by_row = [{**cells, _NUMBER: number} for number, cells in enumerate(rows)]
    lookup = JoinLookup.of(join, by_row, trace.today)
    found = [0] * len(rows)
    for values, count in _distinct(trace, at, seen, counted, names):
        row = Row({table: dict(zip(names, values, strict=True))}, trace.today)
        for cells in lookup.found(row):
            number = cells[_NUMBER]
            assert isinstance(number, int)  # noqa: S101 - put there above
            found[number] += count
    return found


_NUMBER = " number"
"""The place of a row among those of its dataset, beside its columns. No name that users give begins with a space."""


def _mixes_rows(steps: Sequence[Step], after: int, until: int) -> bool:
    """Whether what becomes of a row hangs on other rows in a step between two others."""
    return any(
        (isinstance(step, CreatingStepBase) and step.made_from is None)
        or (isinstance(step, ChangingStepBase) and bool(step.keeps is not None or step.window_calls))
        for step in steps
        if after <= step.seq <= until
    )


def _distinct(
    trace: RunTrace, at: int, seen: CountedRows, counted: CountedRows | None, names: Sequence[str]
) -> Iterator[tuple[tuple[Value, ...], int]]:
    """The different values of some columns, and how many rows have them."""
    rows = trace.working(at)
    sql = "SELECT count(*) AS n" + "".join(f", {quoted(name)}" for name in names) + " FROM (" + seen.relation.sql + ")"
    files, tables = seen.relation.files, seen.tables
    if counted is not None:
        sql += f" WHERE {ORDINAL} IN (SELECT {ORDINAL} FROM (" + counted.relation.sql + "))"
        files, tables = tuple(dict.fromkeys([*files, *counted.relation.files])), {**tables, **counted.tables}
    found = rows.database.query(sql + " GROUP BY ALL", files, tables)
    columns = [values_of(found[name], rows.types[name]) for name in names]
    counts = found["n"].to_pylist()
    yield from zip(zip(*columns, strict=True) if columns else [()] * len(counts), counts, strict=True)
