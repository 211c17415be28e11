"""Patterns in which dates are read and written: yyyy, yy, MM, M, MMM, dd, d, and HH, mm, ss of timestamps.

Characters that are not letters stand for themselves. Two digits of a year are those of 2000 to 2099. Names of months
are English, three letters long, in upper or lower case where they are read.
"""

import re
from datetime import date, datetime
from functools import lru_cache

from clew.lang.arithmetic import out_of_range

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PARTS = {"yyyy": "year", "yy": "year", "MM": "month", "M": "month", "MMM": "month", "dd": "day", "d": "day"}
_TIMES = {"HH": "hour", "mm": "minute", "ss": "second"}
_ANY_MONTH = "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in month) for month in MONTHS)
_READ_AS = {"yyyy": "[0-9]{4}", "MMM": _ANY_MONTH, **dict.fromkeys(("M", "d"), "[0-9]{1,2}")}
_HINT = "write for example dd.MM.yyyy: yyyy is the year, MM the month, dd the day"


class DayPatternProblem(ValueError):
    """Why a pattern is not taken."""

    hint = _HINT


@lru_cache(maxsize=256)
def parts_of(pattern: str) -> tuple[str, ...]:
    """The parts of a pattern for writing: what stands for something, and single other characters."""
    parts = tuple(found[0] for found in re.finditer(r"([A-Za-z])\1*|[^A-Za-z]", pattern))
    for part in parts:
        if part[:1].isalpha() and part.isascii() and part not in _PARTS and part not in _TIMES:
            raise DayPatternProblem(f'"{part}" in a pattern of dates means nothing')
    return parts


@lru_cache(maxsize=256)
def reading(pattern: str) -> tuple[str, tuple[str, str, str]]:
    """A regular expression for texts of a pattern, and the parts of it that are year, month and day."""
    parts = parts_of(pattern)
    meant = [_PARTS[part] for part in parts if part in _PARTS]
    if sorted(meant) != ["day", "month", "year"] or any(part in _TIMES for part in parts):
        raise DayPatternProblem("a pattern of dates has one year, one month and one day")
    found = {_PARTS[part]: part for part in parts if part in _PARTS}
    regex = "".join(f"({_READ_AS.get(part, '[0-9]{2}')})" if part in _PARTS else _literal(part) for part in parts)
    return regex, (found["year"], found["month"], found["day"])


def groups_of(pattern: str) -> dict[str, int]:
    """The number of the group of each part that is read."""
    read = [part for part in parts_of(pattern) if part in _PARTS]
    return {part: number for number, part in enumerate(read, start=1)}


def _literal(character: str) -> str:
    return "\\" + character if character.isascii() and not character.isalnum() and character > " " else character


def read_day(text: str, pattern: str) -> date:
    """The day that a text of a pattern is."""
    regex, (year, month, day) = reading(pattern)
    found, groups = re.fullmatch(regex, text), groups_of(pattern)
    if found is None:
        raise out_of_range(f'"{text[:60]}" is not a date of the form {pattern}', "correct it, or use TRY_TO_DATE")
    years = int(found[groups[year]]) + (2000 if year == "yy" else 0)
    name = found[groups[month]].title()
    try:
        return date(years, MONTHS.index(name) + 1 if month == "MMM" else int(name), int(found[groups[day]]))
    except ValueError:
        raise out_of_range(f'there is no day "{text}"', "write a day of the calendar") from None


def written_day(value: date, pattern: str) -> str:
    """A date or timestamp as a text of a pattern; a date begins at midnight."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return "".join(_written(part, moment) for part in parts_of(pattern))


def _written(part: str, moment: datetime) -> str:
    match part:
        case "yyyy":
            return f"{moment.year:04}"
        case "yy":
            return f"{moment.year % 100:02}"
        case "MMM":
            return MONTHS[moment.month - 1]
        case "M" | "d":
            return str(getattr(moment, _PARTS[part]))
        case _ if part in _PARTS or part in _TIMES:
            return f"{getattr(moment, _PARTS.get(part) or _TIMES[part]):02}"
        case _:
            return part
