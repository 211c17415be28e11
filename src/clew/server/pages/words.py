"""Numbers, times and values as pages show them."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal
from unicodedata import bidirectional

from clew.captures.freezing import Reason
from clew.deferred import dataclass
from clew.definitions.settings import CaptureMode
from clew.lang.conversion import to_text
from clew.lang.typed import Value
from clew.trace import results

CellKind = Literal["number", "text", "null", "empty", "moment", "truth"]

FORMATS = (("csv", "CSV"), ("xlsx", "Excel"), ("parquet", "Parquet"))
"""In which tables can be downloaded."""
_SHORT_ID = 8
_TAIL, _UNIQUE_TAIL = 6, 12
"""How many characters of a row id: the longer one has the position of the row in its file, and which file that is."""
_LONGEST_CELL = 400
_LONG_NUMBER = 10_000


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
        case int():
            # Four digits may be a year.
            return ValueCell(f"{value:,}" if abs(value) >= _LONG_NUMBER else str(value), "number")
        case float():
            return ValueCell(_with_separators(to_text(value)), "number")
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


def _with_separators(number: str) -> str:
    """A number as text with separators in its whole part; NaN, infinity and powers of ten stay as they are."""
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, rest = digits.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}" if whole.isdecimal() else number


def isolated(name: str) -> str:
    """A name with other text after it: one that is written from right to left must not turn that around."""
    is_turned = any(bidirectional(character) in {"R", "AL"} for character in name)
    return f"\u2068{name}\u2069" if is_turned else name


def joined(*parts: str) -> str:
    """Parts of a line, without the empty ones."""
    return ", ".join(part for part in parts if part)


_MODES = {
    CaptureMode.STATS: "statistics only",
    CaptureMode.SAMPLE_RAW: "a sample, all columns as they are",
    CaptureMode.SAMPLE_VIEW: "a sample, as its readers may see it",
    CaptureMode.FULL_RAW: "all rows, all columns as they are",
    CaptureMode.FULL_VIEW: "all rows, as their readers may see them",
}
_DROPPED = {
    Reason.MAX_ROWS: "it has more rows than may be kept",
    Reason.MAX_BYTES: "it is larger than may be kept",
    Reason.MAX_COLUMNS: "it has more columns than may be kept",
    Reason.INFLIGHT_BYTES: "others that were being made were too large together",
    Reason.INFLIGHT_JOBS: "too many others were being made",
    Reason.NOT_REACHED: "the run ended before this step",
    Reason.RUN_NOT_COMPLETED: "the run was not completed",
    Reason.WHEN_NOT_TRUE: "its condition was not true for this run",
    Reason.RUN_REMOVED: "the run was removed",
}


def capture_mode(mode: CaptureMode | None) -> str:
    """What a capture keeps."""
    return "" if mode is None else _MODES[mode]


def drop_reason(reason: str | None) -> str:
    """Why nothing was kept."""
    told = {each.value: text for each, text in _DROPPED.items()}
    return "" if reason is None else told.get(reason, reason)


def page_of_rows(before: int, rows: int, total: int | None) -> str:
    """Which rows a page has: all 12 rows, rows 51 to 100 of 4,657, rows 1 to 50 of more."""
    if not rows:
        return ""
    if total == rows and not before:
        return f"all {counted(rows, 'row')}" if rows > 1 else "1 row"
    return f"rows {before + 1:,} to {before + rows:,} of {f'{total:,}' if total is not None else 'more'}"


def short(run_id: str) -> str:
    """The first characters of an id, enough to recognise it."""
    return run_id[:_SHORT_ID]


def row_name(label: str) -> str:
    """What a row is called: its natural key, or the end of its id, long enough to tell it from rows of other files."""
    return results.row_name(label, _UNIQUE_TAIL)


def tail_length(row_ids: Sequence[str]) -> int:
    """How much of the ends of some row ids tells them apart."""
    lengths = (
        length for length in range(_TAIL, _UNIQUE_TAIL) if len({each[-length:] for each in row_ids}) == len(row_ids)
    )
    return next(lengths, _UNIQUE_TAIL)


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
