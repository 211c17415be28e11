"""Text whose characters know their place, so that a caret can stand under a part of an expression."""

from dataclasses import dataclass
from typing import Protocol

from clew.diagnostics.span import Span


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
        line = self.value.count("\n", 0, start) + 1
        line_start = self.value.rfind("\n", 0, start) + 1
        return Span(self.name, line, start - line_start + 1, max(1, end - start))
