"""Rows of sheets in XLSX workbooks as texts, one at a time.

A cell that is a number, a date or a truth value is turned into the text that the rules of its column mean by it; text
stays as it is. Excel shows 15 digits of a number, so those count: 0.1 + 0.2 is 0.3 there too.
"""

# ruff: noqa: PLC0415 - openpyxl is loaded where there is a workbook

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, BinaryIO
from zipfile import BadZipFile, ZipFile

from clew.deferred import dataclass
from clew.diagnostics import did_you_mean
from clew.lang.moment_patterns import moment_pattern, written_moment
from clew.plan.file_rules import FileRules, TextRules
from clew.plan.local_files import SourceFile
from clew.storage.source_files import opened_source

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

_MOST_SHARED = 512 << 20
"""Bytes of shared texts, which a reader has to keep in memory."""
_SHARED = "xl/sharedStrings.xml"


class SheetProblem(ValueError):
    """Why a sheet cannot be read, and what to do."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Sheet:
    """An open sheet."""

    title: str
    names: tuple[str, ...] | None
    """The header; None where it has none."""
    width: int
    """Cells in the first row that counts."""
    rows: Iterator[tuple[int, tuple[object, ...]]]
    """The number and the cells of every row after the header that is not blank."""


@contextmanager
def opened_sheet(file: SourceFile, options: Mapping[str, str]) -> Iterator[Sheet | None]:
    """The sheet that the options name; None where it has no rows. SheetProblem or OSError where there is none."""
    with opened_source(file) as stream:
        _require_bounded(file, stream)
        book = _workbook(file, stream)
        try:
            title = options.get("sheet", book.sheetnames[0])
            if title not in book.sheetnames:
                hint = did_you_mean(title, book.sheetnames) or f"its sheets are {', '.join(book.sheetnames)}"
                raise SheetProblem(f'{file.shown} has no sheet "{title}"', hint)
            yield _sheet(book, title, options)
        finally:
            book.close()


def _require_bounded(file: SourceFile, stream: BinaryIO) -> None:
    try:
        with ZipFile(stream) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    except BadZipFile:
        raise SheetProblem(f"{file.shown} is not an XLSX file", "save the workbook as .xlsx") from None
    if sizes.get(_SHARED, 0) > _MOST_SHARED:
        raise SheetProblem(f"{file.shown} has too much text for a workbook", "save the sheet as CSV")
    stream.seek(0)


def _workbook(file: SourceFile, stream: BinaryIO) -> "Workbook":
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, KeyError, ValueError) as error:
        raise SheetProblem(f"{file.shown} is not an XLSX file: {error}", "save the workbook as .xlsx") from None


def _sheet(book: "Workbook", title: str, options: Mapping[str, str]) -> Sheet | None:
    sheet = book[title]
    if hasattr(sheet, "reset_dimensions"):
        sheet.reset_dimensions()  # some programs write a wrong size, and cells beyond it would be lost
    skipped = int(options.get("skip_lines", "0"))
    numbered = enumerate(sheet.iter_rows(values_only=True), start=1)
    filled = ((number, cells) for number, cells in numbered if number > skipped and not _is_blank(cells))
    first = next(filled, None)
    if first is None:
        return None
    if options.get("header", "true").lower() != "true":
        return Sheet(title, None, len(first[1]), _with_first(first, filled))
    names = tuple("" if cell is None else str(cell) for cell in first[1])
    return Sheet(title, names, len(names), filled)


def _with_first(
    first: tuple[int, tuple[object, ...]], others: Iterator[tuple[int, tuple[object, ...]]]
) -> Iterator[tuple[int, tuple[object, ...]]]:
    yield first
    yield from others


def _is_blank(cells: Sequence[object]) -> bool:
    return all(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)


def shown_sheet(file: SourceFile, title: str) -> str:
    """A sheet as citations name it."""
    return f"{file.shown}, sheet {title}"


def texts_of(cells: Sequence[object], positions: Mapping[str, int], rules: FileRules) -> dict[str, str | None]:
    """The texts of a row by column of the dataset."""
    return {
        column: text_of_cell(cells[position], rules.of(column)) if position < len(cells) else None
        for column, position in positions.items()
    }


def text_of_cell(cell: object, rules: TextRules) -> str | None:
    """The text that the rules of a column mean by a cell; None for an empty one."""
    match cell:
        case None | "":
            return None
        case bool():
            return (rules.true_values if cell else rules.false_values)[0]
        case int():
            return str(cell)
        case float():
            return _text_of_number(cell, rules)
        case datetime() | date():
            return _text_of_moment(cell, rules)
        case _:
            return str(cell)


def _text_of_number(number: float, rules: TextRules) -> str:
    text = f"{Decimal(f'{number:.15g}'):f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}{rules.decimal_mark}{fraction}" if fraction else whole


def _text_of_moment(moment: date, rules: TextRules) -> str:
    """In the pattern of the column; as it is where the pattern would lose the time of day."""
    has_time = (
        isinstance(moment, datetime) and (moment.hour, moment.minute, moment.second, moment.microsecond) != (0,) * 4
    )
    if rules.formats and (not has_time or moment_pattern(rules.formats[0]).has_time):
        return written_moment(moment, moment_pattern(rules.formats[0]))
    if isinstance(moment, datetime):
        return moment.isoformat(sep=" ") if has_time else moment.date().isoformat()
    return moment.isoformat()
