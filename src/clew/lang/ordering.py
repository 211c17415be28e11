"""The order of values, and when two of them are the same for a group: one rule for Spark, Python and DuckDB.

NULL comes before everything, NaN after all other numbers, texts go by their code points. A descending order is the
exact reverse. Groups take NULL for a value, NaN for one value, and both zeros for the same.
"""

from typing import Any

from clew.lang import doubles
from clew.lang.typed import Value


def place_of(value: Value) -> tuple[bool, Any]:
    """What to compare instead of a value, ascending."""
    if value is None:
        return False, 0
    return True, doubles.order(value) if isinstance(value, float) else value


class Descending:
    """A place in an order that runs the other way."""

    __slots__ = ("place",)

    def __init__(self, place: tuple[bool, Any]) -> None:
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.place == other.place

    def __lt__(self, other: "Descending") -> bool:
        return other.place < self.place

    __hash__ = None  # type: ignore[assignment]


def member_of(value: Value) -> Value:
    """What stands for a value in the key of a group."""
    if isinstance(value, float):
        return "not a number" if value != value else value + 0  # noqa: PLR0124 - only NaN differs from itself
    return value
