"""All routers of the API in one place."""

from fastapi import APIRouter, FastAPI

from clew.server.api import captures, events, health, lineage, operations, projects, runs, trace
from clew.server.api.documents import ErrorDocument

PREFIX = "/api/v1"
ROUTERS: tuple[APIRouter, ...] = (
    projects.router,
    runs.router,
    events.router,
    trace.router,
    lineage.router,
    captures.router,
    operations.router,
    health.router,
)


def include(app: FastAPI) -> None:
    """Add the API to an application."""
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX, responses={"default": {"model": ErrorDocument}})
