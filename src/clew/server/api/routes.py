"""All routers of the API in one place."""

from fastapi import APIRouter, FastAPI

from clew.server.api import health, runs
from clew.server.api.documents import ErrorDocument

PREFIX = "/api/v1"
ROUTERS: tuple[APIRouter, ...] = (health.router, runs.router)


def include(app: FastAPI) -> None:
    """Add the API to an application."""
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX, responses={"default": {"model": ErrorDocument}})
