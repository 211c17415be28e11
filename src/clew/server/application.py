"""The application: routes, error handling and protection around a workspace."""

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from clew.api.workspace import Workspace
from clew.server.access import signing_in
from clew.server.access.doorman import Doorman, LoginAttempts, OneTimeLinks
from clew.server.access.idle_sessions import IdleSessions
from clew.server.api import (
    captures,
    changes,
    downloads,
    events,
    evidence,
    lineage,
    nodes,
    operations,
    projects,
    runs,
    trace,
)
from clew.server.api.documents import ErrorDocument
from clew.server.errors import handle_errors
from clew.server.metrics import CountedRequests, Metrics
from clew.server.pages import routes as pages
from clew.server.pages.rendering import STATIC, Templates
from clew.server.protection.compressed_answers import CompressedAnswers
from clew.server.protection.middleware import BoundedRequests, KnownHosts, LastResort, SecurityHeaders
from clew.server.protection.question_pool import QuestionPool
from clew.server.settings import ServerSettings
from clew.server.streams import EventStreams

API = "/api/v1"
_API_ROUTERS: tuple[APIRouter, ...] = (
    projects.router,
    runs.router,
    events.router,
    trace.router,
    changes.router,
    evidence.router,
    downloads.router,
    lineage.router,
    captures.router,
    nodes.router,
    operations.router,
)
_PUBLIC = frozenset({f"{API}/health", f"{API}/ready"})
"""Routes that need no token."""
_PAGE_ROUTERS: tuple[APIRouter, ...] = (
    pages.entry.router,
    pages.runs.router,
    pages.filters.router,
    pages.rows.router,
    pages.outputs.router,
    pages.changes.router,
    pages.lineage.router,
    pages.workspace.router,
    pages.operations.router,
    pages.captures.router,
)
_KEEP = "public, max-age=31536000, immutable"


def create_app(workspace: Workspace, settings: ServerSettings | None = None) -> FastAPI:
    """The application for a workspace. It opens and starts nothing; whoever opened the workspace closes it."""
    settings = settings or ServerSettings()
    app = FastAPI(
        title="Clew",
        summary="Runs of data pipelines, and the origin of every number in their outputs.",
        version=version("clew"),
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.workspace = workspace
    app.state.settings = settings
    app.state.doorman = Doorman(
        workspace,
        settings,
        links=OneTimeLinks(settings.link_lifetime.total_seconds()),
        attempts=LoginAttempts(most=settings.most_failed_logins, window_s=settings.login_window_s),
        idle=IdleSessions(settings.longest_idle),
    )
    app.state.streams = EventStreams(
        workspace,
        poll_s=settings.event_poll_s,
        keep_alive_s=settings.keep_alive_s,
        most_per_caller=settings.most_streams_per_caller,
    )
    app.state.questions = QuestionPool(workspace)
    app.state.metrics = Metrics(workspace, app.state.streams, app.state.questions)
    handle_errors(app)
    _add_api(app)
    app.include_router(signing_in.router)
    _add_pages(app)
    app.add_middleware(CompressedAnswers)
    app.add_middleware(LastResort)
    app.add_middleware(BoundedRequests, settings=settings)
    app.add_middleware(KnownHosts, hosts=settings.known_hosts)
    app.add_middleware(CountedRequests, metrics=app.state.metrics)
    app.add_middleware(SecurityHeaders, is_always_secure=settings.is_always_secure)
    return app


def _add_api(app: FastAPI) -> None:
    """Add the API to an application, and the token scheme to its OpenAPI description."""
    for router in _API_ROUTERS:
        app.include_router(router, prefix=API, responses={"default": {"model": ErrorDocument}})
    generated = app.openapi

    def described() -> dict[str, Any]:
        document = generated()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in _PUBLIC:
            for operation in document["paths"][path].values():
                operation["security"] = []
        return document

    app.openapi = described  # type: ignore[method-assign]


class StaticPages(StaticFiles):
    """Styles and scripts. An address contains the digest of its content, so browsers may cache it forever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        answer = await super().get_response(path, scope)
        if answer.status_code == 200 and b"v=" in scope.get("query_string", b""):
            answer.headers["Cache-Control"] = _KEEP
        return answer


def _add_pages(app: FastAPI) -> None:
    """Add all pages, their styles and scripts, and the error pages."""
    app.state.templates = Templates()
    app.state.error_page = pages.entry.error_page
    for router in _PAGE_ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticPages(directory=STATIC), name="static")
