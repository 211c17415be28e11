"""Rows of sheets in XLSX workbooks as texts, one at a time.

A cell that is a number, a date or a truth value is turned into the text that the rules of its column mean by it; text
stays as it is. Excel shows 15 digits of a number, so those count: 0.1 + 0.2 is 0.3 there too.
"""

# ruff: noqa: PLC0415 - openpyxl is loaded where there is a workbook

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zipfile import BadZipFile, ZipFile

from clew.deferred import dataclass
from clew.diagnostics import did_you_mean
from clew.lang.moment_patterns import moment_pattern, read_moment, written_moment
from clew.plan.file_rules import FileRules, TextRules
from clew.plan.local_files import SourceFile
from clew.storage.source_files import opened_source

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from openpyxl.workbook import Workbook
    from openpyxl.worksheet._reader import WorkSheetParser

_MOST_SHARED = 512 << 20
"""Bytes of shared texts, which a reader has to keep in memory."""
_SHARED = "xl/sharedStrings.xml"
_DAMAGED = (
    *(BadZipFile, zlib.error, EOFError, RuntimeError, SyntaxError),
    *(LookupError, ValueError, TypeError, AttributeError),
)
"""What zipfile and openpyxl raise where a workbook is not what it should be; a SyntaxError is one of XML."""


class _NoSavedValue:
    """Stands in the cell of a formula of which no value was saved."""


NO_SAVED_VALUE: Final = _NoSavedValue()


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
            titles = [sheet.title for sheet in book.worksheets]  # and not the sheets that are charts
            title = options.get("sheet", titles[0] if titles else "")
            if title not in titles:
                hint = did_you_mean(title, titles) or f"its sheets are {', '.join(titles)}"
                raise SheetProblem(f'{file.shown} has no sheet "{title}"', hint)
            yield _sheet(file, book, title, options)
        finally:
            book.close()


def _require_bounded(file: SourceFile, stream: BinaryIO) -> None:
    try:
        with ZipFile(stream) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    except (BadZipFile, NotImplementedError):
        raise SheetProblem(f"{file.shown} is not an XLSX file", "save the workbook as .xlsx") from None
    if sizes.get(_SHARED, 0) > _MOST_SHARED:
        raise SheetProblem(f"{file.shown} has too much text for a workbook", "save the sheet as CSV")
    stream.seek(0)


def _workbook(file: SourceFile, stream: BinaryIO) -> "Workbook":
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, *_DAMAGED) as error:
        raise SheetProblem(f"{file.shown} is not an XLSX file: {error}", "save the workbook as .xlsx") from None


def _sheet(file: SourceFile, book: "Workbook", title: str, options: Mapping[str, str]) -> Sheet | None:
    skipped = int(options.get("skip_lines", "0"))
    numbered = _numbered_rows(file, book, title)
    filled = ((number, cells) for number, cells in numbered if number > skipped and not _is_blank(cells))
    first = next(filled, None)
    if first is None:
        return None
    if options.get("header", "true").lower() != "true":
        return Sheet(title, None, len(first[1]), _with_first(first, filled))
    names = tuple("" if cell is None or cell is NO_SAVED_VALUE else str(cell) for cell in first[1])
    return Sheet(title, names, len(names), filled)


def _numbered_rows(file: SourceFile, book: "Workbook", title: str) -> Iterator[tuple[int, tuple[object, ...]]]:
    """The rows that the sheet has, each with its number. What the sheet says about its size may be wrong."""
    sheet: Any = book[title]
    try:
        with sheet._get_source() as source:  # noqa: SLF001 - openpyxl itself does not say which cells have a formula
            for number, cells in _parser(book, sheet, source).parse():
                yield number, sheet._get_row(cells, values_only=True)  # noqa: SLF001
    except _DAMAGED as error:
        raise SheetProblem(f"{shown_sheet(file, title)}, is damaged: {error}", "save the workbook again") from None


def _parser(book: Any, sheet: Any, source: Any) -> "WorkSheetParser":  # noqa: ANN401 - what their types do not list
    """openpyxl's, which tells a formula without a value from an empty cell."""
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):
        def parse_cell(self, element: "Element") -> dict[str, object]:
            cell: dict[str, object] = super().parse_cell(element)
            # Excel saves an empty text as a value of the type str.
            if cell["value"] is None and element.get("t") != "str" and element.find(FORMULA_TAG) is not None:
                cell["value"] = NO_SAVED_VALUE
            return cell

    return Parser(
        source,
        sheet._shared_strings,  # noqa: SLF001
        data_only=True,
        epoch=book.epoch,
        date_formats=book._date_formats,  # noqa: SLF001
        timedelta_formats=book._timedelta_formats,  # noqa: SLF001
    )


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
    """In the first pattern of the column that says all of it; as it is where none does, and so not in a wrong year."""
    whole = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001
    for pattern in map(moment_pattern, rules.formats):
        text = written_moment(whole, pattern)
        if read_moment(text, pattern) == whole:
            return text
    has_time = (whole.hour, whole.minute, whole.second, whole.microsecond) != (0,) * 4
    return whole.isoformat(sep=" ") if has_time else whole.date().isoformat()
