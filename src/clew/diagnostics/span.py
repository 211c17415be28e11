"""Places in the files that users write."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of characters in one line of one file.

    `file` is the path relative to the workspace, with forward slashes, so that a message is the same on every
    machine. Lines and columns count from 1, columns in characters.
    """

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
