"""Aggregates that sort the rows of a group in Spark SQL: the values are collected, sorted, and looked at in order."""

from clew.engine.sql.aggregates import finite_over
from clew.engine.sql.call import Entries, SqlCall, SqlOf, binding, literal_of
from clew.engine.sql.literals import cast, literal, spark_type, text_literal
from clew.engine.sql.text import TOO_LONG
from clew.lang.functions.ordered_aggregates import FRACTION, SHARE, types_of_percentile
from clew.lang.functions.text import MOST_CHARACTERS
from clew.lang.types import INTEGER_AS_DECIMAL, Kind


def _sorted(values: str) -> str:
    return f"sort_array(collect_list({values}))"


def _variance(call: SqlCall) -> str:
    def squared(values: str, mean: str) -> str:
        squares = f"aggregate({values}, 0D, (a, x) -> a + (x - {mean}) * (x - {mean}))"
        return f"({squares} / CAST(size({values}) - 1 AS DOUBLE))"

    def body(values: str) -> str:
        mean = f"(aggregate({values}, 0D, (a, x) -> a + x) / CAST(size({values}) AS DOUBLE))"
        return f"IF(size({values}) < 2, NULL, {binding(squared, values, mean)})"

    x = call.arguments[0]
    return finite_over(binding(body, _sorted(x)), x)


def _percentile(call: SqlCall) -> str:
    share = literal_of(call.apply.arguments[1])
    number = call.types[0]

    def between(low: str, high: str, fraction: str) -> str:
        if number.kind is Kind.DOUBLE:
            return f"({low} + ({high} - {low}) * CAST({fraction} AS DOUBLE))"
        difference, part, result = types_of_percentile(number)
        step = cast(f"({cast(f'({high} - {low})', difference)} * {fraction})", part)
        return cast(f"({low} + {step})", result)

    def placed(values: str, place: str) -> str:
        index = f"CAST(floor({place}) AS INT)"
        fraction = cast(f"({place} - floor({place}))", FRACTION)
        low = f"element_at({values}, {index} + 1)"
        high = f"element_at({values}, least({index} + 2, size({values})))"
        return binding(between, low, high, fraction)

    def body(values: str) -> str:
        count = f"CAST(size({values}) - 1 AS {spark_type(INTEGER_AS_DECIMAL)})"
        place = f"(CAST('{share}' AS {spark_type(SHARE)}) * {count})"
        return f"IF(size({values}) = 0, NULL, {binding(placed, values, place)})"

    return binding(body, _sorted(call.arguments[0]))


def _by_order(function: str) -> SqlOf:
    """By a struct of the order and the value itself, among the rows that have all of them."""

    def sql_of(call: SqlCall) -> str:
        value, *order = call.arguments
        known = " AND ".join(f"{each} IS NOT NULL" for each in call.arguments)
        return f"{function}({value}, struct({', '.join((*order, value))})) FILTER (WHERE {known})"

    return sql_of


def _joined(call: SqlCall) -> str:
    text, _, *order = call.arguments
    separator = literal_of(call.apply.arguments[1])
    if separator is None:
        return literal(None, call.type)
    fields = ", ".join(f"{each} AS f{index}" for index, each in enumerate((*order, text)))
    rows = f"sort_array(collect_list(struct({fields})) FILTER (WHERE {text} IS NOT NULL))"
    length = f"sum(CAST(char_length({text}) AS BIGINT))"

    def body(rows: str, length: str) -> str:
        between = f"(size({rows}) - 1) * {len(str(separator))}L"
        texts = f"transform({rows}, r -> r.f{len(order)})"
        joined = f"array_join({texts}, {text_literal(str(separator))})"
        too_long = f"{length} + {between} > {MOST_CHARACTERS}L"
        return f"CASE WHEN size({rows}) = 0 THEN NULL WHEN {too_long} THEN {TOO_LONG} ELSE {joined} END"

    return binding(body, rows, length)


ORDERED_AGGREGATES: Entries = {
    "VARIANCE": _variance,
    "PERCENTILE": _percentile,
    "FIRST": _by_order("min_by"),
    "LAST": _by_order("max_by"),
    "STRING_AGG": _joined,
}
