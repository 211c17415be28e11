"""The nodes that a file is read into before its meaning is known: scalars, lists and mappings, with their places."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from clew.deferred import dataclass
from clew.diagnostics import Span

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line for the YAML parser, so that its lines and ours are the same."""


@dataclass(frozen=True)
class SourceText:
    """A file as read. Data that was built in Python has the text "", so that all of its places are line 1, column 1."""

    file: str
    text: str

    def span(self, start: int, end: int) -> Span:
        """The place of `text[start:end]`, up to the end of the line that it begins in."""
        row = bisect_right(self._line_starts, start) - 1
        line_start = self._line_starts[row]
        line_break = LINE_BREAK.search(self.text, start, end)
        line_end = line_break.start() if line_break else end
        return Span(self.file, row + 1, start - line_start + 1, max(1, line_end - start))

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in LINE_BREAK.finditer(self.text))]


MOST_PROBLEMS = 200
"""Beyond this number of mistakes in one list or mapping, no more are reported."""


@dataclass(slots=True, eq=False)
class ScalarNode:
    """A single value as text; what it means is decided where it is read."""

    source: SourceText
    start: int
    end: int
    text: str
    """The value with the quoting of the file undone."""
    style: str
    """How it is written: "" plain, or one of ' " | >."""

    @property
    def is_plain(self) -> bool:
        """Whether it is written without quotes, so that it may be a number, a date, true, false or null."""
        return not self.style

    @property
    def span(self) -> Span:
        """Its place."""
        return self.source.span(self.start, self.end)


@dataclass(slots=True, eq=False)
class ListNode:
    """A list."""

    source: SourceText
    start: int
    end: int
    items: list["Node"] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """The brackets, or the dash of the first item."""
        return self.source.span(self.start, self.end)


class Entry(NamedTuple):
    """A key of a mapping with its value."""

    key: ScalarNode
    value: "Node"


@dataclass(slots=True, eq=False)
class MapNode:
    """A mapping. Its keys are text whatever they look like."""

    source: SourceText
    start: int
    end: int
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """The braces, or the first key."""
        return self.source.span(self.start, self.end)


Node: TypeAlias = ScalarNode | ListNode | MapNode

NOWHERE = MapNode(SourceText("<built>", ""), 0, 0)
"""The place of a value that no file has."""


def node_at(node: Node, path: Sequence[str | int]) -> Node:
    """The value below a node by keys and positions, or the last one on the way that exists."""
    for step in path:
        if isinstance(node, MapNode) and isinstance(step, str) and step in node.entries:
            node = node.entries[step].value
        elif isinstance(node, ListNode) and isinstance(step, int) and 0 <= step < len(node.items):
            node = node.items[step]
        else:
            break
    return node


def key_at(node: Node, path: Sequence[str | int]) -> Node:
    """The key that the last step of a path names, or what `node_at` gives where it is not a key."""
    holder = node_at(node, path[:-1])
    if isinstance(holder, MapNode) and path and path[-1] in holder.entries:
        return holder.entries[str(path[-1])].key
    return node_at(node, path)
