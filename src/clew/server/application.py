"""The application: routes, errors and protection put together around a workspace."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI, Request, Response

from clew.api.workspace import Workspace
from clew.diagnostics import ClewError
from clew.server.access import signing_in
from clew.server.access.doorman import Doorman, LoginAttempts
from clew.server.api import routes
from clew.server.errors import handle_errors, json_answer
from clew.server.metrics import CountedRequests, Metrics
from clew.server.pages.registration import add_pages
from clew.server.protection.middleware import BoundedRequests, KnownHosts, LastResort, SecurityHeaders
from clew.server.settings import ServerSettings
from clew.server.streams import EventStreams

ErrorPage = Callable[[Request, ClewError], Response]


def create_app(
    workspace: Workspace, settings: ServerSettings | None = None, *, on_link_used: Callable[[], None] = lambda: None
) -> FastAPI:
    """The application for a workspace. It opens nothing and starts nothing; whoever opened the workspace closes it."""
    settings = settings or ServerSettings()
    app = FastAPI(
        title="Clew",
        summary="Runs of data pipelines, and where every number in their output comes from.",
        version=version("clew"),
        openapi_url=f"{routes.PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.workspace = workspace
    app.state.settings = settings
    app.state.doorman = Doorman(
        workspace,
        settings,
        attempts=LoginAttempts(most=settings.most_failed_logins, window_s=settings.login_window_s),
        on_link_used=on_link_used,
    )
    app.state.streams = EventStreams(workspace, poll_s=settings.event_poll_s, keep_alive_s=settings.keep_alive_s)
    app.state.metrics = Metrics(workspace, app.state.streams)
    app.state.error_page = _plain_error
    handle_errors(app)
    routes.include(app)
    app.include_router(signing_in.router)
    add_pages(app)
    app.add_middleware(LastResort)
    app.add_middleware(BoundedRequests, settings=settings)
    app.add_middleware(KnownHosts, hosts=settings.known_hosts)
    app.add_middleware(CountedRequests, metrics=app.state.metrics)
    app.add_middleware(SecurityHeaders, is_always_secure=settings.is_always_secure)
    return app


def _plain_error(_request: Request, error: ClewError) -> Response:
    return json_answer(error)
