"""The types of values, and how decimals grow.

Decimal results follow one table, so that both evaluators agree to the last digit:

    operation          precision                                   scale
    a + b, a - b       max(s1, s2) + max(p1 - s1, p2 - s2) + 1     max(s1, s2)
    a * b              p1 + p2 + 1                                 s1 + s2
    a / b              p1 - s1 + s2 + max(6, s1 + p2 + 1)          max(6, s1 + p2 + 1)
    MOD(a, b)          p2 - s2 + max(s1, s2), plus 1 beyond 37     max(s1, s2)
    either of a, b     max(s1, s2) + max(p1 - s1, p2 - s2)         max(s1, s2)
    SUM(a)             min(p1 + 10, 38)                            s1
    AVG(a)             p1 + 4, or as SUM(a) / count beyond 38      s1 + 4

A result that would need more than 38 digits keeps its integer digits and loses digits of its scale, but
never below 6 (or below its own scale if that is smaller), and is rounded half-up. SUM keeps its scale.

Spark has the same rules for + - * / and SUM. For the others the typed tree says which type is meant, and Clew makes
Spark convert: its remainder has the sign of a, its "either" may round to whole numbers, its AVG loses integer digits.
"""

import re
from enum import StrEnum

from clew.deferred import dataclass

MAX_PRECISION = 38
_LEAST_KEPT_SCALE = 6


class Kind(StrEnum):
    """The families of types."""

    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NULL = "null"
    """The type of the literal NULL, which is accepted wherever any other type is."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type. Only decimals have a precision and a scale."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    @property
    def is_numeric(self) -> bool:
        """Whether one can calculate with it."""
        return self.kind in {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}


STRING = Type(Kind.STRING)
INTEGER = Type(Kind.INTEGER)
"""A whole number of 64 bits."""
DOUBLE = Type(Kind.DOUBLE)
BOOLEAN = Type(Kind.BOOLEAN)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
NULL = Type(Kind.NULL)

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


def decimal(precision: int, scale: int) -> Type:
    """A decimal type, refused where it cannot exist."""
    if not 1 <= precision <= MAX_PRECISION:
        raise ValueError(f"a decimal has 1 to {MAX_PRECISION} digits, not {precision}")
    if not 0 <= scale <= precision:
        raise ValueError(f"the scale of decimal({precision},{scale}) is not between 0 and {precision}")
    return Type(Kind.DECIMAL, precision, scale)


PLAIN_DECIMAL = decimal(38, 18)
"""What `decimal` without precision means: 20 digits before the decimal point and 18 after it, as in Spark."""

INTEGER_AS_DECIMAL = decimal(20, 0)
"""Wide enough for every 64-bit integer."""

_DECIMAL_NAME = re.compile(r"decimal\s*(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?", re.IGNORECASE)
_SIMPLE_TYPES = {t.kind.value: t for t in (STRING, INTEGER, DOUBLE, BOOLEAN, DATE, TIMESTAMP)}

TYPE_NAMES = (*_SIMPLE_TYPES, "decimal", "decimal(p,s)")


def parse_type(name: str) -> Type:
    """The type of a name as users write it in a dataset. ValueError says what is wrong with the name."""
    simple = _SIMPLE_TYPES.get(name.strip().lower())
    if simple is not None:
        return simple
    match = _DECIMAL_NAME.fullmatch(name.strip())
    if match is None:
        raise ValueError(f'no type "{name}"; the types are {", ".join(TYPE_NAMES)}')
    if match[1] is None:
        return PLAIN_DECIMAL
    return decimal(int(match[1]), int(match[2] or 0))


def bounded(precision: int, scale: int) -> Type:
    """A decimal type with these digits, or the nearest one with at most 38, integer digits kept before the scale."""
    if precision <= MAX_PRECISION:
        return decimal(precision, min(scale, precision))
    integer_digits = precision - scale
    kept_scale = max(MAX_PRECISION - integer_digits, min(scale, _LEAST_KEPT_SCALE))
    return decimal(MAX_PRECISION, kept_scale)


def as_decimal(numeric: Type) -> Type:
    """The decimal type that holds every value of an exact numeric type."""
    return numeric if numeric.kind is Kind.DECIMAL else INTEGER_AS_DECIMAL


def sum_of_decimals(a: Type, b: Type) -> Type:
    """The type of a + b and a - b."""
    scale = max(a.scale, b.scale)
    return bounded(scale + max(a.precision - a.scale, b.precision - b.scale) + 1, scale)


def product_of_decimals(a: Type, b: Type) -> Type:
    """The type of a * b."""
    return bounded(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_of_decimals(a: Type, b: Type) -> Type:
    """The type of a / b."""
    scale = max(_LEAST_KEPT_SCALE, a.scale + b.precision + 1)
    return bounded(a.precision - a.scale + b.scale + scale, scale)


def remainder_of_decimals(a: Type, b: Type) -> Type:
    """The type of MOD(a, b): the remainder has the sign of b and lies below it, so it has the integer digits of b.

    Spark adds b to a remainder that has the other sign, and a sum has one digit more. Where that digit costs one of the
    scale, the remainder has the type of the sum, so that it is rounded once.
    """
    scale = max(a.scale, b.scale)
    precision = b.precision - b.scale + scale
    return bounded(precision if precision < MAX_PRECISION else precision + 1, scale)


def total_of_decimals(a: Type) -> Type:
    """The type of SUM(a)."""
    return decimal(min(a.precision + 10, MAX_PRECISION), a.scale)


def mean_of_decimals(a: Type) -> Type:
    """The type of AVG(a)."""
    if a.precision + 4 > MAX_PRECISION:
        return quotient_of_decimals(total_of_decimals(a), INTEGER_AS_DECIMAL)
    return decimal(a.precision + 4, a.scale + 4)


def either_decimal(a: Type, b: Type) -> Type:
    """The type that holds the values of both."""
    scale = max(a.scale, b.scale)
    return bounded(scale + max(a.precision - a.scale, b.precision - b.scale), scale)


def common_type(a: Type, b: Type) -> Type | None:
    """The type to which both convert implicitly, or None if there is none."""
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.is_numeric and b.is_numeric:
        if Kind.DOUBLE in {a.kind, b.kind}:
            return DOUBLE
        return either_decimal(as_decimal(a), as_decimal(b))
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    return None
