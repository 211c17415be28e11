"""Numbers, lists, times and sizes as people read them.

Times are in the local time zone; sizes and durations are rounded.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as 1 project or 2 projects."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


SHORT_ID = 8
"""How many characters of a run id we show; they are enough to identify a run."""


def short(run_id: str) -> str:
    """A run id as commands show it."""
    return run_id[:SHORT_ID]


def enumerated(items: Iterable[object]) -> str:
    """Items separated by commas."""
    return ", ".join(str(item) for item in items)


_KILO = 1000


def local_time(moment: datetime | None) -> str:
    """A local time, to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment is not None else "-"


def local_minute(moment: datetime | None) -> str:
    """A local time, to the minute."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment is not None else "-"


def zone_name(moment: datetime) -> str:
    """The name of the local time zone at a given time."""
    return moment.astimezone().strftime("%Z")


def duration(span: timedelta | None) -> str:
    """A duration: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if span is None:
        return "-"
    seconds = span.total_seconds()
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def between(started: datetime | None, ended: datetime | None) -> timedelta | None:
    """The time between two moments, if both are known."""
    return ended - started if started is not None and ended is not None else None


def size(number: int) -> str:
    """A number of bytes: 900 bytes, 188 KB, 2.5 MB."""
    if number < _KILO:
        return f"{number} bytes"
    value = float(number)
    for unit in ("KB", "MB", "GB"):
        value /= _KILO
        if value < _KILO or unit == "GB":
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    raise AssertionError("the last unit has no upper limit")
