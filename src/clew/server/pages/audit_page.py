"""Who read which rows, signed in, and changed tokens and projects."""

from collections.abc import Sequence

from clew.auth.access_log import AccessRecord, Subject
from clew.deferred import dataclass
from clew.server.pages import addresses

RECORDS = 100


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which records the page shows."""

    actor: str = ""
    subject_id: str = ""
    kind: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A record."""

    when: str
    actor: str
    role: str
    kind: str
    subject_id: str
    address: str | None
    """Of the run or capture that was read."""
    detail: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of records."""

    query: AuditQuery
    kinds: tuple[str, ...]
    lines: tuple[AuditLine, ...]
    following: str | None


def audit_page(found: Sequence[AccessRecord], query: AuditQuery) -> AuditPage:
    """The page. One record more than it shows says that there are more."""
    shown = found[:RECORDS]
    following = None
    if len(found) > RECORDS:
        asked = {"actor": query.actor, "subject_id": query.subject_id, "kind": query.kind}
        following = addresses.audit(**asked, before=shown[-1].entry_id)
    return AuditPage(query, tuple(each.value for each in Subject), tuple(map(_line, shown)), following)


def _line(record: AccessRecord) -> AuditLine:
    return AuditLine(
        when=record.read_at.strftime("%Y-%m-%d %H:%M:%S"),
        actor=record.actor,
        role=record.role,
        kind=record.subject.value,
        subject_id=record.subject_id,
        address=_address(record),
        detail=record.detail,
    )


def _address(record: AccessRecord) -> str | None:
    match record.subject:
        case Subject.TRACE | Subject.EXPLANATION:
            return addresses.run(record.subject_id)
        case Subject.CAPTURE:
            return addresses.capture(record.subject_id)
        case Subject.PROJECT:
            return addresses.project(record.subject_id)
        case _:
            return None
