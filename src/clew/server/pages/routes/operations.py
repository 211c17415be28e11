"""Operations: what waits, what runs, what was given up."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from clew.api.operations import Activity
from clew.auth.roles import Permission
from clew.events.snapshot import RunStatus
from clew.runs.clock import utc_now
from clew.runs.request import RunFilter
from clew.server.access.visit import RunVisit, Visit, may
from clew.server.pages.operations_page import operations_page
from clew.server.pages.rendering import AtDesk

router = APIRouter()

_OPEN = (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.APPROVED, RunStatus.PENDING)
_MOST_RUNS = 100
_MOST_LETTERS = 50


@router.get("/operations")
@router.get("/operations.json")
def operations(visit: RunVisit, desk: AtDesk) -> Response:
    """What goes on."""
    found = _look(visit)
    may_replay = visit.caller.may(Permission.REPLAY_EVENTS)
    return desk.page(
        visit,
        "operations.html",
        section="Operations",
        page=lambda: operations_page(found, utc_now(), may_replay=may_replay),
        document=found.to_json,
        scripts=("refresh.js",),
    )


@router.post("/operations/replay")
def replay(visit: Annotated[Visit, may(Permission.REPLAY_EVENTS)]) -> RedirectResponse:
    """Send what was given up again."""
    visit.site.state.stores.outbox.replay(tenant_id=visit.caller.tenant_id)
    return RedirectResponse("/operations", 303)


def _look(visit: Visit) -> Activity:
    environment, tenant = visit.site.environment, visit.caller.tenant_id
    stores, reader = visit.site.state.stores, visit.runs
    return Activity(
        load=stores.catalog.load(environment.name),
        policy=environment.queue_policy(),
        open_runs=[
            run
            for status in _OPEN
            for run in reader.runs(RunFilter(environment_id=environment.name, status=status), _MOST_RUNS)
        ],
        leases=stores.activity.leases(environment.name, tenant_id=tenant),
        outbox=stores.activity.outbox(environment.name, tenant_id=tenant),
        dead=stores.outbox.dead_letters(tenant_id=tenant, limit=_MOST_LETTERS),
    )
