"""How doubles differ from other numbers: NaN, infinities, the two zeros.

The rules are Spark's: NaN equals itself and sorts after everything else, and rounding never gives a negative zero,
since it goes through a decimal, which has none. Data may contain infinity, but no calculation on finite numbers gives
it: such a result does not fit.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from clew.lang.arithmetic import decimal_of_double, out_of_range, round_half_up


def order(value: float) -> tuple[bool, float]:
    """What to compare instead of the double itself."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def calculated(calculate: Callable[[float, float], float], a: float, b: float) -> float:
    """The result for two doubles; an error where it is infinite and neither of them is."""
    result = calculate(a, b)
    if math.isinf(result) and math.isfinite(a) and math.isfinite(b):
        raise out_of_range(f"the result for {a} and {b} does not fit double (64 bits)")
    return result


def total(values: Sequence[float]) -> float:
    """The sum, which does not depend on the order of the values; an error where it is too large."""
    if not all(math.isfinite(value) for value in values):
        return sum(values)
    try:
        return math.fsum(values)
    except OverflowError:
        return _total_of_large(values)


def _total_of_large(values: Sequence[float]) -> float:
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        raise out_of_range(f"the sum of {len(values)} numbers does not fit double (64 bits)") from None


def rounded(value: float, digits: int) -> float:
    """Rounded to digits after the decimal point, halves away from zero, on the digits of the shortest decimal."""
    if not math.isfinite(value):
        return value
    exact = decimal_of_double(value)
    if int(exact.as_tuple().exponent) >= -digits:
        return value + 0.0
    return float(round_half_up(exact, digits)) + 0.0


def whole(value: float, rounding: str) -> float:
    """A whole number near the double, by a rounding mode of `decimal`."""
    return float(Decimal(value).to_integral_value(rounding)) + 0.0 if math.isfinite(value) else value


def remainder(a: float, b: float) -> float:
    """What is left of a after whole b's; it has the sign of b, which is not zero."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a):
        return math.nan
    left = math.fmod(a, b)
    return left + b if left and (left < 0) != (b < 0) else left
