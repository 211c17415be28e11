"""Which steps of a plan are behind a run, written short: ranges of their positions."""

from collections.abc import Iterable
from dataclasses import dataclass

Range = tuple[int, int]
"""First and last position, both included."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Positions (from 0, in the order of the plan) of the steps that succeeded and that were skipped."""

    succeeded: tuple[Range, ...] = ()
    skipped: tuple[Range, ...] = ()

    def __contains__(self, position: int) -> bool:
        return any(first <= position <= last for first, last in (*self.succeeded, *self.skipped))


def ranges_of(positions: Iterable[int]) -> tuple[Range, ...]:
    """The shortest list of ranges that covers exactly these positions."""
    ranges: list[Range] = []
    for position in sorted(set(positions)):
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return tuple(ranges)


def positions_of(ranges: Iterable[Range]) -> set[int]:
    """All positions that the ranges cover."""
    return {position for first, last in ranges for position in range(first, last + 1)}
