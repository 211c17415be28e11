"""Powers, exponentials and logarithms of doubles, to the same bits everywhere.

No two libraries agree on the last digit of these functions. So they are made of additions, multiplications and
divisions in a fixed order, which IEEE 754 defines to the last bit; Spark's part does the same steps. The error is a few
units of the last digit; that of a power grows with its exponent.
"""

import math

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""The logarithm of 2. The first part has so few digits that its multiples here are exact."""
PER_LN2 = 1.4426950408889634
LARGEST_EXPONENT = 709.782712893384
SMALLEST_EXPONENT = -745.2
TERMS = tuple(1 / math.factorial(n) for n in range(14, -1, -1))
"""Of the exponential series, last first."""
ODD_TERMS = tuple(1 / n for n in range(23, 0, -2))
"""Of the series of the inverse hyperbolic tangent, last first."""
ROOT_OF_2 = 1.4142135623730951
MOST_MULTIPLIED = 2**31 - 1
"""The largest exponent of POWER."""


def exponential(x: float) -> float:
    """e to the power of x; infinity where that does not fit."""
    if math.isnan(x) or x > LARGEST_EXPONENT:
        return x if math.isnan(x) else math.inf
    if x < SMALLEST_EXPONENT:
        return 0.0
    k = math.floor(x * PER_LN2 + 0.5)
    rest = (x - k * LN2_HIGH) - k * LN2_LOW
    value = 0.0
    for term in TERMS:
        value = value * rest + term
    half = k // 2
    return value * _power_of_2(half) * _power_of_2(k - half)


def _power_of_2(k: int) -> float:
    return math.ldexp(1.0, k)


def logarithm(x: float) -> float | None:
    """The natural logarithm; None where there is none."""
    if math.isnan(x) or x == math.inf:
        return x
    if x <= 0:
        return None
    fraction, k = math.frexp(x)
    fraction, k = fraction * 2, k - 1
    if fraction > ROOT_OF_2:
        fraction, k = fraction / 2, k + 1
    s = (fraction - 1) / (fraction + 1)
    square, value = s * s, 0.0
    for term in ODD_TERMS:
        value = value * square + term
    return k * LN2_HIGH + (2 * s * value + k * LN2_LOW)


def root(x: float) -> float | None:
    """The square root, which IEEE 754 defines; None where there is none."""
    return None if x < 0 else math.sqrt(x)


def power(x: float, y: float) -> float | None:
    """x to the power of y, |y| at most `MOST_MULTIPLIED`: whole powers by multiplying, the rest by a root or logarithm.

    None where there is none; infinity where it does not fit.
    """
    if math.isnan(x) or math.isnan(y):
        return math.nan
    whole = math.trunc(y)
    rest = y - whole
    if (x == 0 and y < 0) or (x < 0 and rest != 0):
        return None
    value, factor, count = 1.0, x, abs(whole)
    while count:
        if count % 2:
            value *= factor
        factor *= factor
        count //= 2
    if whole < 0:
        value = 1 / value if value else math.inf
    if rest == 0:
        return value
    if abs(rest) == 0.5:
        part = math.sqrt(x)
        return value * part if rest > 0 else value / part
    logged = logarithm(x) if x else -math.inf
    return value * exponential(rest * (logged or 0.0))
