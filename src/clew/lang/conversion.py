"""Conversions between types: which are implicit, what they do, and what strings and numbers in files mean exactly."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, DecimalTuple

from clew.lang.arithmetic import decimal_of_double, fit, fit_integer, out_of_range
from clew.lang.typed import Value
from clew.lang.types import Kind, Type

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_INTEGER_DIGITS = 19


def converts_unasked(source: Type, target: Type) -> bool:
    """Whether an argument of one type is accepted where another is expected: only if nothing but digits can be lost."""
    match source.kind, target.kind:
        case (Kind.NULL, _):
            return True
        case (Kind.INTEGER, Kind.DECIMAL | Kind.DOUBLE) | (Kind.DECIMAL, Kind.DECIMAL | Kind.DOUBLE):
            return True
        case (Kind.DATE, Kind.TIMESTAMP):
            return True
        case _:
            return source == target


def assignable(source: Type, target: Type) -> bool:
    """Whether a value may be assigned to a column: numbers to numbers, rounded to its scale, else the same kind."""
    return converts_unasked(source, target) or (source.is_numeric and target.is_numeric)


def keeps_apart(source: Type, target: Type) -> bool:
    """Whether different values are different still when they are converted, be it that one of them does not fit."""
    match source.kind, target.kind:
        case (Kind.DECIMAL, Kind.DECIMAL):
            return source.scale <= target.scale
        case (Kind.DECIMAL, Kind.INTEGER):
            return source.scale == 0
        case (Kind.INTEGER, Kind.DECIMAL) | (Kind.DATE, Kind.TIMESTAMP) | (Kind.NULL, _):
            return True
        case _:
            return source == target


def converter(source: Type, target: Type) -> Callable[[Value], Value]:
    """What a `Convert` node does to a value that is not NULL."""
    if source == target or source.kind is Kind.NULL:
        return lambda value: value
    match target.kind:
        case Kind.INTEGER:
            return to_integer
        case Kind.DECIMAL:
            return lambda value: fit(to_decimal(value), target)
        case Kind.DOUBLE:
            return float  # type: ignore[return-value]
        case Kind.TIMESTAMP:
            return _to_timestamp
        case Kind.DATE:
            return to_date
        case Kind.STRING:
            return to_text
        case Kind.BOOLEAN | Kind.NULL:
            raise ValueError(f"there is no conversion from {source} to {target}")


def to_integer(value: Value) -> int:
    """A whole number; decimals and doubles are rounded half-up."""
    match value:
        case bool():
            return int(value)
        case int():
            return value
        case float() if math.isfinite(value):
            return fit_integer(int(decimal_of_double(value).to_integral_value(ROUND_HALF_UP)))
        case Decimal():
            return fit_integer(int(value.to_integral_value(ROUND_HALF_UP)))
        case str() if _WHOLE_NUMBER.fullmatch(value.strip(" ")):
            return _integer_of_digits(value.strip(" "))
        case _:
            raise _not_a("whole number", value)


def _integer_of_digits(text: str) -> int:
    """Python refuses to read very long numbers, even where most of their digits are leading zeros."""
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _INTEGER_DIGITS:
        raise out_of_range(f"{_shown(text)} does not fit integer (64 bits)")
    return fit_integer(-int(digits or 0) if text.startswith("-") else int(digits or 0))


def to_decimal(value: Value) -> Decimal:
    """An exact number of any number of digits."""
    match value:
        case Decimal():
            return value
        case int():
            return Decimal(value)
        case float() if math.isfinite(value):
            return decimal_of_double(value)
        case str() if _NUMBER.fullmatch(value.strip(" ")):
            return Decimal(value.strip(" "))
        case _:
            raise _not_a("number", value)


def to_date(value: Value) -> date:
    """A day; strings are read as YYYY-MM-DD and nothing else."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str) and _ISO_DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise out_of_range(f'there is no day "{value}"', "write a day of the calendar as YYYY-MM-DD") from None
    raise out_of_range(f"{_shown(value)} is not a date", "write dates as YYYY-MM-DD")


def to_text(value: Value) -> str:
    """The text of a value, as `TO_STRING` gives it."""
    match value:
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return _text_of_double(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            text = value.isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _to_timestamp(value: Value) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - timestamps here have no zone
    raise _not_a("timestamp", value)


def _text_of_double(value: float) -> str:
    """The text that the Java platform gives, since that is what Spark writes: 1.0E10 rather than 10000000000.0.

    The digits are the fewest that read back as the same double, but at least two. (Before Java 19 there are sometimes
    more, mostly from 2^53 on.)
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        digits = f"{decimal_of_double(value):f}"
        return digits if "." in digits else digits + ".0"
    shortest = decimal_of_double(value).normalize()
    sign, digits_tuple, exponent = shortest.as_tuple() if len(shortest.as_tuple().digits) > 1 else _two_digits(value)
    digits = "".join(map(str, digits_tuple))
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:] or '0'}E{power}"


def _two_digits(value: float) -> DecimalTuple:
    """The smallest double is 4.9E-324, although 5E-324 reads back as it too."""
    return Decimal(f"{value:.1e}").normalize().as_tuple()


def _not_a(what: str, value: Value) -> Exception:
    return out_of_range(f"{_shown(value)} is not a {what}")


def _shown(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
    return str(value)


def given_value(value: object, type_: Type) -> Value:
    """A value as a type has it. ClewError, ValueError, KeyError or TypeError where it is none of the type."""
    return _READERS[type_.kind](value, type_)


def _boolean(value: object, _type: Type) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value).lower()]


def _timestamp(value: object, _type: Type) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


def _decimal(value: object, type_: Type) -> Decimal:
    exact = to_decimal(value)  # type: ignore[arg-type]
    fitted = fit(exact, type_)
    if fitted != exact:
        raise ValueError("digits would be lost")
    return fitted


def _whole(value: object, _type: Type) -> int:
    whole = to_integer(value)  # type: ignore[arg-type]
    if isinstance(value, Decimal) and value != whole:
        raise ValueError("not a whole number")
    return whole


_READERS: Mapping[Kind, Callable[[object, Type], Value]] = {
    Kind.STRING: lambda value, _type: to_text(value),  # type: ignore[arg-type]
    Kind.INTEGER: _whole,
    Kind.DECIMAL: _decimal,
    Kind.DOUBLE: lambda value, _type: float(value),  # type: ignore[arg-type]
    Kind.BOOLEAN: _boolean,
    Kind.DATE: lambda value, _type: to_date(value),  # type: ignore[arg-type]
    Kind.TIMESTAMP: _timestamp,
}
