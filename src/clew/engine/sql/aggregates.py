"""Functions over the rows of a group in Spark SQL.

An argument may appear in several of Spark's functions. Aggregates are never nested, so its text is doubled only once. A
lambda could bind it, but must not contain aggregates.
"""

from clew.engine.sql.call import Entries, SqlCall, calling, repeating
from clew.engine.sql.literals import cast, spark_type
from clew.engine.sql.operators import finite, of_type
from clew.lang.types import INTEGER_AS_DECIMAL, Kind, quotient_of_decimals, total_of_decimals

_AVERAGED_AS_DOUBLE = 11
"""Spark calculates the mean of decimals with up to so many digits in doubles, which is not exact."""
_OWN_MEAN = 34
"""Up to so many digits Spark's own mean has the type that the language gives it."""


def _sum(call: SqlCall) -> str:
    if call.type.kind is Kind.INTEGER:
        return _sum_of_integers(*call.arguments)
    if call.type.kind is Kind.DOUBLE:
        return _finite("sum", call.arguments[0])
    return f"sum({call.arguments[0]})"


def _finite(function: str, x: str) -> str:
    return finite_over(f"{function}({x})", x)


def finite_over(result: str, x: str) -> str:
    """A result, and an error where it is infinite although all values are finite."""
    return repeating(finite, result, f"max(abs({x}))")


def _sum_of_integers(x: str) -> str:
    """Both halves are added apart, so that only the total must fit, not every total on the way to it."""
    upper, lower = f"CAST(sum(shiftright({x}, 32)) AS DECIMAL(20,0))", f"sum({x} & 4294967295L)"
    return f"CAST({upper} * 4294967296BD + CAST({lower} AS DECIMAL(20,0)) AS BIGINT)"


def _average(call: SqlCall) -> str:
    number, type_ = call.arguments[0], call.types[0]
    if type_.kind is Kind.DOUBLE:
        return _finite("avg", number)
    if type_.precision <= _AVERAGED_AS_DOUBLE:
        wide = f"CAST({number} AS DECIMAL({_AVERAGED_AS_DOUBLE + 1},{type_.scale}))"
        return cast(f"avg({wide})", call.type)
    if type_.precision <= _OWN_MEAN:
        return f"avg({number})"
    mean = f"(sum({number}) / CAST(count({number}) AS {spark_type(INTEGER_AS_DECIMAL)}))"
    return of_type(mean, quotient_of_decimals(total_of_decimals(type_), INTEGER_AS_DECIMAL), call.type)


AGGREGATES: Entries = {
    "SUM": _sum,
    "COUNT": calling("count"),
    "COUNT_ALL": lambda _call: "count(*)",
    "COUNT_DISTINCT": lambda call: f"count(DISTINCT {call.arguments[0]})",
    "AVG": _average,
    "MIN_AGG": calling("min"),
    "MAX_AGG": calling("max"),
}
