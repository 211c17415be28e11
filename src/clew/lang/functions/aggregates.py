"""Functions over the rows of a group."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from clew.lang import arithmetic as exact
from clew.lang import doubles
from clew.lang.functions.declaration import (
    AggregateFunction,
    Argument,
    Example,
    Family,
    NullRule,
    Parameter,
    Signature,
)
from clew.lang.functions.inference import numeric, require
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, DOUBLE, INTEGER, Kind, as_decimal, mean_of_decimals, total_of_decimals

_NUMBER = (Parameter("number", "a number"),)
_VALUE = (Parameter("value", "any type"),)
_ORDERED = (Parameter("value", "numbers, strings or dates"),)
_ROWS = tuple({"x": value} for value in (3, 1, None, 1))


def _infer_sum(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    match type_.kind:
        case Kind.DECIMAL:
            return Signature((type_,), total_of_decimals(type_))
        case Kind.NULL:
            return Signature((INTEGER,), INTEGER)
        case _:
            return Signature((type_,), type_)


def _infer_average(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    if type_.kind is Kind.DOUBLE:
        return Signature((DOUBLE,), DOUBLE)
    number = as_decimal(type_)
    return Signature((number,), mean_of_decimals(number))


def _infer_count(arguments: Sequence[Argument]) -> Signature:
    return Signature(tuple(argument.type for argument in arguments), INTEGER)


def _infer_extreme(arguments: Sequence[Argument]) -> Signature:
    type_ = arguments[0].type
    require(arguments[0], 0, type_ != BOOLEAN, "numbers, strings or dates")
    return Signature((type_,), type_)


def _sum(values: Sequence[Value], signature: Signature) -> Value:
    if not values:
        return None
    match signature.result.kind:
        case Kind.DECIMAL:
            return exact.fit(_total(values), signature.result)
        case Kind.INTEGER:
            return exact.fit_integer(sum(values))  # type: ignore[arg-type]
        case _:
            return doubles.total(values)  # type: ignore[arg-type]


def _average(values: Sequence[Value], signature: Signature) -> Value:
    if not values:
        return None
    if signature.result.kind is Kind.DOUBLE:
        return doubles.total(values) / len(values)  # type: ignore[arg-type]
    return mean_of(_total(values), len(values), signature)


def mean_of(total: Decimal, count: int, signature: Signature) -> Value:
    """The mean of so many decimals, at least one, with a total."""
    return exact.fit(exact.divide(total, Decimal(count)), signature.result)


def _count_distinct(values: Sequence[Value], signature: Signature) -> Value:
    if signature.parameters[0].kind is Kind.DOUBLE:
        return len(set(map(doubles.order, values)))  # type: ignore[arg-type]
    return len(set(values))


def _extreme(pick: Callable[..., Value]) -> Callable[[Sequence[Value], Signature], Value]:
    def combine(values: Sequence[Value], signature: Signature) -> Value:
        key = doubles.order if signature.result.kind is Kind.DOUBLE else None
        return pick(values, key=key, default=None)

    return combine


def _total(values: Sequence[Value]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = exact.add(total, value)  # type: ignore[arg-type]
    return total


AGGREGATES = (
    AggregateFunction(
        "SUM",
        Family.AGGREGATE,
        _NUMBER,
        "a number; for decimals, with 10 more digits before the decimal point",
        NullRule.SKIPS,
        "The sum of the values; NULL if there are none.",
        (Example("SUM(x)", "5", _ROWS),),
        _infer_sum,
        _sum,
    ),
    AggregateFunction(
        "COUNT",
        Family.AGGREGATE,
        _VALUE,
        "integer",
        NullRule.SKIPS,
        "The number of rows with a value.",
        (Example("COUNT(x)", "3", _ROWS),),
        _infer_count,
        lambda values, _signature: len(values),
    ),
    AggregateFunction(
        "COUNT_ALL",
        Family.AGGREGATE,
        (),
        "integer",
        NullRule.HANDLES,
        "The number of rows.",
        (Example("COUNT_ALL()", "4", _ROWS),),
        _infer_count,
        lambda values, _signature: len(values),
    ),
    AggregateFunction(
        "COUNT_DISTINCT",
        Family.AGGREGATE,
        _VALUE,
        "integer",
        NullRule.SKIPS,
        "The number of distinct values.",
        (Example("COUNT_DISTINCT(x)", "2", _ROWS),),
        _infer_count,
        _count_distinct,
    ),
    AggregateFunction(
        "AVG",
        Family.AGGREGATE,
        _NUMBER,
        "a number; for exact numbers, with 4 more digits after the decimal point",
        NullRule.SKIPS,
        "The mean of the values, rounded half-up; NULL if there are none.",
        (Example("AVG(x)", "1.6667", _ROWS),),
        _infer_average,
        _average,
    ),
    AggregateFunction(
        "MIN_AGG",
        Family.AGGREGATE,
        _ORDERED,
        "the type of the values",
        NullRule.SKIPS,
        "The smallest value over the rows; NULL if there are none.",
        (Example("MIN_AGG(x)", "1", _ROWS),),
        _infer_extreme,
        _extreme(min),
    ),
    AggregateFunction(
        "MAX_AGG",
        Family.AGGREGATE,
        _ORDERED,
        "the type of the values",
        NullRule.SKIPS,
        "The largest value over the rows; NULL if there are none.",
        (Example("MAX_AGG(x)", "3", _ROWS),),
        _infer_extreme,
        _extreme(max),
    ),
)
