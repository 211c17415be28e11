"""The syntax tree: what was written, before any name or type is known.

Operators are calls of functions with operator names, so that checking and evaluation have only one kind of application:
`a + b` is `Call("+", (a, b))`, `a AND b AND c` is `Call("AND", (a, b, c))`, `x IS NOT NULL` is `NOT(ISNULL(x))`.
"""

from collections.abc import Iterator
from dataclasses import field
from decimal import Decimal
from typing import Literal as Literal_

from clew.deferred import dataclass
from clew.diagnostics import Span, Text


@dataclass(frozen=True, slots=True)
class Region:
    """The characters of a text that a node was read from."""

    text: Text
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The place in the file, computed only on request."""
        return self.text.span(self.start, self.end)

    @property
    def source(self) -> str:
        """What stands there."""
        return self.text.value[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, TRUE, FALSE or NULL."""

    value: int | Decimal | str | bool | None
    region: Region = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, with or without the table or alias in front."""

    table: str | None
    column: str
    region: Region = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectorReference:
    """`{{NAME}}`: stands for a named selector of the project."""

    name: str
    region: Region = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the rows of a frame begin or end."""

    rows: "Literal | None"
    """How many rows away from the current one; None for as many as there are."""
    direction: Literal_["PRECEDING", "CURRENT", "FOLLOWING"]


@dataclass(frozen=True, slots=True)
class OrderedBy:
    """A column that puts the rows of a window in order."""

    column: "Reference"
    descending: bool


@dataclass(frozen=True, slots=True)
class Over:
    """The window of a call: which rows it looks at."""

    partition_by: tuple["Reference", ...]
    order_by: tuple[OrderedBy, ...]
    frame: tuple[Bound, Bound] | None
    region: Region = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator applied to arguments. Names are in upper case."""

    name: str
    arguments: tuple["Node", ...]
    region: Region = field(compare=False, repr=False)
    head: Region = field(compare=False, repr=False)
    """Where the name or the operator itself is."""
    over: Over | None = None
    """The window that the function looks at, where it has one."""


Node = Literal | Reference | SelectorReference | Call

MAX_DEPTH = 200
"""Levels of a tree. All its readers are recursive, and Python allows them about a thousand calls within each other."""


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Call):
            pending.extend(reversed(current.arguments))


def first_too_deep(node: Node) -> Node | None:
    """The first node that lies below the deepest level allowed, or None if there is none."""
    pending = [(node, 1)]
    while pending:
        current, depth = pending.pop()
        if depth > MAX_DEPTH:
            return current
        if isinstance(current, Call):
            pending.extend((argument, depth + 1) for argument in reversed(current.arguments))
    return None
