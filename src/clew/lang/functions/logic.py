"""Functions that decide."""

from collections.abc import Callable, Sequence
from typing import Any

from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    LazyFunction,
    NullRule,
    Parameter,
    Signature,
)
from clew.lang.functions.inference import comparable, fixed, repeated, require, same_type
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, Kind

Arguments = Sequence[Callable[[Any], Value]]

_CONDITIONS = (Parameter("condition", "boolean", repeats=True),)


def _infer_if(arguments: Sequence[Argument]) -> Signature:
    condition = arguments[0]
    require(condition, 0, condition.type.kind in {Kind.BOOLEAN, Kind.NULL}, "a condition")
    result = same_type(arguments, first=1)
    return Signature((BOOLEAN, result, result), result)


def _infer_coalesce(arguments: Sequence[Argument]) -> Signature:
    result = same_type(arguments)
    return Signature((result,) * len(arguments), result)


def _infer_any(arguments: Sequence[Argument]) -> Signature:
    return Signature((arguments[0].type,), BOOLEAN)


def _if(arguments: Arguments, row: object) -> Value:
    condition, then, otherwise = arguments
    return then(row) if condition(row) else otherwise(row)


def _and(arguments: Arguments, row: object) -> Value:
    unknown = False
    for argument in arguments:
        value = argument(row)
        if value is False:
            return False
        unknown = unknown or value is None
    return None if unknown else True


def _or(arguments: Arguments, row: object) -> Value:
    unknown = False
    for argument in arguments:
        value = argument(row)
        if value is True:
            return True
        unknown = unknown or value is None
    return None if unknown else False


def _coalesce(arguments: Arguments, row: object) -> Value:
    for argument in arguments:
        value = argument(row)
        if value is not None:
            return value
    return None


def _in(arguments: Arguments, row: object) -> Value:
    value = arguments[0](row)
    if value is None:
        return None
    unknown = False
    for argument in arguments[1:]:
        candidate = argument(row)
        if candidate == value or (candidate != candidate and value != value):  # noqa: PLR0124 - NaN equals NaN
            return True
        unknown = unknown or candidate is None
    return None if unknown else False


LOGIC = (
    LazyFunction(
        "IF",
        Family.LOGIC,
        (Parameter("condition", "boolean"), Parameter("then", "any type"), Parameter("otherwise", "the same type")),
        "the type of both values",
        NullRule.HANDLES,
        "One value if the condition is TRUE, the other if it is FALSE or NULL.",
        (Example('IF(2 > 1, "yes", "no")', '"yes"'), Example("IF(NULL, 1, 2)", "2")),
        _infer_if,
        _if,
    ),
    LazyFunction(
        "AND",
        Family.LOGIC,
        _CONDITIONS,
        "boolean",
        NullRule.HANDLES,
        "FALSE if one condition is FALSE, else NULL if one is NULL, else TRUE. Also written a AND b.",
        (Example("AND(TRUE, FALSE, NULL)", "FALSE"), Example("TRUE AND NULL", "NULL")),
        repeated(BOOLEAN, returns=BOOLEAN),
        _and,
    ),
    LazyFunction(
        "OR",
        Family.LOGIC,
        _CONDITIONS,
        "boolean",
        NullRule.HANDLES,
        "TRUE if one condition is TRUE, else NULL if one is NULL, else FALSE. Also written a OR b.",
        (Example("OR(FALSE, NULL, TRUE)", "TRUE"), Example("FALSE OR NULL", "NULL")),
        repeated(BOOLEAN, returns=BOOLEAN),
        _or,
    ),
    Function(
        "NOT",
        Family.LOGIC,
        (Parameter("condition", "boolean"),),
        "boolean",
        NullRule.PROPAGATES,
        "TRUE for FALSE and FALSE for TRUE. Also written NOT a.",
        (Example("NOT 1 = 2", "TRUE"), Example("NOT NULL", "NULL")),
        fixed(BOOLEAN, returns=BOOLEAN),
        lambda _signature: lambda value: not value,
    ),
    Function(
        "ISNULL",
        Family.LOGIC,
        (Parameter("value", "any type"),),
        "boolean",
        NullRule.HANDLES,
        "Whether there is no value. Also written a IS NULL and a IS NOT NULL.",
        (Example("ISNULL(1 / 0)", "TRUE"), Example('"" IS NULL', "FALSE")),
        _infer_any,
        lambda _signature: lambda value: value is None,
    ),
    LazyFunction(
        "COALESCE",
        Family.LOGIC,
        (Parameter("value", "any type, all the same", repeats=True),),
        "the type of the values",
        NullRule.HANDLES,
        "The first value that is not NULL.",
        (Example("COALESCE(NULL, 2, 3)", "2"),),
        _infer_coalesce,
        _coalesce,
    ),
    LazyFunction(
        "IN",
        Family.LOGIC,
        (Parameter("value", "any type"), Parameter("candidate", "a type comparable with it", repeats=True)),
        "boolean",
        NullRule.HANDLES,
        "Whether the value equals a candidate; NULL if none does and one is NULL. Also written a IN (b, c).",
        (Example('"EUR" IN ("EUR", "USD")', "TRUE"), Example("3 IN (1, NULL)", "NULL")),
        comparable,
        _in,
    ),
)
