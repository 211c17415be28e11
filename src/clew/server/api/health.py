"""Whether the server lives, and whether it can work."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from clew.server.access.visit import site_of

router = APIRouter(tags=["operations"])


@router.get("/health", summary="Whether the process answers")
def health() -> JSONResponse:
    """Says nothing about what it depends on; for who restarts processes that hang."""
    return JSONResponse({"status": "ok"})


@router.get("/ready", summary="Whether requests can be served: the state store answers")
def ready(request: Request) -> JSONResponse:
    """For who sends requests to one of several servers."""
    site = site_of(request)
    site.state.stores.catalog.load(site.environment.name)
    return JSONResponse({"status": "ready"})
