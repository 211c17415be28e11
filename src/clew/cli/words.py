"""Small words around numbers and lists."""

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 project, 2 projects."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def enumerated(items: Iterable[object]) -> str:
    """Items with commas between them."""
    return ", ".join(str(item) for item in items)
