"""Typed values as the types of a dataset, exactly: which types of a file serve which type, and how they are cast."""

import re

from clew.lang.types import Kind, Type
from clew.spark.sql import spark_type

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The integer types of Spark and how many digits each may have."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXTS = re.compile(r"string.*|varchar\(\d+\)|char\(\d+\)")
_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


def value_of_typed(value: str, source: str, target: Type) -> str:
    """SQL for a value of a Spark type as one of a dataset's type that it serves; NULL where it does not fit."""
    wanted = spark_type(target)
    if _holds_all(source, target):
        return f"CAST({value} AS {wanted})"
    cast = f"try_cast({value} AS {wanted})"
    return f"CASE WHEN try_cast({cast} AS {source}) = {value} THEN {cast} END"


def serves(source: str, target: Type) -> bool:
    """Whether values of a Spark type can be values of a dataset's type at all."""
    match target.kind:
        case Kind.STRING:
            return _TEXTS.fullmatch(source) is not None
        case Kind.BOOLEAN:
            return source == "boolean"
        case Kind.DATE | Kind.TIMESTAMP:
            return source in {"date", "timestamp_ltz", "timestamp_ntz"}
        case kind:
            return kind in _NUMBERS and _is_number(source)


def _is_number(source: str) -> bool:
    return source in _WHOLE or source in {"float", "double"} or _DECIMAL.fullmatch(source) is not None


def _holds_all(source: str, target: Type) -> bool:
    """Whether every value of the source type is one of the target."""
    match target.kind:
        case Kind.STRING | Kind.BOOLEAN | Kind.TIMESTAMP:
            return True
        case Kind.DATE:
            return source == "date"
        case Kind.INTEGER:
            return source in _WHOLE
        case Kind.DOUBLE:
            return source in {"tinyint", "smallint", "int", "float", "double"}
        case _:
            digits = _digits(source)
            return digits is not None and digits[0] <= target.precision - target.scale and digits[1] <= target.scale


def _digits(source: str) -> tuple[int, int] | None:
    """How many digits an exact number type has before and behind the point."""
    if source in _WHOLE:
        return _WHOLE[source], 0
    match = _DECIMAL.fullmatch(source)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None
