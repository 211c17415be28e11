"""Texts as values, exactly: what a text means as each type, in SQL. A text that means nothing there becomes NULL.

The rules are those of the language (TO_INTEGER, TO_DECIMAL, TO_DATE), with one difference: digits behind the scale of
a decimal are refused rather than rounded, since loading must not change what it loads.
"""

from clew.lang.types import Kind, Type
from clew.spark.sql import spark_type
from clew.spark.sql.literals import text_literal

_INTEGER = r"^ *[+-]?[0-9]+ *\z"
_DOUBLE = r"^ *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *\z"
_TIMESTAMP = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?(?:Z|[+-][0-9]{2}(?::[0-9]{2})?)?)?\z"
)


def value_of_text(text: str, target: Type) -> str:
    """SQL for the value of a text, NULL where it is not one of the type."""
    match target.kind:
        case Kind.STRING:
            return text
        case Kind.INTEGER:
            return _guarded(text, _INTEGER, f"try_cast({text} AS BIGINT)")
        case Kind.DECIMAL:
            return _guarded(text, _decimal_pattern(target.scale), f"try_cast({text} AS {spark_type(target)})")
        case Kind.DOUBLE:
            return _double(text)
        case Kind.BOOLEAN:
            return f"CASE lower({text}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        case Kind.DATE:
            return day_of_text(text)
        case Kind.TIMESTAMP:
            moment = f"CAST(try_cast({_with_seconds(text)} AS TIMESTAMP_LTZ) AS {spark_type(target)})"
            return f"CASE WHEN left({text}, 4) <> '0000' AND {text} RLIKE {text_literal(_TIMESTAMP)} THEN {moment} END"
        case Kind.NULL:
            raise ValueError("no column has the type null")


def _with_seconds(text: str) -> str:
    """SQL for a text with seconds before its zone: Spark does not read 10:20Z."""
    pattern, replacement = text_literal("^(.{16})(Z|[+-].*)$"), text_literal("$1:00$2")
    return f"regexp_replace({text}, {pattern}, {replacement})"


def day_of_text(text: str) -> str:
    """SQL for the day that a text YYYY-MM-DD means. Spark alone would take 2026-1-2 and 2026-01-02T10:00 too."""
    shape = (
        f"length({text}) = 10 AND substr({text}, 5, 1) = '-' AND substr({text}, 8, 1) = '-' "
        f"AND right({text}, 1) BETWEEN '0' AND '9' AND left({text}, 4) <> '0000'"
    )
    return f"CASE WHEN {shape} THEN try_cast({text} AS DATE) END"


def _guarded(text: str, pattern: str, value: str) -> str:
    return f"CASE WHEN {text} RLIKE {text_literal(pattern)} THEN {value} END"


def _decimal_pattern(scale: int) -> str:
    """A number that has no digits behind the scale but zeros."""
    return rf"^ *[+-]?(?:[0-9]+(?:\.[0-9]{{0,{scale}}}0*)?|\.(?=[0-9])[0-9]{{0,{scale}}}0*) *\z"


def _double(text: str) -> str:
    """Numbers too large for a double are refused; infinity must be written out."""
    number = f"try_cast({text} AS DOUBLE)"
    finite = f"CASE WHEN abs({number}) < double('Infinity') THEN {number} END"
    return (
        f"CASE WHEN {text} RLIKE {text_literal(_DOUBLE)} THEN {finite} "
        f"WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN {number} END"
    )
