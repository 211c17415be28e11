"""By what rows are sorted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """By the values of a column. NULL comes last either way; rows with the same value stay in their own order."""

    column: str
    descending: bool = False
