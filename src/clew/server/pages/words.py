"""Numbers, times and values as pages show them."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal

from clew.deferred import dataclass
from clew.lang.conversion import to_text
from clew.lang.typed import Value

CellKind = Literal["number", "text", "null", "empty", "moment", "truth"]

FORMATS = (("csv", "CSV"), ("xlsx", "Excel"), ("parquet", "Parquet"))
"""In which tables can be downloaded."""
_SHORT_ID = 8
_LONGEST_CELL = 400


@dataclass(frozen=True, slots=True)
class ValueCell:
    """A value for display: its text and its kind, which decides the style."""

    text: str
    kind: CellKind


def cell(value: Value) -> ValueCell:
    """A value in a table. NULL, the empty text and blanks must look different."""
    match value:
        case None:
            return ValueCell("NULL", "null")
        case bool():
            return ValueCell("TRUE" if value else "FALSE", "truth")
        case Decimal():
            return ValueCell(f"{value:,f}", "number")
        case int() | float():
            return ValueCell(to_text(value), "number")
        case date():
            return ValueCell(to_text(value), "moment")
        case "":
            return ValueCell("empty text", "empty")
        case _:
            text = str(value)
            return ValueCell(text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…", "text")


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def short(run_id: str) -> str:
    """The first characters of an id, enough to recognise it."""
    return run_id[:_SHORT_ID]


def minute(moment: datetime | None) -> str:
    """A time to the minute, in UTC, since readers are in many time zones."""
    return moment.strftime("%Y-%m-%d %H:%M") if moment is not None else ""


def second(moment: datetime | None) -> str:
    """A time to the second, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC") if moment is not None else ""


def duration(span: timedelta | None) -> str:
    """A duration: 40 ms, 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if span is None:
        return ""
    seconds = span.total_seconds()
    if seconds < 0.0995:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def percent(share: Decimal) -> str:
    """A share: 7.5 %, or "< 0.1 %" if it is too small to show."""
    if share and abs(share) < Decimal("0.0005"):
        return "< 0.1 %"
    return f"{share * 100:.1f} %"


def size(number: int) -> str:
    """A number of bytes: 900 bytes, 188 KB, 2.5 MB."""
    if number < 1000:
        return counted(number, "byte")
    value = float(number)
    for unit in ("KB", "MB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    return f"{value / 1000:,.1f} GB"
