"""The lines of a file that define one operation, to be shown beside what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.diagnostics import Span
from clew.diagnostics.text import LINE_BREAK

_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file with their numbers."""

    file: str
    lines: tuple[tuple[int, str], ...]
    marked: int | None
    """The number of the line that matters most."""


def operation_excerpt(source: str, place: Span) -> Excerpt | None:
    """The item of a YAML list that a place is in; None where the file has no such line any more."""
    lines = LINE_BREAK.split(source)
    if not 1 <= place.line <= len(lines):
        return None
    first = _first_line(lines, place.line - 1)
    inside = _indentation(lines[first])
    last = first
    for number in range(first + 1, min(len(lines), first + _MOST_LINES)):
        text = lines[number]
        if text.strip() and _indentation(text) <= inside:
            break
        if text.strip():
            last = number
    shown = lines[first : last + 1]
    margin = min((_indentation(text) for text in shown if text.strip()), default=0)
    numbered = tuple((first + 1 + offset, text[margin:]) for offset, text in enumerate(shown))
    return Excerpt(place.file, numbered, place.line if place.line != first + 1 else None)


def _first_line(lines: Sequence[str], index: int) -> int:
    """The line with the dash of the item."""
    own = _indentation(lines[index])
    for number in range(index, -1, -1):
        text = lines[number]
        if text.lstrip().startswith("- ") and (number == index or _indentation(text) < own):
            return number
    return index


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
