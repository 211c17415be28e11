"""Values of one type as another in Spark SQL: implicit conversions, and the functions that convert.

Spark reads strings more leniently than the language does (`1e3`, digits of other scripts, a day without a zero). So a
string that the language refuses is replaced by one that Spark refuses too, with the reason in it.
"""

from clew.engine.sql.call import Entries, SqlCall, literal_of, repeating
from clew.engine.sql.literals import cast, literal, spark_type, text_literal
from clew.lang.day_patterns import MONTHS, groups_of, parts_of, reading
from clew.lang.number_patterns import number_pattern
from clew.lang.types import DATE, DOUBLE, INTEGER, STRING, Kind, Type, as_decimal

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


def _to_string(call: SqlCall) -> str:
    if len(call.arguments) == 1:
        return _conversion(call)
    pattern = literal_of(call.apply.arguments[1])
    if pattern is None or call.types[0].kind is Kind.NULL:
        return literal(None, STRING)
    if call.types[0].kind in {Kind.DATE, Kind.TIMESTAMP}:
        return repeating(lambda day: _written_day(day, str(pattern)), call.arguments[0])
    digits = number_pattern(str(pattern)).digits
    exact = cast(call.arguments[0], as_decimal(call.types[0]))
    return repeating(lambda text: _written_number(text, str(pattern)), cast(f"round({exact}, {digits})", STRING))


_WRITTEN = {"yyyy": ("year", 4), "MM": ("month", 2), "dd": ("day", 2), "HH": ("hour", 2), "mm": ("minute", 2)}
_WRITTEN_SHORT = {"M": "month", "d": "day"}


def _written_day(day: str, pattern: str) -> str:
    return f"concat({', '.join(_part_of_day(part, day) for part in parts_of(pattern)) or repr('')})"


def _part_of_day(part: str, day: str) -> str:
    moment = f"CAST({day} AS TIMESTAMP_NTZ)"
    if part in _WRITTEN or part == "ss":
        function, digits = _WRITTEN.get(part, ("second", 2))
        return f"lpad(CAST({function}({moment}) AS STRING), {digits}, '0')"
    if part in _WRITTEN_SHORT:
        return f"CAST({_WRITTEN_SHORT[part]}({day}) AS STRING)"
    if part == "yy":
        return f"lpad(CAST(year({day}) % 100 AS STRING), 2, '0')"
    if part == "MMM":
        return f"substring('{''.join(MONTHS)}', month({day}) * 3 - 2, 3)"
    return text_literal(part)


def _written_number(text: str, pattern: str) -> str:
    """The digits of a number that is rounded already; those after its point are filled up."""
    grouped, whole_digits, digits = number_pattern(pattern)
    before, behind = f"substring_index(replace({text}, '-', ''), '.', 1)", f"split_part({text}, '.', 2)"
    whole = f"IF(char_length({before}) < {whole_digits}, lpad({before}, {whole_digits}, '0'), {before})"
    if grouped:
        whole = f"regexp_replace({whole}, {text_literal(_BETWEEN_THOUSANDS)}, ',')"
    sign = f"IF(startswith({text}, '-'), '-', '')"
    rest = ["'.'", f"rpad({behind}, {digits}, '0')"] if digits else []
    return f"concat({', '.join([sign, whole, *rest])})"


_BETWEEN_THOUSANDS = r"(?<=\d)(?=(?:\d{3})+$)"


def _to_date_by_pattern(call: SqlCall) -> str | None:
    """The text of the day as YYYY-MM-DD, or one that is refused; None where there is no pattern."""
    pattern = literal_of(call.apply.arguments[1])
    return None if pattern is None else repeating(lambda text: _iso(text, str(pattern)), call.arguments[0])


def _iso(text: str, pattern: str) -> str:
    regex, parts = reading(pattern)
    groups, whole = groups_of(pattern), text_literal(rf"\A{regex}\z")
    written = ", '-', ".join(_iso_part(part, f"regexp_extract({text}, {whole}, {groups[part]})") for part in parts)
    refused = f"concat('not a date: ', {text})"
    return f"IF({text} RLIKE {whole}, concat({written}), {refused})"


def _iso_part(part: str, found: str) -> str:
    match part:
        case "yy":
            return f"concat('20', {found})"
        case "MMM":
            number = f"(locate(lower({found}), '{''.join(MONTHS).lower()}') + 2) DIV 3"
            return f"lpad(CAST({number} AS STRING), 2, '0')"
        case "M" | "d":
            return f"lpad({found}, 2, '0')"
        case _:
            return found


def _to_date_of(call: SqlCall) -> str:
    if len(call.arguments) == 1:
        return _conversion(call)
    iso = _to_date_by_pattern(call)
    return literal(None, DATE) if iso is None else _to_date(iso, STRING)


def _trying(call: SqlCall) -> str:
    """NULL in place of an error."""
    text, source = call.arguments[0], call.types[0]
    if call.type.kind is Kind.DATE and len(call.arguments) > 1:
        iso = _to_date_by_pattern(call)
        return literal(None, DATE) if iso is None else _tried(iso, _DAY, DATE)
    if source.kind is Kind.STRING:
        pattern = {Kind.INTEGER: _WHOLE_NUMBER, Kind.DATE: _DAY}.get(call.type.kind, _NUMBER)
        return _tried(text, pattern, call.type)
    if source.kind is Kind.DOUBLE and call.type.kind is Kind.INTEGER:
        too_large = literal(2.0**63, DOUBLE)
        return repeating(lambda x: f"IF({x} = {too_large}, NULL, try_cast(round({x}, 0) AS BIGINT))", text)
    if source.kind is Kind.DECIMAL and call.type.kind is Kind.INTEGER:
        return f"try_cast(round({text}, 0) AS BIGINT)"
    if source.kind is Kind.BOOLEAN or call.type.kind is Kind.DATE:
        return _conversion(call)
    return f"try_cast({text} AS {spark_type(call.type)})"


def _tried(sql: str, pattern: str, target: Type) -> str:
    whole = text_literal(rf"(?s)\A{pattern}\z")
    return repeating(lambda text: f"IF({text} RLIKE {whole}, try_cast({text} AS {spark_type(target)}), NULL)", sql)


CONVERSIONS: Entries = {
    "TO_STRING": _to_string,
    "TO_INTEGER": _conversion,
    "TO_DECIMAL": _conversion,
    "TO_DATE": _to_date_of,
    **dict.fromkeys(("TRY_TO_INTEGER", "TRY_TO_DECIMAL", "TRY_TO_DATE"), _trying),
}
