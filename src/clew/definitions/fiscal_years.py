"""The days of fiscal years: those that begin with a month, and those of 52 or 53 whole weeks.

A year of weeks ends on the same weekday every year: the last one of a month, or the one nearest to the end of the
month. So it has 52 weeks, and now and then 53; the last period and the last quarter get the extra one.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""The days of the week, as Python numbers them."""

WEEKS_OF_PERIODS = {
    "4-4-5": (4, 4, 5) * 4,
    "4-5-4": (4, 5, 4) * 4,
    "5-4-4": (5, 4, 4) * 4,
    "13-periods": (4,) * 13,
}
"""How many weeks the periods of a year of 52 weeks have, by pattern."""

Stretch = tuple[date, date]
"""The first and the last day."""


def months_of(year: int, start_month: int) -> list[Stretch]:
    """The twelve months of the fiscal year that ends in a calendar year, or is one where it begins in January."""
    first = year * 12 if start_month == 1 else (year - 1) * 12 + start_month - 1
    begins = [date(number // 12, number % 12 + 1, 1) for number in range(first, first + 12)]
    return [(begin, _end_of_month(begin)) for begin in begins]


def end_of_weeks(year: int, end_month: int, weekday: int, *, nearest: bool) -> date:
    """The last day of the fiscal year of whole weeks that ends at the end of a month of a calendar year."""
    end = _end_of_month(date(year, end_month, 1))
    last = end - timedelta(days=(end.weekday() - weekday) % 7)
    return last + timedelta(days=7) if nearest and (end - last).days > 3 else last


def weeks_of(year: int, end_month: int, weekday: int, *, nearest: bool) -> list[Stretch]:
    """The weeks of such a year."""
    begin = end_of_weeks(year - 1, end_month, weekday, nearest=nearest) + timedelta(days=1)
    days = (end_of_weeks(year, end_month, weekday, nearest=nearest) - begin).days + 1
    return [(begin + timedelta(days=day), begin + timedelta(days=day + 6)) for day in range(0, days, 7)]


def periods_of_weeks(weeks: list[Stretch], pattern: str) -> list[Stretch]:
    """Weeks put together by a pattern. The last period gets what is left."""
    numbers = WEEKS_OF_PERIODS[pattern]
    begins = [sum(numbers[:index]) for index in range(len(numbers))]
    return joined(weeks, [*begins, len(weeks)])


def joined(stretches: list[Stretch], bounds: list[int]) -> list[Stretch]:
    """Consecutive stretches put together, from each bound to the next."""
    return [(stretches[one][0], stretches[next_ - 1][1]) for one, next_ in pairwise(bounds)]


def iso_weeks_of(year: Stretch) -> dict[str, Stretch]:
    """The weeks of ISO 8601 of a year, from Monday to Sunday, by name: those whose Thursday lies in it."""
    first = year[0] + timedelta(days=(3 - year[0].weekday()) % 7)
    last = min(year[1], date.max - timedelta(days=3))
    found = dict[str, Stretch]()
    for number in range(first.toordinal(), last.toordinal() + 1, 7):
        thursday = date.fromordinal(number)
        named = thursday.isocalendar()
        found[f"{named.year:04}-W{named.week:02}"] = thursday - timedelta(days=3), thursday + timedelta(days=3)
    return found


def days_of(stretch: Stretch) -> Iterator[date]:
    """Every day of a stretch."""
    for day in range((stretch[1] - stretch[0]).days + 1):
        yield stretch[0] + timedelta(days=day)


def _end_of_month(begin: date) -> date:
    return begin.replace(day=monthrange(begin.year, begin.month)[1])
