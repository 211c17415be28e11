"""Counting in months, weeks and working days."""

import calendar
from collections.abc import Collection
from datetime import date, timedelta

from clew.lang.arithmetic import out_of_range

UNITS = {"day": 0, "week": 0, "month": 1, "quarter": 3, "year": 12}
"""Units of time, and how many months they have."""
MOST_WORKDAYS = 10_000
_WEEKEND = 5
_OUTSIDE = "outside the years 1 to 9999"


def months_later(day: date, months: int) -> date:
    """The same day of another month, or its last day where it is shorter."""
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise out_of_range(f"{months} months from {day} is {_OUTSIDE}")
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def end_of_month(day: date, months: int) -> date:
    """The last day of the month that is so many months later."""
    other = months_later(day.replace(day=1), months)
    return other.replace(day=calendar.monthrange(other.year, other.month)[1])


def whole_units(end: date, start: date, unit: str) -> int:
    """How many whole units lie between two days; negative where the end comes first."""
    if end < start:
        return -whole_units(start, end, unit)
    if unit in {"day", "week"}:
        return (end - start).days // (7 if unit == "week" else 1)
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    return months // UNITS[unit]


def start_of_unit(day: date, unit: str) -> date:
    """The first day of the week (a Monday), month, quarter or year of a day."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def workday(start: date, days: int, holidays: Collection[date]) -> date:
    """The day so many working days later, or earlier; neither Saturdays, Sundays nor holidays count."""
    if abs(days) > MOST_WORKDAYS:
        raise out_of_range(f"{days} working days are more than {MOST_WORKDAYS:,}")
    day, left, step = start, abs(days), timedelta(days=1 if days > 0 else -1)
    try:
        while left:
            day += step
            left -= day.weekday() < _WEEKEND and day not in holidays
    except OverflowError:
        raise out_of_range(f"{days} working days from {start} is {_OUTSIDE}") from None
    return day
