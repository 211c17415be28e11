"""The sign-in page and the error pages."""

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from clew.diagnostics import ClewError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.server.access.signing_in import LINK, LOGIN, local_path
from clew.server.access.visit import caller_or_none
from clew.server.errors import headers_of, status_of
from clew.server.pages.rendering import Templates

router = APIRouter()

_TITLES = {
    403: "Not allowed for your role",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible now",
    410: "Gone",
    429: "Too many requests",
    500: "Internal error",
    503: "Temporarily unavailable",
}


@router.get(LOGIN)
def login(request: Request) -> Response:
    """The sign-in form. Users who are signed in already are redirected."""
    following = local_path(request.query_params.get("next", "/"))
    if caller_or_none(request) is not None:
        return RedirectResponse(following, 303)
    return HTMLResponse(_templates(request).render("login.html", next=following, problem=None))


def error_page(request: Request, error: ClewError) -> Response:
    """The error, in the words that commands use. Users who are not signed in are sent to the sign-in page."""
    status, headers = status_of(error), headers_of(error)
    path = request.url.path
    if path == LOGIN:
        page = _templates(request).render("login.html", next="/", problem=error.diagnostic.message)
        return HTMLResponse(page, status, headers)
    if error.code == NOT_SIGNED_IN.name and path != LINK:
        wanted = f"{path}?{request.url.query}" if request.url.query and request.method == "GET" else path
        return RedirectResponse(f"{LOGIN}?{urlencode({'next': wanted})}", 303)
    page = _templates(request).render(
        "error.html", title=_TITLES.get(status, "Invalid request"), diagnostics=error.diagnostics, status=status
    )
    return HTMLResponse(page, status, headers)


def _templates(request: Request) -> Templates:
    found: Templates = request.app.state.templates
    return found
