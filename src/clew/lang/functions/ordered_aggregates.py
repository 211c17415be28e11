"""Aggregates that sort the rows of a group, so that their result does not depend on the order of the rows.

Spark collects the values of a group to sort them. Values that are equal in their order are put in order by themselves.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clew.lang import arithmetic as exact
from clew.lang import doubles
from clew.lang.arithmetic import out_of_range
from clew.lang.functions.declaration import (
    AggregateFunction,
    Argument,
    Example,
    Family,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import fixed, numeric, require
from clew.lang.functions.patterns import literal_text
from clew.lang.functions.text import MOST_CHARACTERS, TEXT_TOO_LONG
from clew.lang.typed import Value
from clew.lang.types import (
    DOUBLE,
    STRING,
    Kind,
    Type,
    as_decimal,
    decimal,
    product_of_decimals,
    sum_of_decimals,
)

SHARE = decimal(5, 4)
"""The type of the share that PERCENTILE takes."""
FRACTION = decimal(4, 4)
"""How far the value lies between two others."""
_ROWS = tuple({"x": value} for value in (3, 1, None, 1))
_DATED = tuple({"x": value, "day": day} for value, day in ((3, 20), (1, 10), (None, 5), (2, 30)))

Pair = tuple[Any, ...]


def _infer_variance(arguments: Sequence[Argument]) -> Signature:
    return fixed(DOUBLE, returns=DOUBLE)(arguments)


def _variance(values: Sequence[Value], _signature: Signature) -> Value:
    if len(values) < 2:
        return None
    ordered: list[float] = sorted(values, key=doubles.order)  # type: ignore[arg-type]
    mean = _added(ordered) / len(ordered)
    found = _added([(value - mean) * (value - mean) for value in ordered]) / (len(ordered) - 1)
    if math.isinf(found) and all(map(math.isfinite, ordered)):
        raise out_of_range(f"the variance of {len(ordered)} numbers does not fit double (64 bits)")
    return found


def _added(values: Sequence[float]) -> float:
    """One after the other, as Spark does it."""
    total = 0.0
    for value in values:
        total += value
    return total


def types_of_percentile(number: Type) -> tuple[Type, Type, Type]:
    """The types of a difference of two values, of a part of it, and of the result."""
    difference = sum_of_decimals(number, number)
    part = product_of_decimals(difference, FRACTION)
    return difference, part, sum_of_decimals(number, part)


def _infer_percentile(arguments: Sequence[Argument]) -> Signature:
    type_, share = numeric(arguments[0], 0), arguments[1].constant
    is_share = isinstance(share, int | Decimal) and not isinstance(share, bool) and 0 <= share <= 1
    if not is_share or exact.fit(Decimal(str(share)), SHARE) != share:
        problem = "the share is a literal from 0 to 1 with at most 4 digits after the point"
        raise SignatureProblem(problem, 1, "write for example PERCENTILE(x, 0.95)")
    if type_.kind is Kind.DOUBLE:
        return Signature((DOUBLE, SHARE), DOUBLE)
    number = as_decimal(type_)
    return Signature((number, SHARE), types_of_percentile(number)[2])


def _percentile(rows: Sequence[Any], signature: Signature) -> Value:
    if not rows:
        return None
    is_double = signature.result.kind is Kind.DOUBLE
    values = sorted((row[0] for row in rows), key=doubles.order if is_double else None)
    place = exact.multiply(rows[0][1], Decimal(len(values) - 1))
    index = int(place)
    low, high = values[index], values[min(index + 1, len(values) - 1)]
    fraction = exact.fit(exact.subtract(place, Decimal(index)), FRACTION)
    if is_double:
        between: float = low + (high - low) * float(fraction)
        return between
    difference, part, result = types_of_percentile(signature.parameters[0])
    step = exact.fit(exact.multiply(exact.fit(exact.subtract(high, low), difference), fraction), part)
    return exact.fit(exact.add(low, step), result)


def _infer_ordered(arguments: Sequence[Argument]) -> Signature:
    return Signature(tuple(argument.type for argument in arguments), arguments[0].type)


def _by_order(pick: Callable[..., Pair]) -> Callable[[Sequence[Any], Signature], Value]:
    def combine(rows: Sequence[Any], _signature: Signature) -> Value:
        known = [row for row in rows if None not in row]
        return pick(known, key=lambda row: _key((*row[1:], row[0])))[0] if known else None

    return combine


def _key(values: Pair) -> Pair:
    """What rows are sorted by: NULL comes first, NaN last."""
    return tuple((value is not None, doubles.order(value) if isinstance(value, float) else value) for value in values)


def _infer_joined(arguments: Sequence[Argument]) -> Signature:
    literal_text(arguments, 1, "the separator")
    for index, argument in enumerate(arguments[:2]):
        require(argument, index, argument.type.kind in {Kind.STRING, Kind.NULL}, "a string")
    return Signature((STRING, STRING, *(argument.type for argument in arguments[2:])), STRING)


def _joined(rows: Sequence[Any], _signature: Signature) -> Value:
    if not rows or rows[0][1] is None:
        return None
    separator: str = rows[0][1]
    if sum(len(row[0]) for row in rows) + (len(rows) - 1) * len(separator) > MOST_CHARACTERS:
        raise out_of_range(TEXT_TOO_LONG, "join fewer texts, or shorter ones")
    ordered = sorted(rows, key=lambda row: _key((*row[2:], row[0])))
    return separator.join(row[0] for row in ordered)


_ORDER = Parameter("order", "numbers, strings or dates", repeats=True)

ORDERED_AGGREGATES = (
    AggregateFunction(
        "VARIANCE",
        Family.AGGREGATE,
        (Parameter("number", "a number"),),
        "double",
        NullRule.SKIPS,
        "The variance of the values as a sample, which are added in ascending order; NULL if there are fewer than two.",
        (Example("VARIANCE(x)", "1.3333333333333335", _ROWS),),
        _infer_variance,
        _variance,
    ),
    AggregateFunction(
        "PERCENTILE",
        Family.AGGREGATE,
        (Parameter("number", "a number"), Parameter("share", "a literal from 0 to 1")),
        "a number; for exact numbers, with 4 more digits after the decimal point",
        NullRule.SKIPS,
        "The value below which that share of the sorted values lies, between two of them in proportion; "
        "NULL if there are none.",
        (Example("PERCENTILE(x, 0.75)", "2.0000", _ROWS),),
        _infer_percentile,
        _percentile,
    ),
    AggregateFunction(
        "FIRST",
        Family.AGGREGATE,
        (Parameter("value", "any type"), _ORDER),
        "the type of the value",
        NullRule.SKIPS,
        "The value of the row that comes first in an order; of several, the smallest. Rows in which the value or the "
        "order is NULL are left out.",
        (Example("FIRST(x, day)", "1", _DATED),),
        _infer_ordered,
        _by_order(min),
    ),
    AggregateFunction(
        "LAST",
        Family.AGGREGATE,
        (Parameter("value", "any type"), _ORDER),
        "the type of the value",
        NullRule.SKIPS,
        "The value of the row that comes last in an order; of several, the largest. Rows in which the value or the "
        "order is NULL are left out.",
        (Example("LAST(x, day)", "2", _DATED),),
        _infer_ordered,
        _by_order(max),
    ),
    AggregateFunction(
        "STRING_AGG",
        Family.AGGREGATE,
        (
            Parameter("text", "string"),
            Parameter("separator", "a literal string"),
            Parameter("order", "numbers, strings or dates", optional=True, repeats=True),
        ),
        "string",
        NullRule.SKIPS,
        "The texts joined with a separator, in an order, or sorted; NULL if there are none. An error beyond 1,000,000 "
        "characters.",
        (Example('STRING_AGG(TO_STRING(x), "; ", day)', '"1; 3; 2"', _DATED),),
        _infer_joined,
        _joined,
    ),
)
