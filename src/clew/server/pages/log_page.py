"""The log of a run's driver, for people: what it did, and what went wrong with its traceback."""

from collections.abc import Sequence

from clew.deferred import dataclass
from clew.runs.run_log import MOST_LINES, LogLine
from clew.server.pages import addresses, words


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line: when, how grave, what, and what belongs to it."""

    when: str
    level: str
    text: str
    rest: str
    """All lines but the first, such as a traceback."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """The newest lines of a log, the oldest of them first."""

    title: str
    period: str
    run_address: str
    lines: tuple[ShownLine, ...]
    troubles: int
    most: int
    is_full: bool


def log_page(run_id: str, title: str, period: str, lines: Sequence[LogLine]) -> LogPage:
    """The page of a log."""
    return LogPage(
        title=title,
        period=period,
        run_address=addresses.run(run_id),
        lines=tuple(map(_shown, lines)),
        troubles=sum(line.level != "info" for line in lines),
        most=MOST_LINES,
        is_full=len(lines) >= MOST_LINES,
    )


def _shown(line: LogLine) -> ShownLine:
    first, _, rest = line.text.partition("\n")
    return ShownLine(words.second(line.at), line.level, first, rest)
