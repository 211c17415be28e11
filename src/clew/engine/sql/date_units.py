"""Functions that count in weeks, months, years and working days in Spark SQL."""

from clew.engine.sql.call import Entries, SqlCall, binding, literal_of, repeating
from clew.engine.sql.dates import day, within_years
from clew.engine.sql.literals import literal
from clew.lang.day_counts import MOST_WORKDAYS, UNITS

_MOST_MONTHS = 200_000
"""More than the years 1 to 9999 have."""
_TRUNCATED = {"week": "WEEK", "month": "MM", "quarter": "QUARTER", "year": "YEAR"}


def _day(call: SqlCall, index: int = 0) -> str:
    return day(call.arguments[index], call.types[index])


def _months_later(start: str, months: str) -> str:
    """Many months are cut to a number that lies outside the years as well, and does not overflow."""
    count = f"CAST(CASE WHEN {months} > {_MOST_MONTHS}L THEN {_MOST_MONTHS}L WHEN {months} < -{_MOST_MONTHS}L "
    return within_years(f"add_months({start}, {count}THEN -{_MOST_MONTHS}L ELSE {months} END AS INT))")


def _edate(call: SqlCall) -> str:
    return repeating(_months_later, _day(call), call.arguments[1])


def _eomonth(call: SqlCall) -> str:
    if len(call.arguments) == 1:
        return f"last_day({_day(call)})"
    first = f"trunc({_day(call)}, 'MM')"
    return f"last_day({repeating(_months_later, first, call.arguments[1])})"


def _truncated(call: SqlCall) -> str:
    unit = literal_of(call.apply.arguments[0])
    if unit is None:
        return literal(None, call.type)
    return f"trunc({_day(call, 1)}, '{_TRUNCATED[str(unit)]}')" if unit in _TRUNCATED else _day(call, 1)


def difference(call: SqlCall) -> str:
    """DATEDIFF."""
    end, start = (_day(call, index) for index in (0, 1))
    unit = literal_of(call.apply.arguments[2]) if len(call.arguments) > 2 else "day"
    match unit:
        case None:
            return literal(None, call.type)
        case "day":
            return f"CAST(datediff({end}, {start}) AS BIGINT)"
        case "week":
            return f"(CAST(datediff({end}, {start}) AS BIGINT) DIV 7L)"
        case _:
            months = UNITS[str(unit)]
            return repeating(lambda end, start: f"({_months(end, start)} DIV {months}L)", end, start)


def _months(end: str, start: str) -> str:
    """Whole months; the same backwards."""

    def forwards(end: str, start: str) -> str:
        count = f"(year({end}) - year({start})) * 12 + month({end}) - month({start})"
        return f"CAST({count} - IF(day({end}) < day({start}), 1, 0) AS BIGINT)"

    return f"IF({end} >= {start}, {forwards(end, start)}, -{forwards(start, end)})"


def _workday(call: SqlCall) -> str:
    """As many days are looked at as can be needed: five of seven are working days, if they are no holidays."""
    holidays = call.arguments[2:]

    def body(start: str, days: str, *holidays: str) -> str:
        needed = f"((abs({days}) + {len(holidays)}L) DIV 5L * 7L + 14L)"
        end = f"date_add({start}, CAST(sign({days}) * {needed} AS INT))"
        first = f"date_add({start}, CAST(sign({days}) AS INT))"
        free = f" AND d NOT IN ({', '.join(holidays)})" if holidays else ""
        found = f"filter(sequence({first}, {end}), d -> weekday(d) < 5{free})"
        unknown = " OR ".join(f"{each} IS NULL" for each in (start, days, *holidays))
        beyond = f"{days} > {MOST_WORKDAYS}L OR {days} < -{MOST_WORKDAYS}L"
        later = within_years(f"element_at({found}, CAST(abs({days}) AS INT))")
        too_many = f"raise_error('more than {MOST_WORKDAYS} working days')"
        ends = f"WHEN {unknown} THEN NULL WHEN {days} = 0L THEN {start} WHEN {beyond} THEN {too_many}"
        return f"CASE {ends} ELSE {later} END"

    return binding(body, _day(call), call.arguments[1], *holidays)


DATE_UNITS: Entries = {
    "EOMONTH": _eomonth,
    "EDATE": _edate,
    "DATE_TRUNC": _truncated,
    "WEEKDAY": lambda call: f"CAST(weekday({_day(call)}) + 1 AS BIGINT)",
    "WORKDAY": _workday,
    "DATEDIFF": difference,
}
