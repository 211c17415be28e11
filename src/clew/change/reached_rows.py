"""What differs from a run at a point: rows as they are and as they would be, and what they add up to."""

from collections.abc import Mapping

from clew.change.comparing import CompareQuestion
from clew.change.comparison import Amount
from clew.change.points import Point
from clew.change.recomputing import Cells
from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.trace.records import RowValues


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """A row that a supposition reaches."""

    ordinal: int
    """Negative for one that the run does not have."""
    old: RowValues | None
    """None if the row does not count at the point."""
    new: Cells | None

    @property
    def is_on_both_sides(self) -> bool:
        """Whether it counts before and after."""
        return self.old is not None and self.new is not None

    def differs(self, name: str) -> bool:
        """Whether a column has another value; for a row that counts on both sides."""
        assert self.old is not None and self.new is not None  # noqa: S101, PT018 - asked only then
        return are_different(self.old.get(name), self.new.get(name))


def are_different(old: Value, new: Value) -> bool:
    """Whether two values differ; a NaN is the same as another."""
    both_nan = old != old and new != new  # noqa: PLR0124 - only NaN differs from itself
    return old != new and not both_nan


@dataclass(frozen=True, slots=True)
class SupposedPoint:
    """The same point of a run and of what is supposed in its place."""

    old: Point
    new: Point
    types: Mapping[str, Type]
    """The columns of the supposed rows."""


@dataclass(frozen=True, slots=True)
class DifferencesAsked:
    """What is to be told about the rows that differ."""

    at: SupposedPoint
    columns: tuple[str, ...]
    """The columns that count."""
    summed: tuple[str, ...]
    """The columns that are added up."""
    question: CompareQuestion


@dataclass(frozen=True, slots=True)
class Differences:
    """How many rows differ at a point, what that does to totals, and a page of them."""

    changed: int
    gone: int
    new: int
    evaluated: int
    by_column: Mapping[str, int]
    """How many rows that count on both sides differ in each column."""
    moved: Mapping[str, Amount]
    """By how much the totals of columns move."""
    rows: tuple[ReachedRow, ...]
    has_more: bool
