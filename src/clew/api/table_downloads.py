"""Tables as files to download: CSV, XLSX and Parquet.

Spreadsheets run what looks like a formula. In CSV, a text that a spreadsheet would take for one gets an apostrophe in
front; in XLSX, every cell has its type, and a text is never a formula.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from clew.deferred import dataclass

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How texts begin that a spreadsheet takes for a formula."""
_EXCEL_DIGITS = 15
_EXCEL_TEXT = 32_767
_EXCEL_FIRST_DAY = date(1900, 3, 1)
"""Excel counts a 29th of February 1900, so days before have other numbers there."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class FileFormat(StrEnum):
    """The format of a table that is downloaded."""

    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"


MEDIA_TYPES: Mapping[FileFormat, str] = {
    FileFormat.CSV: "text/csv; charset=utf-8",
    FileFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    FileFormat.PARQUET: "application/vnd.apache.parquet",
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table as a file."""

    name: str
    format: FileFormat
    rows: int
    is_cut: bool
    """Whether there are more rows than a file may have."""
    content: bytes

    @property
    def media_type(self) -> str:
        """What HTTP calls the format."""
        return MEDIA_TYPES[self.format]


def table_file(table: pa.Table, name: str, wanted: FileFormat, *, is_cut: bool) -> TableFile:
    """A table in a format. A file that leaves out rows says so in its name."""
    cut = f"-first-{table.num_rows}" if is_cut else ""
    plain = _NO_NAME.sub("_", name).strip("_.") or "rows"
    return TableFile(f"{plain}{cut}.{wanted.value}", wanted, table.num_rows, is_cut, _WRITERS[wanted](table))


def _csv(table: pa.Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in table.column_names])
    for row in _rows(table):
        writer.writerow([_in_csv(value) for value in row])
    return text.getvalue().encode("utf-8-sig")  # with a mark, as Excel else takes UTF-8 for something older


def _in_csv(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:f}"
        case int() | float():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return _harmless(_as_text(value))


def _harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) or text.startswith(_FORMULA) else text


def _as_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _xlsx(table: pa.Table) -> bytes:
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    sheet.freeze_panes = "A2"

    def cell(value: object) -> object:
        shown = _in_excel(value)
        made: Any = WriteOnlyCell(sheet)
        made.value = shown
        if isinstance(shown, str):
            made.data_type = "s"  # openpyxl takes a text that begins with = for a formula
        return made

    sheet.append([cell(name) for name in table.column_names])
    for row in _rows(table):
        sheet.append([cell(value) for value in row])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _in_excel(value: object) -> bool | int | float | Decimal | date | str | None:
    """A value as Excel can hold it without losing anything; else its text."""
    match value:
        case None | bool():
            return value
        case int():
            return value if len(str(abs(value))) <= _EXCEL_DIGITS else str(value)
        case Decimal():
            return value if len(value.normalize().as_tuple().digits) <= _EXCEL_DIGITS else f"{value:f}"
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            fits = value.tzinfo is None and value.date() >= _EXCEL_FIRST_DAY and value.microsecond % 1000 == 0
            return value if fits else value.isoformat()
        case date():
            return value if value >= _EXCEL_FIRST_DAY else value.isoformat()
        case _:
            return ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", _as_text(value))[:_EXCEL_TEXT]


def _parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


def _rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    for batch in table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


_WRITERS: Mapping[FileFormat, Callable[[pa.Table], bytes]] = {
    FileFormat.CSV: _csv,
    FileFormat.XLSX: _xlsx,
    FileFormat.PARQUET: _parquet,
}
