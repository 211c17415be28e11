"""Functions that count in weeks, months, years and working days."""

from collections.abc import Callable, Sequence

from clew.lang.conversion import to_date
from clew.lang.day_counts import UNITS, end_of_month, months_later, start_of_unit, workday
from clew.lang.functions.dates import day_type
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import Infer, require
from clew.lang.functions.patterns import literal_text
from clew.lang.typed import Value
from clew.lang.types import DATE, INTEGER, STRING, Kind

_DAY = Parameter("date", "date or timestamp")
_MONTHS = Parameter("months", "integer")


def _infer_months(arguments: Sequence[Argument]) -> Signature:
    day = day_type(arguments[0], 0)
    for index, argument in enumerate(arguments[1:], start=1):
        require(argument, index, argument.type.kind in {Kind.INTEGER, Kind.NULL}, "a whole number of months")
    return Signature((day, INTEGER)[: len(arguments)], DATE)


def _infer_truncation(arguments: Sequence[Argument]) -> Signature:
    unit = literal_text(arguments, 0, "the unit")
    if unit is not None and unit not in UNITS:
        raise SignatureProblem(f"the unit is one of {', '.join(UNITS)}", 0, 'write for example "month"')
    return Signature((STRING, day_type(arguments[1], 1)), DATE)


def _infer_weekday(arguments: Sequence[Argument]) -> Signature:
    return Signature((day_type(arguments[0], 0),), INTEGER)


def _infer_workday(arguments: Sequence[Argument]) -> Signature:
    day = day_type(arguments[0], 0)
    require(arguments[1], 1, arguments[1].type.kind in {Kind.INTEGER, Kind.NULL}, "a whole number of days")
    for index, argument in enumerate(arguments[2:], start=2):
        require(argument, index, argument.type.kind in {Kind.DATE, Kind.NULL}, "a date")
    return Signature((day, INTEGER, *(DATE for _ in arguments[2:])), DATE)


def _workday(day: Value, days: int, *holidays: Value) -> Value:
    return workday(to_date(day), days, frozenset(holidays))  # type: ignore[arg-type]


def _function(
    name: str,
    parameters: tuple[Parameter, ...],
    returns: str,
    sentence: str,
    infer: Infer,
    apply: Callable[..., Value],
    *examples: tuple[str, str],
) -> Function:
    shown = tuple(Example(expression, result) for expression, result in examples)
    return Function(
        name, Family.DATE, parameters, returns, NullRule.PROPAGATES, sentence, shown, infer, lambda _signature: apply
    )


DATE_UNITS = (
    _function(
        "EOMONTH",
        (_DAY, Parameter("months", "integer; 0 by default", optional=True)),
        "date",
        "The last day of the month of a date, or of the month that many months later, or earlier if negative.",
        _infer_months,
        lambda day, months=0: end_of_month(to_date(day), months),
        ('EOMONTH(DATE("2024-02-10"))', "2024-02-29"),
        ('EOMONTH(DATE("2026-01-31"), -2)', "2025-11-30"),
    ),
    _function(
        "EDATE",
        (_DAY, _MONTHS),
        "date",
        "The same day of the month that many months later, or earlier if negative; its last day if it is shorter.",
        _infer_months,
        lambda day, months: months_later(to_date(day), months),
        ('EDATE(DATE("2026-01-31"), 1)', "2026-02-28"),
    ),
    _function(
        "DATE_TRUNC",
        (Parameter("unit", f"literally {', '.join(UNITS)}"), Parameter("date", "date or timestamp")),
        "date",
        "The first day of the week, month, quarter or year of a date. Weeks begin on Monday.",
        _infer_truncation,
        lambda unit, day: start_of_unit(to_date(day), unit),
        ('DATE_TRUNC("quarter", DATE("2026-05-17"))', "2026-04-01"),
        ('DATE_TRUNC("week", DATE("2026-01-31"))', "2026-01-26"),
    ),
    _function(
        "WEEKDAY",
        (_DAY,),
        "integer",
        "The day of the week of a date: 1 is Monday, 7 is Sunday.",
        _infer_weekday,
        lambda day: day.isoweekday(),
        ('WEEKDAY(DATE("2026-01-31"))', "6"),
    ),
    _function(
        "WORKDAY",
        (
            _DAY,
            Parameter("days", "integer, at most 10,000"),
            Parameter("holiday", "date", optional=True, repeats=True),
        ),
        "date",
        "The date that many working days later, or earlier if negative. Saturdays, Sundays and holidays do not count.",
        _infer_workday,
        _workday,
        ('WORKDAY(DATE("2026-01-30"), 1)', "2026-02-02"),
        ('WORKDAY(DATE("2026-04-30"), 1, DATE("2026-05-01"))', "2026-05-04"),
    ),
)
