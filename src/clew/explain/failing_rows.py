"""The rows that fail a check, from the trace and without Spark: nothing of them was stored but their number."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Iterator
from itertools import islice

from clew import budgets
from clew.explain.pinned import dataset_rows
from clew.explain.row_conditions import with_values
from clew.lang.typed import Value, columns_of
from clew.lang.types import Kind
from clew.plan.planned_checks import PlannedCheck
from clew.storage.parts import ORDINAL
from clew.trace.reader import RunTrace
from clew.trace.results import FoundRow, FoundRows
from clew.trace.row_sets import RowSet
from clew.trace.sql import Sql, quoted

_BYTES_PER_ROW = 120
"""What a row takes while its key is compared with those of others."""


def failing_rows(trace: RunTrace, check: PlannedCheck, limit: int, after: str | None = None) -> FoundRows:
    """The rows that fail a check, as they stood where it looked. No rows where it is about all rows together."""
    if check.of_dataset or not check.of_rows:
        return trace.no_rows(check.at)
    table = trace.plan.input.table
    condition = check.condition(table)
    if condition is not None:
        return trace.search(condition, check.at, limit, after)
    start = trace.row_ids.ordinal(after) if after is not None else None
    rows = trace.working(check.at)
    found = _duplicated(trace, check, rows) if check.keys else _unmatched(trace, check, rows)
    page = list(islice((each for each in found if start is None or each > start), limit + 1))
    columns = trace.run.columns(check.at)
    states = rows.values(page[:limit], [name for name, _ in columns])
    return FoundRows(
        at=check.at,
        columns=columns,
        rows=tuple(FoundRow(trace.row_ids.row_id(ordinal), state) for ordinal, state in states),
        has_more=len(page) > limit,
        table=table,
    )


def _duplicated(trace: RunTrace, check: PlannedCheck, rows: RowSet) -> list[int]:
    """Rows whose keys others have too, by ordinal. DuckDB compares keys where it does so exactly."""
    within = check.within.tree if check.within is not None else None
    condition = Sql("TRUE") if within is None else rows.in_sql(within, trace.today)
    has_doubles = any(rows.types[name].kind is Kind.DOUBLE for name in check.keys)
    if condition is None or has_doubles:
        return _duplicated_in_python(trace, check, rows)
    also = sorted({name for _, name in columns_of(within)}) if within is not None else []
    given = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in check.keys)
    where = f"NOT coalesce(_deleted, FALSE) AND {given} AND coalesce(" + condition + ", FALSE)"
    relation = rows.relation(check.keys, where, also)
    keys = ", ".join(quoted(name) for name in check.keys)
    counted = f"SELECT {ORDINAL}, count(*) OVER (PARTITION BY {keys}) AS n FROM (" + relation.sql + ")"
    sql = f"SELECT {ORDINAL} FROM (" + counted + f") WHERE n > 1 ORDER BY {ORDINAL}"
    found: list[int] = rows.database.query(sql, list(relation.files))[ORDINAL].to_pylist()
    return found


def _duplicated_in_python(trace: RunTrace, check: PlannedCheck, rows: RowSet) -> list[int]:
    by_key = dict[tuple[Value, ...], list[int]]()
    for ordinal, cells in rows.matching(check.is_checked(trace.plan.input.table), check.keys, trace.see):
        key = tuple(cells[name] for name in check.keys)
        if None not in key:
            budgets.hold(_BYTES_PER_ROW)
            by_key.setdefault(key, []).append(ordinal)
    return sorted(ordinal for ordinals in by_key.values() if len(ordinals) > 1 for ordinal in ordinals)


def _unmatched(trace: RunTrace, check: PlannedCheck, rows: RowSet) -> Iterator[int]:
    """Rows that no row of the joined dataset matches. Rows with the same values need one look."""
    join, table = check.join, trace.plan.input.table
    assert join is not None  # noqa: S101 - asked for these checks only
    read = sorted({name for each, name in columns_of(join.on.tree) if each == table and name != "_row_id"})
    known = dict[tuple[Value, ...], bool]()
    for ordinal, cells in rows.matching(check.is_checked(table), read, trace.see):
        key = tuple(cells[name] for name in read)
        if key not in known:
            condition = with_values(join.on.tree, join.alias, trace.see(ordinal, cells))
            known[key] = any(dataset_rows(trace, join.dataset, condition, join.alias, limit=1))
        if not known[key]:
            yield ordinal
