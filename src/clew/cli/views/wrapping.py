"""Lays out any page with Rich, which wraps what does not fit."""

from collections.abc import Sequence
from typing import assert_never

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from clew.cli.views.page_parts import Indented, PagePart, SideBySide, Spread, Stack, Styled

__all__ = ["cell_len", "wrapped"]


def wrapped(parts: Sequence[PagePart], width: int, *, colours: bool) -> str:
    """Parts below each other as text."""
    console = Console(width=width, force_terminal=colours, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(Group(*map(_rendered, parts)))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _rendered(part: PagePart) -> RenderableType:
    match part:
        case str():
            return Text(part)
        case Styled():
            return Text.assemble(*part.pieces, justify=None if part.justify == "left" else part.justify)
        case Stack():
            return Group(*map(_rendered, part.parts))
        case SideBySide():
            return _table(part)
        case Spread():
            return Columns(map(_rendered, part.items), padding=(0, 2), column_first=True)
        case Indented():
            return Padding(_rendered(part.part), (0, 0, 0, 2))
        case _:
            assert_never(part)


def _table(part: SideBySide) -> Table:
    padding = (0, part.gap, 0, 0)
    if part.headings is None:
        table = Table.grid(padding=padding)
        headings: Sequence[str] = [""] * max(map(len, part.rows), default=0)
    else:
        table = Table(box=None, padding=padding, pad_edge=False, header_style="bold")
        headings = part.headings
    for index, heading in enumerate(headings):
        table.add_column(heading, no_wrap=index < part.fixed, overflow="fold")
    for row in part.rows:
        table.add_row(*map(_rendered, row))
    return table
