"""Laying out text for terminals and pipes."""

import os
import sys
from collections.abc import Iterable

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from clew.cli.output import has_colours, write

_WIDTH_OF_PIPES = 120
"""The width where the output is not a terminal."""

_WIDTH_OF_LABELS = 7


def show(*parts: RenderableType) -> None:
    """Print parts below each other."""
    write(as_text(*parts))


def as_text(*parts: RenderableType) -> str:
    """Parts below each other, in the colours and width that standard output supports."""
    console = _console()
    with console.capture() as capture:
        console.print(Group(*parts))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def width() -> int:
    """The width of standard output."""
    return _console().width


def _console() -> Console:
    is_measured = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(
        width=None if is_measured else _WIDTH_OF_PIPES,
        force_terminal=has_colours(sys.stdout),
        highlight=False,
        markup=False,
        emoji=False,
    )


def grid(rows: Iterable[Iterable[RenderableType]], *, fixed: int = 1, gap: int = 2) -> Table:
    """Columns side by side without lines between them. The first `fixed` columns are never wrapped."""
    cells = [list(row) for row in rows]
    table = Table.grid(padding=(0, gap, 0, 0))
    for index in range(max(map(len, cells), default=0)):
        table.add_column(no_wrap=index < fixed, overflow="fold")
    for row in cells:
        table.add_row(*row)
    return table


def headed(headings: Iterable[str], rows: Iterable[Iterable[RenderableType]], *, fixed: int = 1) -> Table:
    """Columns under headings."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, no_wrap=index < fixed, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def plain(text: object, style: str = "") -> Text:
    """Text from users, on one line and without control characters."""
    line = " ".join(part.strip() for part in str(text).splitlines())
    return Text("".join(ch if ch.isprintable() else "�" for ch in line), style=style)


def spread(items: Iterable[RenderableType]) -> Columns:
    """Short items side by side, as many as fit, ordered down the columns."""
    return Columns(items, padding=(0, 2), column_first=True)


def label(text: str) -> Text:
    """The word before a value, padded so that the values line up."""
    return Text(f"{text:<{_WIDTH_OF_LABELS}}", style="cyan")


def heading(text: str) -> Text:
    """The line above a section of the page."""
    return Text(text, style="bold")
