"""Explanations as text for a terminal."""

import unicodedata
from collections.abc import Iterator

from clew.explain.outline import Item, outline, why_not_outline
from clew.explain.tree import Explanation
from clew.explain.why_not import WhyNot

_LEAST_ROOM = 30
"""How many columns a line has at least, however deep in the tree it stands."""

_INDENT = 4
"""By how much the rest of a line that was too long stands behind its begin."""


def as_text(answer: Explanation | WhyNot, width: int | None = None) -> str:
    """An answer as lines of text with a tree in front of them, wrapped where a width is given."""
    item = outline(answer) if isinstance(answer, Explanation) else why_not_outline(answer)
    return "\n".join(_lines(item, width)) + "\n"


def _lines(item: Item, width: int | None, first: str = "", rest: str = "") -> Iterator[str]:
    text = _printable(item.text)
    room = None if width is None else max(width - len(rest) - _INDENT, _LEAST_ROOM)
    begin, *others = [text] if room is None else _wrapped(text, room)
    yield first + begin
    for other in others:
        yield rest + ("|" if item.children else "").ljust(_INDENT) + other
    for child in item.children:
        is_last = child is item.children[-1]
        yield from _lines(child, width, rest + ("'- " if is_last else "|- "), rest + ("   " if is_last else "|  "))


def _wrapped(text: str, room: int) -> Iterator[str]:
    """A text in lines that are not wider than some columns, broken at spaces where it has any."""
    line, used = list[str](), 0
    for word in text.split(" "):
        taken = _columns(word) + (1 if line else 0)
        if line and used + taken > room:
            yield " ".join(line)
            line, used, taken = [], 0, _columns(word)
        line.append(word)
        used += taken
    yield " ".join(line)


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(ch) in "WF" for ch in text)
    return len(text) + wide - sum(unicodedata.combining(ch) > 0 for ch in text)


def _printable(text: str) -> str:
    """On one line, without characters that would do something to a terminal."""
    return "".join(ch if ch.isprintable() else "�" for ch in " ".join(text.split("\n")))
