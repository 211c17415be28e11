"""The operators, which are functions with operator names."""

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial

from clew.lang import arithmetic as exact
from clew.lang import doubles
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    NullRule,
    Parameter,
    Signature,
)
from clew.lang.functions.inference import Infer, arithmetic, comparable, numeric
from clew.lang.typed import Value
from clew.lang.types import (
    Kind,
    product_of_decimals,
    quotient_of_decimals,
    sum_of_decimals,
)

_TWO_NUMBERS = (Parameter("a", "a number"), Parameter("b", "a number"))
_TWO_VALUES = (Parameter("a", "any type"), Parameter("b", "a type comparable with it"))


def _operator(
    name: str,
    sentence: str,
    infer: Infer,
    bind: Callable[[Signature], Callable[..., Value]],
    *examples: tuple[str, str],
    returns: str = "a number",
    parameters: tuple[Parameter, ...] = _TWO_NUMBERS,
) -> Function:
    shown = tuple(Example(expression, result) for expression, result in examples)
    return Function(name, Family.OPERATOR, parameters, returns, NullRule.PROPAGATES, sentence, shown, infer, bind)


def _calculate(
    on_decimals: Callable[[Decimal, Decimal], Decimal], plain: Callable[[float, float], float]
) -> Callable[[Signature], Callable[..., Value]]:
    def bind(signature: Signature) -> Callable[..., Value]:
        result = signature.result
        if result.kind is Kind.DECIMAL:
            return lambda a, b: exact.fit(on_decimals(a, b), result)
        if result.kind is Kind.INTEGER:
            return lambda a, b: exact.fit_integer(int(plain(a, b)))
        return partial(doubles.calculated, plain)

    return bind


def _divide(signature: Signature) -> Callable[..., Value]:
    result = signature.result
    if result.kind is Kind.DECIMAL:
        return lambda a, b: exact.fit(exact.divide(a, b), result) if b else None
    return lambda a, b: doubles.calculated(operator.truediv, a, b) if b else None


def _compare(compare: Callable[..., bool]) -> Callable[[Signature], Callable[..., Value]]:
    def bind(signature: Signature) -> Callable[..., Value]:
        if signature.parameters[0].kind is Kind.DOUBLE:
            return lambda a, b: compare(doubles.order(a), doubles.order(b))
        return compare

    return bind


def _infer_negate(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    return Signature((type_,), type_)


def _negate(signature: Signature) -> Callable[..., Value]:
    if signature.result.kind is Kind.INTEGER:
        return lambda a: exact.fit_integer(-a)
    if signature.result.kind is Kind.DECIMAL:
        return lambda a: a.copy_negate() if a else a
    return operator.neg


OPERATORS = (
    _operator(
        "+",
        "The sum.",
        arithmetic(sum_of_decimals, exact_integers=True),
        _calculate(exact.add, operator.add),
        ("1 + 2", "3"),
        ("1.5 + 2.25", "3.75"),
        ("1 + NULL", "NULL"),
    ),
    _operator(
        "-",
        "The difference.",
        arithmetic(sum_of_decimals, exact_integers=True),
        _calculate(exact.subtract, operator.sub),
        ("10 - 0.01", "9.99"),
    ),
    _operator(
        "*",
        "The product.",
        arithmetic(product_of_decimals, exact_integers=True),
        _calculate(exact.multiply, operator.mul),
        ("6 * 7", "42"),
        ("12.50 * 1.0920", "13.650000"),
    ),
    _operator(
        "/",
        "The quotient, never truncated to a whole number; NULL if b is zero.",
        arithmetic(quotient_of_decimals, exact_integers=False),
        _divide,
        ("7 / 2", "3.500000"),
        ("1 / 0", "NULL"),
    ),
    _operator(
        "NEGATE",
        "The number with its sign changed.",
        _infer_negate,
        _negate,
        ("-(3)", "-3"),
        parameters=(Parameter("a", "a number"),),
    ),
    *(
        _operator(
            name,
            sentence,
            comparable,
            _compare(compare),
            *examples,
            returns="boolean",
            parameters=_TWO_VALUES,
        )
        for name, sentence, compare, examples in (
            ("=", "Whether a equals b.", operator.eq, (("1 = 1.00", "TRUE"), ("NULL = NULL", "NULL"))),
            ("<>", "Whether a differs from b.", operator.ne, (('"a" <> "A"', "TRUE"),)),
            (
                "<",
                "Whether a comes before b; strings are ordered by code point.",
                operator.lt,
                (('"Z" < "a"', "TRUE"),),
            ),
            ("<=", "Whether a comes before b or equals it.", operator.le, (("2 <= 2", "TRUE"),)),
            (">", "Whether a comes after b.", operator.gt, (('DATE("2026-02-01") > DATE("2026-01-31")', "TRUE"),)),
            (">=", "Whether a comes after b or equals it.", operator.ge, (("1 >= 2", "FALSE"),)),
        )
    ),
)
