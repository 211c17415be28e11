"""Which row of several with the same keys stays: the rule of a delete with `keep`, for everyone who follows it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from clew.deferred import dataclass
from clew.lang.ordering import Descending, member_of, place_of
from clew.lang.typed import Value
from clew.plan.sort_keys import SortKey

Cells = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Keeping:
    """Of the selected rows with the same values in some columns, the first or the last in an order stays.

    Rows that are equal in the order stand in that of their ordinals: as they were loaded, then as they were created.
    """

    which: Literal["first", "last"]
    keys: tuple[str, ...]
    order: tuple[SortKey, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""
        return tuple(dict.fromkeys((*self.keys, *(key.column for key in self.order))))

    @property
    def text(self) -> str:
        """The rule in words."""
        order = ", ".join(key.text for key in self.order) or "the order of the rows"
        return f"the {self.which} row by {order} stays of those with the same {', '.join(self.keys)}"

    def group_of(self, cells: Cells) -> tuple[Value, ...]:
        """The values that rows must share to be the same."""
        return tuple(member_of(cells[name]) for name in self.keys)

    def place_of(self, cells: Cells, ordinal: int) -> tuple[Any, ...]:
        """What is least for the row that stays."""
        is_first = self.which == "first"
        places = [(place_of(cells[key.column]), key.descending is is_first) for key in self.order]
        own = ordinal if is_first else -ordinal
        return (*(Descending(place) if is_reversed else place for place, is_reversed in places), own)


def staying(keeping: Keeping, rows: Iterable[tuple[int, Cells]]) -> "Callable[[Cells], int]":
    """A function from a row to the ordinal of the one that stays in its group. `rows` are those that were selected."""
    best = dict[tuple[Value, ...], tuple[tuple[Any, ...], int]]()
    for ordinal, cells in rows:
        group, place = keeping.group_of(cells), keeping.place_of(cells, ordinal)
        if group not in best or place < best[group][0]:
            best[group] = place, ordinal
    return lambda cells: best[keeping.group_of(cells)][1]
