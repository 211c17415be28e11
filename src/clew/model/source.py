"""The text of one definition file, and the line and column of any character in it."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from clew.diagnostics import Span

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line for the YAML parser, so that its lines and ours are the same."""


@dataclass(frozen=True)
class Source:
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
