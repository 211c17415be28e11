"""Functions on numbers."""

from collections.abc import Callable, Sequence
from decimal import Decimal

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
    SignatureProblem,
)
from clew.lang.functions.inference import arithmetic, numeric, require, same_type
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, INTEGER, MAX_PRECISION, STRING, Kind, bounded, decimal, remainder_of_decimals

_MOST_DIGITS = 38
_NUMBER = (Parameter("number", "a number"),)
_VALUES = (Parameter("value", "numbers, strings or dates, all the same", repeats=True),)


def _infer_same(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    return Signature((type_,), type_)


def _infer_whole(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    if type_.scale:
        return Signature((type_,), bounded(type_.precision - type_.scale + 1, 0))
    return Signature((type_,), type_)


def _infer_round(arguments: Sequence[Argument]) -> Signature:
    type_ = numeric(arguments[0], 0)
    digits = _constant_digits(arguments[1]) if len(arguments) > 1 else 0
    parameters = (type_, INTEGER, STRING)[: len(arguments)]
    if len(arguments) > 2:
        _require_mode(arguments)
    if type_.kind is not Kind.DECIMAL:
        return Signature(parameters, type_)
    integer_digits = type_.precision - type_.scale + 1
    if digits < 0:
        return Signature(parameters, decimal(min(MAX_PRECISION, max(integer_digits, 1 - digits)), 0))
    scale = min(type_.scale, digits)
    return Signature(parameters, decimal(min(MAX_PRECISION, integer_digits + scale), scale))


def _require_mode(arguments: Sequence[Argument]) -> None:
    mode = arguments[2].constant
    if not isinstance(mode, str) or mode not in exact.ROUNDINGS:
        problem = f"the mode is one of {', '.join(exact.ROUNDINGS)}"
        raise SignatureProblem(problem, 2, 'write for example ROUND(x, 2, "half_even")')
    if arguments[0].type.kind is Kind.DOUBLE and mode != exact.HALF_UP:
        problem = f"a double is only rounded {exact.HALF_UP}: its digits are not exact"
        raise SignatureProblem(problem, 0, "convert it with TO_DECIMAL first")


def _constant_digits(argument: Argument) -> int:
    if argument.type.kind is not Kind.INTEGER or not isinstance(argument.constant, int):
        raise SignatureProblem("the number of digits must be a literal whole number", 1, "for example 2")
    if abs(argument.constant) > _MOST_DIGITS:
        raise SignatureProblem(f"the number of digits must be between -{_MOST_DIGITS} and {_MOST_DIGITS}", 1, "")
    return argument.constant


def _infer_extreme(arguments: Sequence[Argument]) -> Signature:
    result = same_type(arguments)
    require(arguments[0], 0, result != BOOLEAN, "numbers, strings or dates")
    return Signature((result,) * len(arguments), result)


def _abs(signature: Signature) -> Callable[..., Value]:
    if signature.result.kind is Kind.INTEGER:
        return lambda value: exact.fit_integer(abs(value))
    return lambda value: value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _round(signature: Signature) -> Callable[..., Value]:
    result = signature.result
    match result.kind:
        case Kind.DECIMAL:
            return lambda value, digits=0, mode=exact.HALF_UP: exact.fit(exact.rounded(value, digits, mode), result)
        case Kind.INTEGER:
            return lambda value, digits=0, mode=exact.HALF_UP: _round_integer(value, digits, mode)
        case _:
            return lambda value, digits=0, _mode="": doubles.rounded(value, digits)


def _round_integer(value: int, digits: int, mode: str) -> int:
    return value if digits >= 0 else exact.fit_integer(int(exact.rounded(Decimal(value), digits, mode)))


def _infer_sign(arguments: Sequence[Argument]) -> Signature:
    return Signature((numeric(arguments[0], 0),), INTEGER)


def _sign(value: float | Decimal) -> int:
    """NaN comes after all numbers, so it counts as positive."""
    return 0 if value == 0 else -1 if value < 0 else 1


def _whole(rounding: str) -> Callable[[Signature], Callable[..., Value]]:
    def bind(signature: Signature) -> Callable[..., Value]:
        result = signature.result
        match result.kind:
            case Kind.DECIMAL:
                return lambda value: exact.fit(value.to_integral_value(rounding), result)
            case Kind.INTEGER:
                return lambda value: value
            case _:
                return lambda value: doubles.whole(value, rounding)

    return bind


def _mod(signature: Signature) -> Callable[..., Value]:
    result = signature.result
    match result.kind:
        case Kind.DECIMAL:
            return lambda a, b: exact.fit(exact.floor_remainder(a, b), result) if b else None
        case Kind.INTEGER:
            return lambda a, b: a % b if b else None
        case _:
            return lambda a, b: doubles.remainder(a, b) if b else None


def _extreme(pick: Callable[..., Value]) -> Callable[[Signature], Callable[..., Value]]:
    def bind(signature: Signature) -> Callable[..., Value]:
        key = doubles.order if signature.result.kind is Kind.DOUBLE else None
        return lambda *values: pick(values, key=key)

    return bind


NUMBERS = (
    Function(
        "ABS",
        Family.NUMBER,
        _NUMBER,
        "the type of the number",
        NullRule.PROPAGATES,
        "The number without its sign.",
        (Example("ABS(-2.50)", "2.50"),),
        _infer_same,
        _abs,
    ),
    Function(
        "ROUND",
        Family.NUMBER,
        (
            *_NUMBER,
            Parameter("digits", "a literal whole number; 0 by default", optional=True),
            Parameter("mode", f"one of {', '.join(exact.ROUNDINGS)}", optional=True),
        ),
        "a number",
        NullRule.PROPAGATES,
        "The number rounded to digits after the decimal point, or before it if negative. Halves round away from zero, "
        "or by the mode: half_even rounds them to the even neighbour, up and down round away from zero and towards it, "
        "ceiling and floor upwards and downwards. Doubles are rounded half_up only.",
        (
            Example("ROUND(2.345, 2)", "2.35"),
            Example("ROUND(-2.5)", "-3"),
            Example("ROUND(1250, -2)", "1300"),
            Example('ROUND(2.345, 2, "half_even")', "2.34"),
            Example('ROUND(-2.341, 2, "up")', "-2.35"),
        ),
        _infer_round,
        _round,
    ),
    Function(
        "SIGN",
        Family.NUMBER,
        _NUMBER,
        "integer",
        NullRule.PROPAGATES,
        "The sign of the number: 1 if it is positive, -1 if it is negative, 0 if it is zero.",
        (Example("SIGN(-2.50)", "-1"),),
        _infer_sign,
        lambda _signature: _sign,
    ),
    Function(
        "FLOOR",
        Family.NUMBER,
        _NUMBER,
        "a whole number",
        NullRule.PROPAGATES,
        "The largest whole number that is not greater than the number.",
        (Example("FLOOR(-1.5)", "-2"),),
        _infer_whole,
        _whole("ROUND_FLOOR"),
    ),
    Function(
        "CEIL",
        Family.NUMBER,
        _NUMBER,
        "a whole number",
        NullRule.PROPAGATES,
        "The smallest whole number that is not less than the number.",
        (Example("CEIL(1.01)", "2"),),
        _infer_whole,
        _whole("ROUND_CEILING"),
    ),
    Function(
        "MOD",
        Family.NUMBER,
        (Parameter("number", "a number"), Parameter("divisor", "a number")),
        "a number",
        NullRule.PROPAGATES,
        "The remainder of the division, with the sign of the divisor; NULL if the divisor is zero.",
        (Example("MOD(7, 3)", "1"), Example("MOD(-7, 3)", "2"), Example("MOD(5, 0)", "NULL")),
        arithmetic(remainder_of_decimals, exact_integers=True),
        _mod,
    ),
    Function(
        "MIN",
        Family.NUMBER,
        _VALUES,
        "the type of the values",
        NullRule.PROPAGATES,
        "The smallest of the values in one row; MIN_AGG is the smallest over rows.",
        (Example("MIN(3, 1.5, 2)", "1.5"), Example("MIN(3, NULL)", "NULL")),
        _infer_extreme,
        _extreme(min),
    ),
    Function(
        "MAX",
        Family.NUMBER,
        _VALUES,
        "the type of the values",
        NullRule.PROPAGATES,
        "The largest of the values in one row; MAX_AGG is the largest over rows.",
        (Example("MAX(3, 1.5, 2)", "3.0"),),
        _infer_extreme,
        _extreme(max),
    ),
)
