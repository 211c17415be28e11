"""Puts the pages into an application."""

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from clew.server.pages.rendering import STATIC, Templates
from clew.server.pages.routes import captures, entry, lineage, operations, rows, runs, workspace

_KEEP = "public, max-age=31536000, immutable"
_ROUTERS = (
    entry.router,
    runs.router,
    rows.router,
    lineage.router,
    workspace.router,
    operations.router,
    captures.router,
)


class StaticPages(StaticFiles):
    """Styles and scripts. An address carries the digest of its content, so browsers may keep it for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        answer = await super().get_response(path, scope)
        if answer.status_code == 200 and b"v=" in scope.get("query_string", b""):
            answer.headers["Cache-Control"] = _KEEP
        return answer


def add_pages(app: FastAPI) -> None:
    """Add all pages, their styles and scripts, and pages for errors."""
    app.state.templates = Templates()
    app.state.error_page = entry.error_page
    for router in _ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticPages(directory=STATIC), name="static")
