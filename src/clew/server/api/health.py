"""Whether the server lives, whether it can work, and how it does."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from clew.server.access.visit import RunVisit, workspace_of
from clew.server.api.documents import StatusDocument
from clew.server.metrics import CONTENT_TYPE, Metrics

router = APIRouter(tags=["operations"])


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
