"""Calls that look at other rows: which functions have a window, and what a checked call with one is."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.text_form import name_text, text_of
from clew.lang.typed import Apply, Expression, columns_of
from clew.lang.types import INTEGER, Type

MOST_ROWS = 1_000_000
"""How far LAG, LEAD and frames reach at most."""

WINDOW_AGGREGATES = ("SUM", "AVG", "COUNT", "COUNT_ALL", "MIN_AGG", "MAX_AGG", "FIRST", "LAST")
"""The aggregates that may have a window."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function that has a meaning in a window only."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    sentence: str
    infer: Callable[[Sequence[Argument]], Signature]
    needs_order: bool
    family: Family = Family.WINDOW
    nulls: NullRule = NullRule.HANDLES
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A checked call with a window. Its rows are those of the step with the same keys, in an order."""

    column: str
    """What it is called as a column: the call as users write it."""
    function: str
    arguments: tuple[Expression, ...]
    type: Type
    keys: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    """Columns, and whether they run down."""
    first: int | None
    last: int | None
    """Where a frame of counted rows begins and ends, from the current one; None where it is unbounded."""
    is_counted: bool
    """Whether rows of the frame are counted; otherwise it ends with those that are equal to the row in the order."""

    def named(self) -> "WindowCall":
        """The same with its text as the name of its column."""
        listed = ", ".join(text_of(argument) for argument in self.arguments)
        return replace(self, column=f"{self.function}({listed}) OVER ({' '.join(self._parts())})")

    def _parts(self) -> list[str]:
        parts = list[str]()
        if self.keys:
            parts.append(f"PARTITION BY {', '.join(map(name_text, self.keys))}")
        if self.order:
            listed = (f"{name_text(name)} desc" if descending else name_text(name) for name, descending in self.order)
            parts.append(f"ORDER BY {', '.join(listed)}")
        if self.is_counted:
            parts.append(f"ROWS BETWEEN {_end(self.first, 'PRECEDING')} AND {_end(self.last, 'FOLLOWING')}")
        return parts

    @property
    def call(self) -> Apply | None:
        """The call as an aggregate over the rows of the frame; None for other functions."""
        is_aggregate = self.function in WINDOW_AGGREGATES
        return Apply(self.function, self.arguments, self.type) if is_aggregate else None

    @property
    def values(self) -> tuple[Expression, ...]:
        """The expressions that it evaluates for each row."""
        return self.arguments[:1] if self.function in {"LAG", "LEAD"} else self.arguments

    @property
    def deciding(self) -> tuple[str, ...]:
        """The columns that decide which rows it looks at."""
        return tuple(dict.fromkeys((*self.keys, *(name for name, _ in self.order))))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that it reads of each row."""
        values = {name for tree in self.values for _, name in columns_of(tree)}
        return tuple(dict.fromkeys((*self.deciding, *sorted(values))))

    @property
    def reach(self) -> tuple[int | None, int | None] | None:
        """The frame, where its rows are counted from the current one."""
        if self.function in {"LAG", "LEAD"}:
            away = _away(self)
            return away, away
        return (self.first, self.last) if self.is_counted else None


def _end(rows: int | None, unbounded: str) -> str:
    if rows is None:
        return f"UNBOUNDED {unbounded}"
    return "CURRENT ROW" if rows == 0 else f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"


def _away(window: WindowCall) -> int:
    rows = getattr(window.arguments[1], "value", 1) if len(window.arguments) > 1 else 1
    return -rows if window.function == "LAG" else rows


def _infer_place(_arguments: Sequence[Argument]) -> Signature:
    return Signature((), INTEGER)


def _infer_neighbour(arguments: Sequence[Argument]) -> Signature:
    value, *rows = arguments
    for index, each in enumerate(rows, start=1):
        is_number = each.is_constant and isinstance(each.constant, int) and not isinstance(each.constant, bool)
        if not is_number or not 0 < each.constant <= MOST_ROWS:  # type: ignore[operator]
            problem = f"the number of rows is a literal whole number from 1 to {MOST_ROWS:,}"
            raise SignatureProblem(problem, index, "write for example LAG(amount, 2) OVER (ORDER BY day)")
    return Signature((value.type, *(INTEGER for _ in rows)), value.type)


_NEIGHBOUR = (
    Parameter("value", "any type"),
    Parameter("rows", "a literal whole number; 1 by default", optional=True),
)

_ALL = (
    WindowFunction(
        "ROW_NUMBER",
        (),
        "integer",
        "The number of the row in its partition, from 1; rows that are equal in the order stand as they were loaded.",
        _infer_place,
        needs_order=False,
    ),
    WindowFunction(
        "RANK",
        (),
        "integer",
        "1 and the number of rows before this one; rows that are equal in the order have the same rank.",
        _infer_place,
        needs_order=True,
    ),
    WindowFunction(
        "DENSE_RANK",
        (),
        "integer",
        "As RANK, but without gaps after rows that are equal in the order.",
        _infer_place,
        needs_order=True,
    ),
    WindowFunction(
        "LAG",
        _NEIGHBOUR,
        "the type of the value",
        "The value of the row that stands so many rows before this one in its partition; NULL if there is none.",
        _infer_neighbour,
        needs_order=True,
    ),
    WindowFunction(
        "LEAD",
        _NEIGHBOUR,
        "the type of the value",
        "The value of the row that stands so many rows after this one in its partition; NULL if there is none.",
        _infer_neighbour,
        needs_order=True,
    ),
)

WINDOW_FUNCTIONS = {function.name: function for function in _ALL}
