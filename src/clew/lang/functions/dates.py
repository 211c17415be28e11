"""Functions on dates."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from clew.lang.arithmetic import out_of_range
from clew.lang.conversion import to_date
from clew.lang.day_counts import UNITS, whole_units
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    NullRule,
    Parameter,
    RunFunction,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import fixed, require
from clew.lang.functions.patterns import literal_text
from clew.lang.typed import Value
from clew.lang.types import DATE, INTEGER, STRING, Kind, Type

_DAY = (Parameter("date", "date or timestamp"),)


def _infer_date(arguments: Sequence[Argument]) -> Signature:
    if len(arguments) == 1:
        return fixed(STRING, returns=DATE)(arguments)
    if len(arguments) == 3:
        return fixed(INTEGER, INTEGER, INTEGER, returns=DATE)(arguments)
    raise SignatureProblem("DATE takes a string, or a year, a month and a day", hint='write DATE("2026-01-31")')


def _infer_part(arguments: Sequence[Argument]) -> Signature:
    return Signature((day_type(arguments[0], 0),), INTEGER)


def _infer_difference(arguments: Sequence[Argument]) -> Signature:
    unit = literal_text(arguments, 2, "the unit")
    if unit is not None and unit not in UNITS:
        raise SignatureProblem(f"the unit is one of {', '.join(UNITS)}", 2, 'write for example "month"')
    days = tuple(day_type(argument, index) for index, argument in enumerate(arguments[:2]))
    return Signature((*days, *(STRING for _ in arguments[2:])), INTEGER)


def _infer_addition(arguments: Sequence[Argument]) -> Signature:
    day = day_type(arguments[0], 0)
    require(arguments[1], 1, arguments[1].type.kind in {Kind.INTEGER, Kind.NULL}, "a whole number of days")
    return Signature((day, INTEGER), DATE)


def day_type(argument: Argument, index: int) -> Type:
    """The type of an argument that is a date or a timestamp."""
    require(argument, index, argument.type.kind in {Kind.DATE, Kind.TIMESTAMP, Kind.NULL}, "a date")
    return DATE if argument.type.kind is Kind.NULL else argument.type


def _date(signature: Signature) -> Callable[..., Value]:
    return to_date if len(signature.parameters) == 1 else _date_of_parts


def _date_of_parts(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        problem = f"there is no day {day} of month {month} in the year {year}"
        raise out_of_range(problem, "months are 1 to 12, years 1 to 9999") from None


def _date_add(day: Value, days: int) -> date:
    try:
        return to_date(day) + timedelta(days=days)
    except OverflowError:
        raise out_of_range(f"{days} days from {day} is outside the years 1 to 9999") from None


DATES: tuple[Function | RunFunction, ...] = (
    Function(
        "DATE",
        Family.DATE,
        (
            Parameter("text or year", "string YYYY-MM-DD, or integer"),
            Parameter("month", "integer", optional=True),
            Parameter("day", "integer", optional=True),
        ),
        "date",
        NullRule.PROPAGATES,
        "A day, from a string or from year, month and day.",
        (Example('DATE("2026-01-31")', "2026-01-31"), Example("DATE(2026, 1, 31)", "2026-01-31")),
        _infer_date,
        _date,
    ),
    RunFunction(
        "TODAY",
        Family.DATE,
        (),
        "date",
        NullRule.HANDLES,
        "The date on which the run started; the same for every row and every retry of the run.",
        (),
        lambda _arguments: Signature((), DATE),
        lambda today: today,
    ),
    *(
        Function(
            name,
            Family.DATE,
            _DAY,
            "integer",
            NullRule.PROPAGATES,
            sentence,
            (Example(f'{name}(DATE("2026-01-31"))', result),),
            _infer_part,
            bind,
        )
        for name, sentence, result, bind in (
            ("YEAR", "The year of a date.", "2026", lambda _signature: lambda day: day.year),
            ("MONTH", "The month of a date, 1 to 12.", "1", lambda _signature: lambda day: day.month),
            ("DAY", "The day of the month of a date.", "31", lambda _signature: lambda day: day.day),
        )
    ),
    Function(
        "DATEDIFF",
        Family.DATE,
        (
            Parameter("end", "date or timestamp"),
            Parameter("start", "date or timestamp"),
            Parameter("unit", f"literally {', '.join(UNITS)}; day by default", optional=True),
        ),
        "integer",
        NullRule.PROPAGATES,
        "The number of days, or of whole weeks, months, quarters or years, from start to end; negative if end comes "
        "first. A month is whole once the day of the month is reached.",
        (
            Example('DATEDIFF(DATE("2026-03-01"), DATE("2026-02-01"))', "28"),
            Example('DATEDIFF(DATE("2026-03-30"), DATE("2026-01-31"), "month")', "1"),
        ),
        _infer_difference,
        lambda _signature: lambda end, start, unit="day": whole_units(to_date(end), to_date(start), unit),
    ),
    Function(
        "DATEADD",
        Family.DATE,
        (Parameter("date", "date or timestamp"), Parameter("days", "integer")),
        "date",
        NullRule.PROPAGATES,
        "The date that many days later, or earlier if negative.",
        (Example('DATEADD(DATE("2024-02-28"), 1)', "2024-02-29"),),
        _infer_addition,
        lambda _signature: _date_add,
    ),
)
