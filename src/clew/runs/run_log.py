"""The log of a run's driver: what it did and what went wrong, with tracebacks, for those who operate runs.

Events are the history of a run; this is for the case that they are not enough. It is bounded, has no secrets in it, and
a run never fails because its log cannot be written.
"""

import json
import logging
import os
import platform
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from importlib.metadata import version

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.events.codec import iso, moment_of
from clew.runs.clock import Clock, utc_now
from clew.runs.secrets import RecordKeeper, RedactingFilter, Redactor
from clew.storage.layout import driver_log_key
from clew.storage.root import StorageRoot

MOST_LINES = 2_000
"""That are read, and that one driving of a run writes."""
_LONGEST = 20_000
"""Characters of a line: a traceback of Spark with its causes."""
_MOST_BYTES = 4_000_000
"""Of a run, after which nothing more is written for it."""
_EVERY_S = 5.0
"""How long lines wait to be written together, unless something goes wrong."""
_UNSEEN = "not shown to your role, as it may quote values of rows"
_CUT = "\n... {} characters are left out ...\n"


@dataclass(frozen=True, slots=True)
class LogLine:
    """Something that a driver did or met."""

    at: datetime
    level: str
    """info, warning or error."""
    text: str
    """One line, or several: what went wrong, with its traceback."""

    def without_values(self) -> "LogLine":
        """The same for those who see no values: what has gone wrong may quote some."""
        return self if self.level == "info" else LogLine(self.at, self.level, _UNSEEN)

    def to_json(self) -> dict[str, object]:
        """The form of the page as JSON, and of the file."""
        return {"at": iso(self.at), "level": self.level, "text": self.text}


class RunLog:
    """Collects the lines of one driving, and writes them together: each write is a request to an object store."""

    def __init__(self, root: StorageRoot, run_id: str, redactor: Redactor, clock: Clock) -> None:
        self.run_id = run_id
        self._root = root
        self._redactor = redactor
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[LogLine] = []
        self._left = MOST_LINES
        self._left_out = 0
        self._is_full: bool | None = None
        self._flushed = time.monotonic()

    def add(self, text: str, level: str = "info") -> None:
        """Add a line. It is written now if something went wrong or the last was written a while ago."""
        with self._lock:
            if self._left <= 0:
                self._left_out += 1
                return
            self._left -= 1
            self._waiting.append(LogLine(self._clock(), level, self._redactor.text(_cut(text))))
            if level != "info" or time.monotonic() - self._flushed > _EVERY_S:
                self._flush()

    def close(self) -> None:
        """Write what waits."""
        with self._lock:
            if self._left_out:
                self._waiting.append(LogLine(self._clock(), "warning", f"{self._left_out:,} more lines are left out"))
            self._flush()

    def _flush(self) -> None:
        lines, self._waiting, self._flushed = self._waiting, [], time.monotonic()
        if not lines:
            return
        key = driver_log_key(self.run_id)
        try:
            if self._is_full is None:
                self._is_full = self._root.size(key) > _MOST_BYTES
            if not self._is_full:
                self._root.add_line(key, json.dumps([line.to_json() for line in lines], ensure_ascii=False))
        except (OSError, ClewError):
            self._is_full = True  # the place that the run writes to is away: it will say so itself


_DRIVEN: ContextVar[RunLog | None] = ContextVar("driven", default=None)
"""The log of the run that this thread drives."""


def note(text: str, problem: str = "") -> None:
    """Say what the driver does, or what has gone wrong. Where no log is kept, nothing happens."""
    log = _DRIVEN.get()
    if log is not None:
        log.add(f"{text}\n{problem}" if problem else text, "error" if problem else "info")


def note_error(text: str, error: BaseException) -> None:
    """Say what went wrong, with the traceback where there is more to know than the message tells."""
    is_plain = isinstance(error, ClewError) and error.__cause__ is None
    note(text, str(error) if is_plain else "".join(traceback.format_exception(error)).rstrip())


class _ToRunLog(RecordKeeper):
    """Takes what Clew logs while it drives the run, and what it logs elsewhere about the run."""

    def __init__(self, log: RunLog, redactor: Redactor) -> None:
        super().__init__(logging.INFO)
        self.addFilter(RedactingFilter(redactor))
        self._log = log
        self._formatter = logging.Formatter("%(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record, with its traceback."""
        if _DRIVEN.get() is self._log or self._log.run_id in record.getMessage():
            level = "info" if record.levelno < logging.WARNING else record.levelname.lower()
            self._log.add(self._formatter.format(record), level)


@dataclass(frozen=True, slots=True)
class RunLogs:
    """The logs of the runs of an environment."""

    root: StorageRoot
    redactor: Redactor
    clock: Clock = utc_now

    @contextmanager
    def of(self, run_id: str) -> Iterator[RunLog]:
        """Keep the log of a run while this thread drives it."""
        log = RunLog(self.root, run_id, self.redactor, self.clock)
        handler, logger = _ToRunLog(log, self.redactor), logging.getLogger("clew")
        logger.addHandler(handler)
        token = _DRIVEN.set(log)
        try:
            yield log
        finally:
            _DRIVEN.reset(token)
            logger.removeHandler(handler)
            log.close()


@cache
def this_driver() -> str:
    """Who drives, in a few words."""
    return f"{socket.gethostname()}, process {os.getpid()}, Clew {version('clew')}, Python {platform.python_version()}"


def lines_of(root: StorageRoot, run_id: str) -> Sequence[LogLine]:
    """The newest lines of a run's log, oldest first; none where none was kept."""
    found = list[LogLine]()
    for line in root.lines(driver_log_key(run_id))[-MOST_LINES:]:
        found += _read(line)
    return sorted(found, key=lambda each: each.at)[-MOST_LINES:]


def _read(line: str) -> Iterator[LogLine]:
    """The lines that were written together. The last may be cut short by a crash: then they are lost."""
    try:
        for each in json.loads(line):
            yield LogLine(moment_of(each["at"]), str(each["level"]), str(each["text"]))
    except (ValueError, KeyError, TypeError):
        return


def _cut(text: str) -> str:
    """A text whose middle is left out where it is long: a traceback begins and ends with what matters."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}{_CUT.format(len(text) - 2 * half)}{text[-half:]}"
