"""Columns by which rows are put in order."""

from clew.deferred import dataclass


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column by which rows are put in order. NULL comes first, or last where the order is descending."""

    column: str
    descending: bool = False

    @property
    def text(self) -> str:
        """The key as users write it."""
        return f"{self.column} desc" if self.descending else self.column
