"""Operations: the queue, workers and dead letters."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from clew.auth.roles import Permission
from clew.server.access.visit import RunVisit, Visit, may
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


@router.post("/operations/replay")
def replay(visit: Annotated[Visit, may(Permission.REPLAY_EVENTS)]) -> RedirectResponse:
    """Send all dead letters again."""
    visit.workspace.operations.replay()
    return RedirectResponse("/operations", 303)
