"""The record of who has read the values of which rows, and of who has changed what runs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Subject(StrEnum):
    """What was read or changed."""

    TRACE = "trace"
    EXPLANATION = "explanation"
    LINEAGE = "lineage"
    CAPTURE = "capture"
    PROJECT = "project"
    """Activated or deactivated; looking at projects is nothing to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRecord:
    """Somebody has read something, or changed it."""

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
        """The form that the HTTP API gives."""
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


class AccessLog(Protocol):
    """Keeps records. None is ever changed or removed."""

    def add(self, *records: AccessRecord) -> None:
        """Keep records, all or none."""
        ...

    def records(
        self,
        tenant_id: str,
        *,
        subject_id: str | None = None,
        actor: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AccessRecord, ...]:
        """Records of a tenant, the newest first; `before` is the entry id that ended the page before."""
        ...
