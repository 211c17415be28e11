"""For those who run the server: whether it works, who calls, who has read what, and what an event bus did not take."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.roles import Permission
from clew.server.access.visit import RunVisit, Visit, may, workspace_of
from clew.server.api.documents import (
    AccessDocument,
    CallerDocument,
    DeadLettersDocument,
    ReplayedDocument,
    StatusDocument,
)
from clew.server.metrics import CONTENT_TYPE, Metrics

router = APIRouter(tags=["operations"])

BusQuery = Annotated[str | None, Query(max_length=255, description="Only those of this event bus.")]


@router.get("/me", summary="Who calls", responses={200: {"model": CallerDocument}})
def me(visit: RunVisit) -> JSONResponse:
    """The caller as the server knows them, and what they may do."""
    caller = visit.caller
    return JSONResponse(
        {
            "name": caller.name,
            "role": caller.role.value,
            "tenant": caller.tenant_id,
            "environment": visit.workspace.environment_name,
            "permissions": sorted(permission.value for permission in caller.role.permissions),
        }
    )


@router.get("/audit", summary="Who has read rows or changed what runs", responses={200: {"model": AccessDocument}})
def audit(
    visit: Annotated[Visit, may(Permission.READ_ACCESS_LOG)],
    subject_id: Annotated[
        str | None, Query(max_length=255, description="Only of this run, capture or project.")
    ] = None,
    actor: Annotated[str | None, Query(max_length=255, description="Only by this caller.")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JSONResponse:
    """What was read over HTTP of traces, explanations, lineage and captures, and which projects were activated or
    deactivated, the newest first."""
    found = visit.workspace.operations.access_records(
        subject_id=subject_id, actor=actor, before=before, limit=limit + 1
    )
    return JSONResponse({"records": [record.to_json() for record in found[:limit]], "has_more": len(found) > limit})


@router.get(
    "/dead-letters", summary="Events that an event bus did not take", responses={200: {"model": DeadLettersDocument}}
)
def dead_letters(
    visit: RunVisit, sink: BusQuery = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JSONResponse:
    """They were sent several times, later and later, and then put aside."""
    letters = visit.workspace.operations.dead_letters(bus=sink, limit=limit)
    return JSONResponse({"dead_letters": [letter.to_json() for letter in letters]})


@router.post("/dead-letters/replay", summary="Send dead letters again", responses={200: {"model": ReplayedDocument}})
def replay(visit: Annotated[Visit, may(Permission.REPLAY_EVENTS)], sink: BusQuery = None) -> JSONResponse:
    """A worker delivers them."""
    replayed = visit.workspace.operations.replay(bus=sink)
    return JSONResponse({"replayed": replayed})


@router.get("/health", summary="Whether the process answers", responses={200: {"model": StatusDocument}})
def health() -> JSONResponse:
    """Says nothing about what it depends on; for who restarts processes that hang."""
    return JSONResponse({"status": "ok"})


@router.get("/ready", summary="Whether requests can be served", responses={200: {"model": StatusDocument}})
def ready(request: Request) -> JSONResponse:
    """Asks the state store; for who sends requests to one of several servers."""
    workspace_of(request).operations.load()
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(request: Request, visit: RunVisit) -> Response:
    """Requests, streams, and how busy the environment is."""
    visit.require_own_workspace()
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), headers={"Content-Type": CONTENT_TYPE})
