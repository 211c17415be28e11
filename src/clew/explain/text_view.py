"""Explanations as text for a terminal."""

from collections.abc import Iterator

from clew.explain.outline import Item, outline, why_not_outline
from clew.explain.tree import Explanation
from clew.explain.why_not import WhyNot


def as_text(answer: Explanation | WhyNot) -> str:
    """An answer as lines of text with a tree in front of them."""
    item = outline(answer) if isinstance(answer, Explanation) else why_not_outline(answer)
    return "\n".join(_lines(item)) + "\n"


def _lines(item: Item, first: str = "", rest: str = "") -> Iterator[str]:
    yield first + _printable(item.text)
    for child in item.children:
        is_last = child is item.children[-1]
        yield from _lines(child, rest + ("'- " if is_last else "|- "), rest + ("   " if is_last else "|  "))


def _printable(text: str) -> str:
    """On one line, without characters that would do something to a terminal."""
    return "".join(ch if ch.isprintable() else "�" for ch in " ".join(text.split("\n")))
