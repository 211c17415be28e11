"""Runs: listed, shown, asked for."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from clew.app.running.reading import record_to_json
from clew.runs.request import RunFilter
from clew.runs.status import RunStatus
from clew.server.access.visit import RunVisit
from clew.server.api.cursors import cursor_of, item_of
from clew.server.api.documents import RunDocument, RunPage

router = APIRouter(tags=["runs"])


@router.get("/runs", summary="List runs, the newest first", responses={200: {"model": RunPage}})
def list_runs(
    visit: RunVisit,
    project: str | None = None,
    period: str | None = None,
    status: RunStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: str | None = None,
) -> JSONResponse:
    """Runs of the caller's tenant, a page at a time."""
    reader = visit.runs
    which = RunFilter(environment_id=visit.site.environment.name, project_id=project, period=period, status=status)
    before = reader.find(item_of(cursor)) if cursor is not None else None
    found = reader.runs(which, limit + 1, before)
    shown = found[:limit]
    has_more = len(found) > limit
    return JSONResponse(
        {
            "runs": [record_to_json(run) for run in shown],
            "has_more": has_more,
            "next_cursor": cursor_of(shown[-1].run_id) if has_more else None,
        }
    )


@router.get("/runs/{run}", summary="A run with its steps and outputs", responses={200: {"model": RunDocument}})
def show_run(run: str, visit: RunVisit) -> JSONResponse:
    """A run by its id, or the beginning of it."""
    return JSONResponse(visit.runs.view(run).to_json())
