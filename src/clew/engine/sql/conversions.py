"""Values of one type as another in Spark SQL: implicit conversions, and the functions that convert.

Spark reads strings more leniently than the language does (`1e3`, digits of other scripts, a day without a zero). So a
string that the language refuses is replaced by one that Spark refuses too, with the reason in it.
"""

from clew.engine.sql.call import Entries, SqlCall, repeating
from clew.engine.sql.literals import cast, literal, text_literal
from clew.lang.types import DATE, DOUBLE, INTEGER, STRING, Kind, Type

_WHOLE_NUMBER = " *[+-]?[0-9]+ *"
_NUMBER = r" *[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+) *"
_DAY = "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TOO_LARGE = "raise_error('a double of 2^63 does not fit integer (64 bits)')"
_NOT_FINITE = "raise_error('NaN and infinity are not decimals')"


def converted(sql: str, source: Type, target: Type) -> str:
    """What a `Convert` node does, rounding half-up and failing where the value does not fit."""
    if source == target:
        return sql
    match target.kind:
        case Kind.INTEGER:
            return _to_integer(sql, source)
        case Kind.DECIMAL:
            return _to_decimal(sql, source, target)
        case Kind.DATE:
            return _to_date(sql, source)
        case Kind.STRING:
            return _to_text(sql, source)
        case _:
            return cast(sql, target)


def _to_integer(sql: str, source: Type) -> str:
    match source.kind:
        case Kind.STRING:
            return cast(_refused_unless(sql, _WHOLE_NUMBER, "not a whole number"), INTEGER)
        case Kind.DECIMAL if source.scale > 0:
            return cast(f"round({sql}, 0)", INTEGER)
        case Kind.DOUBLE:
            return repeating(_double_to_integer, sql)
        case _:
            return cast(sql, INTEGER)


def _double_to_integer(x: str) -> str:
    """Spark takes the double 2^63 for the largest integer."""
    return f"IF({x} = {literal(2.0**63, DOUBLE)}, {_TOO_LARGE}, CAST(round({x}, 0) AS BIGINT))"


def _to_decimal(sql: str, source: Type, target: Type) -> str:
    match source.kind:
        case Kind.STRING:
            return cast(_refused_unless(sql, _NUMBER, "not a number"), target)
        case Kind.DOUBLE:
            return repeating(lambda x: _double_to_decimal(x, target), sql)
        case _:
            return cast(sql, target)


def _double_to_decimal(x: str, target: Type) -> str:
    """Spark makes NULL of what is not finite. NaN comes after infinity."""
    infinity = literal(float("inf"), DOUBLE)
    return f"IF(abs({x}) >= {infinity}, {_NOT_FINITE}, {cast(x, target)})"


def _to_date(sql: str, source: Type) -> str:
    return cast(_refused_unless(sql, _DAY, "not a date") if source.kind is Kind.STRING else sql, DATE)


def _to_text(sql: str, source: Type) -> str:
    text = cast(sql, STRING)
    return f"upper({text})" if source.kind is Kind.BOOLEAN else text


def _refused_unless(sql: str, pattern: str, problem: str) -> str:
    whole = text_literal(rf"(?s)\A(?!{pattern}\z).*\z")
    return f"regexp_replace({sql}, {whole}, {text_literal(f'{problem}: $0')})"


def _conversion(call: SqlCall) -> str:
    return converted(call.arguments[0], call.types[0], call.type)


CONVERSIONS: Entries = {
    "TO_STRING": _conversion,
    "TO_INTEGER": _conversion,
    "TO_DECIMAL": _conversion,
    "TO_DATE": _conversion,
}
