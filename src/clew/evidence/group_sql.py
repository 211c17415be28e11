"""Aggregations as SQL, where DuckDB certainly computes what the Python evaluator does."""

from collections.abc import Callable

from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Expression
from clew.lang.types import MAX_PRECISION, Kind
from clew.trace.sql import Sql, sql_type

_EXACT_MEAN = 30
"""Means of numbers with more digits after the decimal point are left to the evaluator."""


def aggregate_in_sql(call: Apply, value: Callable[[Expression], Sql | None]) -> Sql | None:
    """The value of an aggregate call over a group; None for other functions. `value` translates its argument.

    The query fails where a sum does not fit.
    """
    if not isinstance(FUNCTIONS[call.function], AggregateFunction):
        return None
    if call.function == "COUNT_ALL":
        return Sql("count(*)")
    if len(call.arguments) != 1:
        return None
    argument = value(call.arguments[0])
    if argument is None:
        return None
    match call.function:
        case "COUNT":
            return "count(" + argument + ")"
        case "COUNT_DISTINCT":
            return "count(DISTINCT " + argument + ")"
        case "MIN_AGG":
            return "min(" + argument + ")"
        case "MAX_AGG":
            return "max(" + argument + ")"
        case "SUM":
            return "CAST(sum(" + argument + f") AS {sql_type(call.type)})"
        case "AVG":
            return _mean(call, argument)
        case _:
            return None


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
