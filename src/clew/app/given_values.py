"""What texts and numbers of files mean as values of a type: exactly that, or nothing."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from clew.lang.arithmetic import fit
from clew.lang.conversion import to_date, to_decimal, to_integer, to_text
from clew.lang.typed import Value
from clew.lang.types import Kind, Type


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
