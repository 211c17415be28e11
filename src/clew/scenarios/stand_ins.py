"""Values that stand in for personal ones: as long, of the same form, equal where those are equal, in the same order.

They are drawn at random for each scenario, so that nothing leads back from them. Letters stay letters, digits stay
digits, and other signs stay what they are; order is kept among values of one form.
"""

import calendar
import string
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from random import Random, SystemRandom
from typing import Any

from clew.lang.typed import Value

_TRIES = 200
"""After as many draws, a form has too few other values to choose from."""
_YEARS = 10


def stand_ins(values: Iterable[Value], random: Random | None = None) -> Callable[[Value], Value]:
    """A function from each of these values to its stand-in. NULL stays NULL."""
    drawn = random or SystemRandom()
    found = dict[tuple[type, Value], Value]()
    distinct = {(type(value), value) for value in values if value is not None and value == value}  # noqa: PLR0124
    forms = sorted(((_form(value), value) for _, value in distinct), key=lambda each: repr(each[0]))
    for form, members in groupby(forms, key=lambda each: each[0]):
        ordered: list[Any] = sorted(value for _, value in members)
        for value, other in zip(ordered, _others(form, ordered, drawn), strict=True):
            found[type(value), value] = other
    return lambda value: found.get((type(value), value))


def _form(value: Value) -> tuple[object, ...]:
    """What a value and its stand-in have in common."""
    match value:
        case bool():
            return ("boolean",)
        case str():
            return ("text", *map(_kind, value))
        case int():
            return ("whole", value < 0, len(str(abs(value))))
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            return ("decimal", sign, len(digits), exponent)
        case float():
            return ("double", value < 0, len(str(int(abs(value)))) if abs(value) < 1e300 else 0)
        case datetime():
            return ("moment", value.year // _YEARS)
        case date():
            return ("day", value.year // _YEARS)
        case _:
            return (type(value).__name__,)


def _kind(letter: str) -> str:
    if letter.isdecimal():
        return "0"
    if letter.isalpha():
        return "A" if letter.isupper() else "a"
    return letter if letter.isascii() and letter.isprintable() else "?"


def _others(form: tuple[object, ...], values: list[Any], random: Random) -> list[Any]:
    """As many other values of a form, in order. Where the form has too few others, these values in any order."""
    avoided, found = set(values), set[Any]()
    for _ in range(_TRIES * len(values)):
        drawn = _drawn(form, random)
        if drawn not in avoided:
            found.add(drawn)
        if len(found) == len(values):
            return sorted(found)
    return random.sample(values, len(values))


_DRAWN: Mapping[str, str] = {
    "0": string.digits,
    "A": string.ascii_uppercase,
    "a": string.ascii_lowercase,
    "?": string.ascii_letters,
}


def _drawn(form: tuple[object, ...], random: Random) -> Value:
    match form:
        case ("boolean",):
            return random.random() < 0.5
        case ("text", *kinds):
            return "".join(random.choice(_DRAWN.get(str(kind), str(kind))) for kind in kinds)
        case ("whole", bool(negative), int(digits)):
            number = _number(digits, random)
            return -number if negative else number
        case ("decimal", int(sign), int(digits), int(exponent)):
            number = _number(digits, random)
            return Decimal((sign, tuple(map(int, str(number))), exponent))
        case ("double", bool(negative), int(digits)):
            double = round(random.random() * 10.0**digits, 2)
            return -double if negative else double
        case ("moment", int(decade)):
            return datetime.combine(_day(decade, random), datetime.min.time()) + timedelta(
                seconds=random.randrange(86_400)
            )
        case ("day", int(decade)):
            return _day(decade, random)
        case _:
            return None


def _number(digits: int, random: Random) -> int:
    return random.randrange(0 if digits == 1 else 10 ** (digits - 1), 10**digits)


def _day(decade: int, random: Random) -> date:
    year, month = max(1, decade * _YEARS + random.randrange(_YEARS)), random.randint(1, 12)
    return date(year, month, random.randint(1, calendar.monthrange(year, month)[1]))
