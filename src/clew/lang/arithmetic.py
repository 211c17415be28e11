"""Exact arithmetic on values, as both evaluators define it."""

from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
)

from clew.diagnostics import UserError
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.lang.types import INTEGER_MAX, INTEGER_MIN, MAX_PRECISION, Type

_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
"""More digits than any sum, product or remainder of two decimals of 38 digits can have."""

_PRODUCT = Context(prec=39, rounding=ROUND_HALF_UP)
"""Spark rounds a product to 39 digits before it rounds to the scale of the result."""

_QUOTIENT_STEP = Decimal(1).scaleb(-39)
"""Spark divides to 39 digits after the decimal point before it rounds to the scale of the result."""

_REMAINDER = Context(prec=39, rounding=ROUND_DOWN)
"""Spark divides to 39 digits to find a remainder, and finds none where the whole quotient has more."""

_ONE = Decimal(1)
_QUANTA = tuple(_ONE.scaleb(-scale) for scale in range(MAX_PRECISION + 1))


def out_of_range(problem: str, hint: str | None = None) -> UserError:
    """The error of a value that cannot be represented or converted."""
    return UserError(VALUE_OUT_OF_RANGE.anywhere(problem=problem, hint=hint))


def fit(value: Decimal, type_: Type) -> Decimal:
    """A decimal rounded half-up to the scale of a decimal type; an error where it has too many digits."""
    if not value.is_finite():
        raise out_of_range(f"{value} is not a number")
    limit = type_.precision - type_.scale
    if value.adjusted() < limit or not value:
        rounded = value.quantize(_QUANTA[type_.scale], context=_EXACT)
        if not rounded:
            return rounded.copy_abs()
        if rounded.adjusted() < limit:
            return rounded
    raise out_of_range(f"{value} does not fit {type_}")


def fit_integer(value: int) -> int:
    """An integer, or an error where it needs more than 64 bits."""
    if INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    raise out_of_range(f"{value} does not fit integer (64 bits)")


def add(a: Decimal, b: Decimal) -> Decimal:
    """The exact sum."""
    return _EXACT.add(a, b)


def subtract(a: Decimal, b: Decimal) -> Decimal:
    """The exact difference."""
    return _EXACT.subtract(a, b)


def multiply(a: Decimal, b: Decimal) -> Decimal:
    """The product to 39 digits."""
    return _PRODUCT.multiply(a, b)


def divide(a: Decimal, b: Decimal) -> Decimal:
    """The quotient to 39 digits after the decimal point; b is not zero."""
    return _EXACT.divide(a, b).quantize(_QUOTIENT_STEP, context=_EXACT)


def floor_remainder(a: Decimal, b: Decimal) -> Decimal:
    """What is left of a after whole b's; it has the sign of b, which is not zero."""
    quotient = _EXACT.divide_int(a, b)
    if _REMAINDER.plus(quotient) != quotient:
        raise out_of_range(f"{b} goes more than 10^39 times into {a}, so that no remainder can be found")
    remainder = _EXACT.remainder(a, b)
    return _EXACT.add(remainder, b) if remainder and (remainder < 0) != (b < 0) else remainder


def round_half_up(value: Decimal, digits: int) -> Decimal:
    """Rounded to digits after the decimal point (before it where negative), halves away from zero."""
    return value.quantize(_ONE.scaleb(-digits), context=_EXACT)


HALF_UP = "half_up"
ROUNDINGS = {
    HALF_UP: ROUND_HALF_UP,
    "half_even": ROUND_HALF_EVEN,
    "up": ROUND_UP,
    "down": ROUND_DOWN,
    "floor": ROUND_FLOOR,
    "ceiling": ROUND_CEILING,
}
"""The modes of ROUND: up and down are away from zero and towards it."""


def rounded(value: Decimal, digits: int, mode: str) -> Decimal:
    """Rounded to digits after the decimal point (before it where negative), by one of the modes."""
    return value.quantize(_ONE.scaleb(-digits), rounding=ROUNDINGS[mode], context=_EXACT)


def decimal_of_double(value: float) -> Decimal:
    """The shortest decimal that reads back as this double."""
    return Decimal(repr(value))
