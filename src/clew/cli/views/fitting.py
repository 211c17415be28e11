"""Lays out pages of which every line fits. What has to be wrapped is left to Rich, which takes long to import."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeAlias

from clew.cli.views.page_parts import Indented, PagePart, SideBySide, Spread, Stack, Styled
from clew.deferred import dataclass

_FIRST_OF_UNKNOWN_WIDTH = "\u0300"
_AS_WIDE_AS_A_LETTER = frozenset("–—‘’“”…→✓✗�▁▂▃▄▅▆▇█")
"""Beyond the letters of Western languages, which all have the same width."""
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}

_Pieces: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    pieces: _Pieces
    is_right: bool = False
    """Whether it stands at the right of its cell."""

    @property
    def width(self) -> int:
        return sum(len(text) for text, _ in self.pieces)


class _DoesNotFit(Exception):
    pass


def is_plain_width(text: str) -> bool:
    """Whether each character of a line certainly takes one place."""
    return text.isprintable() and (
        text.isascii() or all(each < _FIRST_OF_UNKNOWN_WIDTH or each in _AS_WIDE_AS_A_LETTER for each in text)
    )


def fitted(parts: Sequence[PagePart], width: int, *, colours: bool) -> str | None:
    """Parts below each other as text. None if something would have to be wrapped, or is of unknown width."""
    try:
        lines = _laid_out(Stack(parts))
    except _DoesNotFit:
        return None
    if any(line.is_right or line.width > width for line in lines):
        return None
    write = _coloured if colours else _uncoloured
    return "".join(f"{write(line.pieces)}\n" for line in lines)


def _laid_out(part: PagePart) -> list[_Line]:
    match part:
        case str():
            return _lines_of(Styled(part))
        case Styled():
            return _lines_of(part)
        case Stack():
            return [line for each in part.parts for line in _laid_out(each)]
        case SideBySide():
            return _side_by_side(part)
        case Indented():
            lines = _laid_out(part.part)
            if any(line.is_right for line in lines):
                raise _DoesNotFit
            return [_Line((("  ", ""), *line.pieces)) for line in lines]
        case Spread():
            raise _DoesNotFit


def _lines_of(text: Styled) -> list[_Line]:
    lines: list[list[tuple[str, str]]] = [[]]
    for written, style in text.pieces:
        if not set(style.split()) <= _CODES.keys():
            raise _DoesNotFit
        first, *others = written.split("\n")
        lines[-1].append((first, style))
        lines += [[(other, style)] for other in others]
    whole = ["".join(piece for piece, _ in line) for line in lines]
    is_right = text.justify == "right"
    if not all(map(is_plain_width, whole)) or (len(lines) > 1 and not whole[-1]):
        raise _DoesNotFit
    if is_right and any(line != line.rstrip() for line in whole):
        raise _DoesNotFit
    return [_Line(tuple(line), is_right) for line in lines]


def _side_by_side(table: SideBySide) -> list[_Line]:
    rows: list[list[list[_Line]]] = [[_laid_out(cell) for cell in row] for row in table.rows]
    if table.headings is not None:
        rows.insert(0, [_laid_out(Styled(heading, "bold")) for heading in table.headings])
    count = max(map(len, rows), default=0)
    if not count or (table.headings is not None and count > len(table.headings)):
        raise _DoesNotFit
    if not all(cell for row in rows for cell in row):
        raise _DoesNotFit
    rows = [[*row, *[[_Line(())]] * (count - len(row))] for row in rows]
    widths = [max(line.width for row in rows for line in row[number]) for number in range(count)]
    widths[-1] = widths[-1] or 1  # as Rich has it: a column has at least one place, be it that between columns
    return [line for row in rows for line in _row(row, widths, table.gap)]


def _row(row: Sequence[list[_Line]], widths: Sequence[int], gap: int) -> Iterable[_Line]:
    for lines in zip_longest(*row, fillvalue=_Line(())):
        pieces = list[tuple[str, str]]()
        for line, width in zip(lines, widths, strict=True):
            space = (" " * (width - line.width), "")
            pieces += [space, *line.pieces] if line.is_right else [*line.pieces, space]
            pieces.append((" " * gap, ""))
        yield _Line(tuple(pieces[:-1]))


def _uncoloured(pieces: _Pieces) -> str:
    return "".join(text for text, _ in pieces).rstrip()


def _coloured(pieces: _Pieces) -> str:
    return "".join(_in_style(text, style) if text and style else text for text, style in pieces).rstrip()


def _in_style(text: str, style: str) -> str:
    return f"\x1b[{';'.join(_CODES[word] for word in style.split())}m{text}\x1b[0m"
