"""Operations: the queue, workers and dead letters; and the record of who read what."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.server.access.visit import RunVisit, Visit, may
from clew.server.pages.audit_page import RECORDS, AuditQuery, audit_page
from clew.server.pages.operations_page import operations_page
from clew.server.pages.rendering import AtDesk

router = APIRouter()


@router.get("/operations")
@router.get("/operations.json")
def operations(visit: RunVisit, desk: AtDesk) -> Response:
    """The operations page."""
    found = visit.workspace.operations.activity()
    may_replay = visit.caller.may(Permission.REPLAY_EVENTS)
    return desk.page(
        visit,
        "operations.html",
        section="Operations",
        page=lambda: operations_page(found, datetime.now(UTC), may_replay=may_replay),
        document=found.to_json,
        scripts=("refresh.js",),
    )


@router.get("/audit")
@router.get("/audit.json")
def audit(
    visit: Annotated[Visit, may(Permission.READ_ACCESS_LOG)],
    desk: AtDesk,
    actor: Annotated[str, Query(max_length=255)] = "",
    subject_id: Annotated[str, Query(max_length=255)] = "",
    kind: Annotated[str, Query(max_length=32)] = "",
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> Response:
    """Who read which rows, signed in, and changed tokens and projects."""
    query = AuditQuery(actor.strip(), subject_id.strip(), kind if kind in set(Subject) else "", before)
    found = visit.workspace.operations.access_records(
        subject_id=query.subject_id or None,
        actor=query.actor or None,
        subject=Subject(query.kind) if query.kind else None,
        before=before,
        limit=RECORDS + 1,
    )
    return desk.page(
        visit,
        "audit.html",
        section="Audit",
        page=lambda: audit_page(found, query),
        document=lambda: {
            "records": [record.to_json() for record in found[:RECORDS]],
            "has_more": len(found) > RECORDS,
        },
    )


@router.post("/operations/replay")
def replay(visit: Annotated[Visit, may(Permission.REPLAY_EVENTS)]) -> RedirectResponse:
    """Send all dead letters again."""
    visit.workspace.operations.replay()
    return RedirectResponse("/operations", 303)
