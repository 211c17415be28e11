"""Records of an access log written together: whoever comes while others are being written goes with the next ones.

A record has to be safe before its reader gets an answer, and making one safe takes the store as long as making many.
"""

import threading
from dataclasses import dataclass, field

from clew.runs.access.access_log import AccessLog, AccessRecord


@dataclass(slots=True)
class _Entry:
    record: AccessRecord
    is_done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class GatheredLog:
    """Writes to another log. Used by many threads at once."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._waiting: list[_Entry] = []
        self._is_writing = False

    def add(self, record: AccessRecord) -> None:
        """Keep a record; returns when it is safe."""
        entry = _Entry(record)
        with self._lock:
            self._waiting.append(entry)
            leads = not self._is_writing
            self._is_writing = True
        if leads:
            self._write_all()
        entry.is_done.wait()
        if entry.error is not None:
            raise entry.error

    def _write_all(self) -> None:
        while True:
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._is_writing = False
                    return
            error: BaseException | None = None
            try:
                self._log.add(*(entry.record for entry in batch))
            except BaseException as raised:  # noqa: BLE001 - each of those who wait raises it
                error = raised
            for entry in batch:
                entry.error = error
                entry.is_done.set()
