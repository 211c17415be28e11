"""For operators: health, the caller, access records, metrics, and dead letters."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
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

BusQuery = Annotated[str | None, Query(max_length=255, description="Only events for this event bus.")]


@router.get("/me", summary="Get the caller", responses={200: {"model": CallerDocument}})
def me(visit: RunVisit) -> JSONResponse:
    """The caller as the server identified them, and what they may do."""
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


@router.get("/audit", summary="List access records", responses={200: {"model": AccessDocument}})
def audit(
    visit: Annotated[Visit, may(Permission.READ_ACCESS_LOG)],
    subject_id: Annotated[
        str | None, Query(max_length=255, description="Only for this run, capture or project.")
    ] = None,
    actor: Annotated[str | None, Query(max_length=255, description="Only by this caller.")] = None,
    subject: Annotated[Subject | None, Query(description="Only of this kind.")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JSONResponse:
    """Which traces, explanations, lineage and captures were read, who signed in or could not, which tokens were created
    or revoked, and which projects were activated or deactivated; newest first."""
    found = visit.workspace.operations.access_records(
        subject_id=subject_id, actor=actor, subject=subject, before=before, limit=limit + 1
    )
    return JSONResponse({"records": [record.to_json() for record in found[:limit]], "has_more": len(found) > limit})


@router.get(
    "/dead-letters", summary="List events that an event bus rejected", responses={200: {"model": DeadLettersDocument}}
)
def dead_letters(
    visit: RunVisit, sink: BusQuery = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JSONResponse:
    """Events that still failed after several retries with growing delays."""
    letters = visit.workspace.operations.dead_letters(bus=sink, limit=limit)
    return JSONResponse({"dead_letters": [letter.to_json() for letter in letters]})


@router.post("/dead-letters/replay", summary="Send dead letters again", responses={200: {"model": ReplayedDocument}})
def replay(visit: Annotated[Visit, may(Permission.REPLAY_EVENTS)], sink: BusQuery = None) -> JSONResponse:
    """Puts them back into the outbox; a worker delivers them."""
    replayed = visit.workspace.operations.replay(bus=sink)
    return JSONResponse({"replayed": replayed})


@router.get("/health", summary="Check whether the process answers", responses={200: {"model": StatusDocument}})
async def health() -> JSONResponse:
    """A liveness probe. It does not check what the server depends on, and waits for nothing."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/ready", summary="Check whether the server can handle requests", responses={200: {"model": StatusDocument}}
)
def ready(request: Request) -> JSONResponse:
    """A readiness probe, for load balancers. It queries the state store."""
    workspace_of(request).operations.load()
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics",
    summary="Get metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(request: Request, visit: RunVisit) -> Response:
    """Requests, streams, and the load of the environment."""
    visit.require_own_workspace()
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), headers={"Content-Type": CONTENT_TYPE})
