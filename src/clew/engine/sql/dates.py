"""Functions on dates in Spark SQL. The language has the years 1 to 9999, Spark has more.

BETWEEN is not used: Spark evaluates its operand before the row's other expressions, even where AND or IN guard it.
"""

from clew.engine.sql.call import Entries, SqlCall, SqlOf, repeating, whole_constant
from clew.engine.sql.conversions import converted
from clew.engine.sql.literals import literal
from clew.lang.types import DATE, STRING, Kind, Type

_FIRST, _LAST = "DATE '0001-01-01'", "DATE '9999-12-31'"
_NO_SUCH_DAY = "raise_error('a day outside the years 1 to 9999')"


def day(sql: str, type_: Type) -> str:
    """The day of a date or a timestamp."""
    return sql if type_.kind is Kind.DATE else converted(sql, type_, DATE)


def _date(call: SqlCall) -> str:
    if len(call.arguments) == 1:
        return converted(call.arguments[0], STRING, DATE)
    return repeating(_date_of_parts, *call.arguments)


def _date_of_parts(year: str, month: str, day_of_month: str) -> str:
    """A part that is NULL comes before a year that does not exist."""
    parts = (year, month, day_of_month)
    unknown = " OR ".join(f"{part} IS NULL" for part in parts)
    made = ", ".join(f"CAST({part} AS INT)" for part in parts)
    beyond = f"{year} < 1L OR {year} > 9999L"
    return f"CASE WHEN {unknown} THEN NULL WHEN {beyond} THEN {_NO_SUCH_DAY} ELSE make_date({made}) END"


def _part(function: str) -> SqlOf:
    return lambda call: f"CAST({function}({day(call.arguments[0], call.types[0])}) AS BIGINT)"


def _addition(call: SqlCall) -> str:
    start, days = day(call.arguments[0], call.types[0]), whole_constant(call.apply.arguments[1])
    count = str(days) if days is not None and abs(days) < 10**7 else _count_of_days(call.arguments[1])
    return within_years(f"date_add({start}, {count})")


def within_years(later: str) -> str:
    """A day, and an error where it is one that the language does not have."""
    return repeating(lambda day: f"IF({day} < {_FIRST} OR {day} > {_LAST}, {_NO_SUCH_DAY}, {day})", later)


def _count_of_days(days: str) -> str:
    """More than seven digits are refused by the cast; Spark's own sum of days would wrap around."""
    return f"CAST(CAST({days} AS DECIMAL(7,0)) AS INT)"


DATES: Entries = {
    "DATE": _date,
    "TODAY": lambda call: literal(call.today, DATE),
    "YEAR": _part("year"),
    "MONTH": _part("month"),
    "DAY": _part("day"),
    "DATEADD": _addition,
}
