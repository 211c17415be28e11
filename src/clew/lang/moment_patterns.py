"""Patterns in which files write dates and timestamps, such as dd.MM.yyyy and yyyy-MM-dd'T'HH:mm:ss.

The words are those of `day_patterns`, with H for an hour of one or two digits, S for each digit of a fraction of a
second, and letters between single quotes that stand for themselves. A pattern is taken apart once; Spark and Python
then read texts by the same list of parts.
"""

import re
from datetime import date, datetime
from functools import lru_cache

from clew.deferred import dataclass
from clew.lang.day_patterns import MONTHS

_ANY_MONTH = "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in month) for month in MONTHS)
_WORD = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']")
_MEANINGS = {
    "yyyy": ("year", "[0-9]{4}", 4),
    "yy": ("year", "[0-9]{2}", 2),
    "MMM": ("month", _ANY_MONTH, None),
    "MM": ("month", "[0-9]{2}", 2),
    "M": ("month", "[0-9]{1,2}", None),
    "dd": ("day", "[0-9]{2}", 2),
    "d": ("day", "[0-9]{1,2}", None),
    "HH": ("hour", "[0-9]{2}", 2),
    "H": ("hour", "[0-9]{1,2}", None),
    "mm": ("minute", "[0-9]{2}", 2),
    "ss": ("second", "[0-9]{2}", 2),
}
_LONGEST_FRACTION = 6
_DAY = ("year", "month", "day")
_TIME = ("hour", "minute", "second", "fraction")
HINT = "write for example dd.MM.yyyy or yyyy-MM-dd HH:mm:ss"


class MomentPatternProblem(ValueError):
    """Why a pattern is not taken."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A stretch of a pattern: what it means, or text that stands for itself."""

    word: str
    meaning: str | None
    """year, month, day, hour, minute, second or fraction; None for text."""
    regex: str
    width: int | None
    """How many characters it takes; None where that varies."""


@dataclass(frozen=True, slots=True)
class MomentPattern:
    """A pattern taken apart."""

    text: str
    parts: tuple[PatternPart, ...]

    @property
    def regex(self) -> str:
        """A regular expression for whole texts, in the words that Java and Python share. Meanings are groups."""
        return "".join(f"({part.regex})" if part.meaning else part.regex for part in self.parts)

    @property
    def groups(self) -> dict[str, int]:
        """The number of the group of each meaning."""
        found = [part.meaning for part in self.parts if part.meaning]
        return {meaning: number for number, meaning in enumerate(found, start=1)}

    @property
    def words(self) -> dict[str, str]:
        """The word of each meaning."""
        return {part.meaning: part.word for part in self.parts if part.meaning}

    @property
    def has_time(self) -> bool:
        """Whether it says more than a day."""
        return any(part.meaning in _TIME for part in self.parts)

    @property
    def shape(self) -> str | None:
        """A text of the pattern with 0 for every digit, where all parts have a width; else None."""
        if any(part.width is None or (not part.meaning and re.search("[0-9]", part.word)) for part in self.parts):
            return None
        return "".join("0" * (part.width or 0) if part.meaning else part.word for part in self.parts)

    @property
    def starts(self) -> dict[str, tuple[int, int]]:
        """First position, counted from 1, and width of each meaning, where there is a shape."""
        found, position = dict[str, tuple[int, int]](), 1
        for part in self.parts:
            width = part.width or 0
            if part.meaning:
                found[part.meaning] = position, width
            position += width
        return found


@lru_cache(maxsize=256)
def moment_pattern(text: str) -> MomentPattern:
    """Take a pattern apart. MomentPatternProblem says why it cannot be."""
    parts, position = list[PatternPart](), 0
    for found in _WORD.finditer(text):
        if found.start() != position:
            raise MomentPatternProblem(f'"{text}" has a quote that is not closed')
        position = found.end()
        parts.append(_part(found))
    if position != len(text):
        raise MomentPatternProblem(f'"{text}" has a quote that is not closed')
    meanings = [part.meaning for part in parts if part.meaning]
    if len(set(meanings)) < len(meanings) or not set(_DAY) <= set(meanings):
        raise MomentPatternProblem(f'"{text}" has to have one year, one month and one day')
    given = [meaning in meanings for meaning in _TIME]
    if given != sorted(given, reverse=True):
        raise MomentPatternProblem(f'"{text}" has minutes without hours, or seconds without minutes')
    return MomentPattern(text, tuple(parts))


def _part(found: re.Match[str]) -> PatternPart:
    word = found[0]
    if found[2] is None:
        literal = word if found[1] is None else found[1] or "'"
        return PatternPart(literal, None, "".join(map(_literal, literal)), len(literal))
    if word in _MEANINGS:
        return PatternPart(word, *_MEANINGS[word])
    if set(word) == {"S"} and len(word) <= _LONGEST_FRACTION:
        return PatternPart(word, "fraction", f"[0-9]{{{len(word)}}}", len(word))
    raise MomentPatternProblem(f'"{word}" in a pattern of dates means nothing')


def _literal(character: str) -> str:
    return "\\" + character if character.isascii() and not character.isalnum() and character > " " else character


def read_moment(text: str, pattern: MomentPattern) -> datetime | None:
    """The moment that a text of a pattern is, at midnight where it has no time; None where it is none."""
    found = re.fullmatch(pattern.regex, text)
    if found is None:
        return None
    given = {meaning: found[number] for meaning, number in pattern.groups.items()}
    words = pattern.words
    year = int(given["year"]) + (2000 if words["year"] == "yy" else 0)
    month = MONTHS.index(given["month"].title()) + 1 if words["month"] == "MMM" else int(given["month"])
    micros = int(given.get("fraction", "0").ljust(_LONGEST_FRACTION, "0"))
    hour, minute, second = (int(given.get(name, "0")) for name in _TIME[:3])
    try:
        return datetime(year, month, int(given["day"]), hour, minute, second, micros)  # noqa: DTZ001
    except ValueError:
        return None


def written_moment(value: date, pattern: MomentPattern) -> str:
    """A date or timestamp as a text of a pattern; a date begins at midnight."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return "".join(_written(part, moment) for part in pattern.parts)


def _written(part: PatternPart, moment: datetime) -> str:
    if part.meaning is None:
        return part.word
    if part.meaning == "fraction":
        return f"{moment.microsecond:06}"[: len(part.word)]
    if part.word == "MMM":
        return MONTHS[moment.month - 1]
    number = getattr(moment, part.meaning) % (100 if part.word == "yy" else 10_000)
    return f"{number:0{len(part.word)}}"
