"""Aggregations as SQL, where DuckDB certainly computes what the Python evaluator does."""

from collections.abc import Callable, Mapping

from clew.lang.typed import Apply, Expression
from clew.lang.types import MAX_PRECISION, Kind
from clew.trace.sql import Sql, sql_type

_EXACT_MEAN = 30
"""Means of numbers with more digits after the decimal point are left to the evaluator."""


def aggregate_in_sql(call: Apply, value: Callable[[Expression], Sql | None]) -> Sql | None:
    """The value of an aggregate call over a group; None for other functions. `value` translates its argument.

    The query fails where a sum does not fit.
    """
    make = AGGREGATES_IN_SQL.get(call.function)
    if make is None or isinstance(make, str):
        return None
    if not call.arguments:
        return make(call, Sql("*"))
    argument = value(call.arguments[0])
    return None if argument is None else make(call, argument)


def _counted(_call: Apply, argument: Sql) -> Sql | None:
    return "count(" + argument + ")"


def _counted_once(_call: Apply, argument: Sql) -> Sql | None:
    return "count(DISTINCT " + argument + ")"


def _least(_call: Apply, argument: Sql) -> Sql | None:
    return "min(" + argument + ")"


def _greatest(_call: Apply, argument: Sql) -> Sql | None:
    return "max(" + argument + ")"


def _sum(call: Apply, argument: Sql) -> Sql | None:
    return "CAST(sum(" + argument + f") AS {sql_type(call.type)})"


def _mean(call: Apply, argument: Sql) -> Sql | None:
    """Rounded half-up, in whole units of the last digit: DuckDB divides decimals as doubles."""
    source, result = call.arguments[0].type, call.type
    if source.kind is not Kind.DECIMAL or result.scale < source.scale or result.scale > _EXACT_MEAN:
        return None
    factor, added = 10**source.scale, 10 ** (result.scale - source.scale)
    units = "CAST(sum(" + argument + f") * CAST({factor} AS DECIMAL(38, 0)) AS HUGEINT)"
    count = "CAST(count(" + argument + ") AS HUGEINT)"
    rounded = "((2 * abs(" + units + f") * {added} + " + count + ") // nullif(2 * " + count + ", 0))"
    signed = "CAST(sign(" + units + ") AS HUGEINT) * " + rounded
    unit = f"CAST({'0.' + '0' * (result.scale - 1) + '1' if result.scale else '1'} AS DECIMAL(38, {result.scale}))"
    number = "CAST(" + signed + f" AS DECIMAL({MAX_PRECISION}, 0))"
    return "CAST(" + number + " * " + unit + f" AS {sql_type(result)})"


_ORDERED = "which of several rows counts is decided by the language's order of all values"

AGGREGATES_IN_SQL: Mapping[str, Callable[[Apply, Sql], Sql | None] | str] = {
    "COUNT_ALL": _counted,
    "COUNT": _counted,
    "COUNT_DISTINCT": _counted_once,
    "MIN_AGG": _least,
    "MAX_AGG": _greatest,
    "SUM": _sum,
    "AVG": _mean,
    "VARIANCE": "DuckDB calculates it with doubles",
    "PERCENTILE": "DuckDB interpolates with doubles",
    **dict.fromkeys(("FIRST", "LAST", "STRING_AGG"), _ORDERED),
}
"""Each aggregate: how it is written in SQL, or why it is left to the evaluator."""
