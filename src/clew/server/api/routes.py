"""All routers of the API in one place."""

from typing import Any

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


PUBLIC = frozenset({f"{PREFIX}/health", f"{PREFIX}/ready"})
"""What needs no token."""


def include(app: FastAPI) -> None:
    """Add the API to an application, and to its description that it takes tokens."""
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX, responses={"default": {"model": ErrorDocument}})
    generated = app.openapi

    def described() -> dict[str, Any]:
        document = generated()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in PUBLIC:
            for operation in document["paths"][path].values():
                operation["security"] = []
        return document

    app.openapi = described  # type: ignore[method-assign]
