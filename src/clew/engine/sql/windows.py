"""Calls with a window in Spark SQL. Their arguments are columns already: only Spark's aggregates have brackets."""

import re
from collections.abc import Sequence
from datetime import date

from clew.engine.sql.aggregates import AGGREGATES
from clew.engine.sql.call import SqlCall
from clew.engine.sql.literals import spark_type
from clew.lang.windowing import WindowCall

_AGGREGATE = re.compile(r"\b(?:sum|avg|count|min|max|min_by|max_by)\(")


def window_sql(window: WindowCall, arguments: Sequence[str], partition: str, order: str, ordinal: str) -> str:
    """The SQL of a call: `arguments` are quoted columns, `order` is the SQL of its order, empty where it has none."""
    complete = f"{partition} ORDER BY {order + ', ' if order else ''}{ordinal}"
    if window.function == "ROW_NUMBER":
        return f"CAST(row_number() OVER ({complete}) AS BIGINT)"
    if window.function in {"RANK", "DENSE_RANK"}:
        return f"CAST({window.function.lower()}() OVER ({partition} ORDER BY {order}) AS BIGINT)"
    if window.function in {"LAG", "LEAD"}:
        rows = abs((window.reach or (1, 1))[0] or 1)
        return f"{window.function.lower()}({arguments[0]}, {rows}) OVER ({complete})"
    if window.reach is not None:
        first, last = (_end(end, which) for end, which in zip(window.reach, ("PRECEDING", "FOLLOWING"), strict=True))
        over = f"{complete} ROWS BETWEEN {first} AND {last}"
    elif order:
        over = f"{partition} ORDER BY {order} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    else:
        over = partition
    return _with_over(_aggregate(window, arguments), over)


def _aggregate(window: WindowCall, arguments: Sequence[str]) -> str:
    """An aggregate without its window. Spark takes no FILTER beside OVER."""
    if window.function in {"FIRST", "LAST"}:
        value, *order = arguments
        known = " AND ".join(f"{each} IS NOT NULL" for each in arguments)
        by = f"IF({known}, struct({', '.join((*order, value))}), NULL)"
        picked = f"{'min_by' if window.function == 'FIRST' else 'max_by'}({value}, {by})"
        return f"CAST({picked} AS {spark_type(window.type)})"
    assert window.call is not None  # noqa: S101 - the others have been written already
    return AGGREGATES[window.function](SqlCall(window.call, tuple(arguments), date.min))


def _with_over(sql: str, over: str) -> str:
    """Each of Spark's aggregates with its window behind it."""
    found, at = "", 0
    while (match := _AGGREGATE.search(sql, at)) is not None:
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        found += f"{sql[at:end]} OVER ({over})"
        at = end
    return found + sql[at:]


def _end(rows: int | None, unbounded: str) -> str:
    if rows is None:
        return f"UNBOUNDED {unbounded}"
    return "CURRENT ROW" if rows == 0 else f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
