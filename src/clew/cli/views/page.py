"""Laying out text for terminals and pipes."""

# ruff: noqa: PLC0415 - Rich takes longer to import than most pages take to be made, and is needed only to wrap lines

import os
import shutil
import sys
from collections.abc import Iterable

from clew.cli.output import has_colours, write
from clew.cli.views.fitting import fitted, is_plain_width
from clew.cli.views.page_parts import PagePart, SideBySide, Spread, Stack, Styled

_WIDTH_OF_PIPES = 120
"""The width where the output is not a terminal."""

_WIDTH_OF_LABELS = 7


def show(*parts: PagePart) -> None:
    """Print parts below each other."""
    write(as_text(*parts))


def as_text(*parts: PagePart) -> str:
    """Parts below each other, in the colours and width that standard output supports."""
    room, colours = width(), has_colours(sys.stdout)
    text = None if colours and _has_colours_of_its_own() else fitted(parts, room, colours=colours)
    if text is not None:
        return text
    from clew.cli.views.wrapping import wrapped

    return wrapped(parts, room, colours=colours)


def _has_colours_of_its_own() -> bool:
    """Whether Rich has to find out which colours the terminal has, if any."""
    return sys.platform == "win32" or os.environ.get("TERM", "").lower() in {"dumb", "unknown"}


def width() -> int:
    """The width of standard output."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit():
        return int(given)
    if not sys.stdout.isatty() and not given:
        return _WIDTH_OF_PIPES
    return shutil.get_terminal_size().columns


def width_of(text: str) -> int:
    """How many places a line takes."""
    if is_plain_width(text):
        return len(text)
    from clew.cli.views.wrapping import cell_len

    return cell_len(text)


def grid(rows: Iterable[Iterable[PagePart]], *, fixed: int = 1, gap: int = 2) -> SideBySide:
    """Columns side by side without lines between them. The first `fixed` columns are never wrapped."""
    return SideBySide(None, [list(row) for row in rows], fixed, gap)


def headed(headings: Iterable[str], rows: Iterable[Iterable[PagePart]], *, fixed: int = 1) -> SideBySide:
    """Columns under headings."""
    return SideBySide(list(headings), [list(row) for row in rows], fixed, gap=2)


def plain(text: object, style: str = "") -> Styled:
    """Text from users, on one line and without control characters."""
    line = " ".join(part.strip() for part in str(text).splitlines())
    return Styled("".join(ch if ch.isprintable() else "�" for ch in line), style)


def stacked(*parts: PagePart) -> Stack:
    """Parts below each other, as one part."""
    return Stack(parts)


def spread(items: Iterable[PagePart]) -> Spread:
    """Short items side by side, as many as fit, ordered down the columns."""
    return Spread(list(items))


def label(text: str) -> Styled:
    """The word before a value, padded so that the values line up."""
    return Styled(f"{text:<{_WIDTH_OF_LABELS}}", "cyan")


def heading(text: str) -> Styled:
    """The line above a section of the page."""
    return Styled(text, "bold")
