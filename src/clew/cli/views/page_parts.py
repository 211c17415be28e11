"""What pages on a terminal are made of: texts with their styles, below each other and side by side."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from clew.deferred import dataclass

Justified: TypeAlias = Literal["left", "right"]


class Styled:
    """A text, parts of which may have a style."""

    __slots__ = ("justify", "pieces")

    def __init__(self, text: str = "", style: str = "", *, justify: Justified = "left") -> None:
        self.pieces: tuple[tuple[str, str], ...] = ((text, style),)
        self.justify = justify

    @classmethod
    def assemble(cls, *parts: "Styled | str | tuple[str, str]") -> "Styled":
        """Texts one after the other, each in its style."""
        made = cls()
        made.pieces = tuple(piece for part in parts for piece in _pieces(part))
        return made

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.pieces)

    def __str__(self) -> str:
        return self.plain


def _pieces(part: "Styled | str | tuple[str, str]") -> Iterator[tuple[str, str]]:
    match part:
        case Styled():
            yield from part.pieces
        case str():
            yield part, ""
        case _:
            yield part


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts below each other."""

    parts: Sequence["PagePart"]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Rows of cells, with or without headings."""

    headings: Sequence[str] | None
    rows: Sequence[Sequence["PagePart"]]
    fixed: int
    """How many columns, from the left, are never wrapped."""
    gap: int
    """The space between columns."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Short items side by side, as many as fit, ordered down the columns."""

    items: Sequence["PagePart"]


@dataclass(frozen=True, slots=True)
class Indented:
    """A part two places to the right."""

    part: "PagePart"


PagePart: TypeAlias = Styled | str | Stack | SideBySide | Spread | Indented
