"""The access log: who has read the values of which rows, and who has changed what runs.

Records that arrive while others are being written are written together, in the next transaction.
"""

import threading
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from clew.deferred import dataclass


class Subject(StrEnum):
    """What was read or changed."""

    TRACE = "trace"
    EXPLANATION = "explanation"
    LINEAGE = "lineage"
    CAPTURE = "capture"
    PROJECT = "project"
    """Activated or deactivated; viewing projects is not recorded."""
    SIGN_IN = "sign-in"
    """A browser session that began or ended, or an attempt that failed."""
    TOKEN = "token"  # noqa: S105 - a word
    """Created or revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    """A caller has read or changed something."""

    tenant_id: str
    actor: str
    role: str
    token_id: str | None
    subject: Subject
    subject_id: str
    """The run, the capture or the project."""
    detail: str
    """The row, step, column or condition that was asked for, or what was done."""
    read_at: datetime
    """When it was read or done."""
    entry_id: int = 0
    """Given by the store; later ones are larger."""

    def to_json(self) -> dict[str, object]:
        """The form of the HTTP API."""
        return {
            "id": self.entry_id,
            "actor": self.actor,
            "role": self.role,
            "token_id": self.token_id,
            "subject": self.subject.value,
            "subject_id": self.subject_id,
            "detail": self.detail,
            "read_at": self.read_at.isoformat(),
        }


class ReadRecords(Protocol):
    """Takes records, which are never changed or removed."""

    def add(self, *records: AccessRecord) -> None:
        """Store all records or none."""
        ...


class AccessLog(ReadRecords, Protocol):
    """Stores records."""

    def records(
        self,
        tenant_id: str,
        *,
        subject_id: str | None = None,
        actor: str | None = None,
        subject: Subject | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AccessRecord, ...]:
        """Records of a tenant, the newest first; `before` is the entry id that ended the page before."""
        ...


@dataclass(slots=True)
class _Entry:
    record: AccessRecord
    is_done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class GatheredLog:
    """Writes to another log. Used by many threads at once."""

    def __init__(self, log: ReadRecords) -> None:
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
