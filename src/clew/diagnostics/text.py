"""Text whose characters know their place, so that a caret can stand under a part of an expression."""

import re
from dataclasses import dataclass
from typing import Protocol

from clew.diagnostics.span import Span

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line wherever Clew counts lines: the breaks of YAML, so that its parser and we agree on every number."""


class Text(Protocol):
    """A piece of text from somewhere. Offsets count characters of `value`."""

    @property
    def value(self) -> str:
        """The text as its reader sees it, with the quoting of the file undone."""
        ...

    def span(self, start: int, end: int) -> Span:
        """The place in the file of `value[start:end]`."""
        ...


@dataclass(frozen=True, slots=True)
class PlainText:
    """Text that was not read from a file: typed on the command line or passed to a function."""

    value: str
    name: str = "<expression>"

    def span(self, start: int, end: int) -> Span:
        """The place within the text itself."""
        breaks = [match.end() for match in LINE_BREAK.finditer(self.value, 0, start)]
        line_start = breaks[-1] if breaks else 0
        return Span(self.name, len(breaks) + 1, start - line_start + 1, max(1, end - start))
