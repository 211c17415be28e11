"""The sign-in page and the error pages."""

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from clew.diagnostics import ClewError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.server.access.doorman import CALLBACK
from clew.server.access.signing_in import LEFT, LINK, LOGIN, PROVIDER, PROVIDER_END, local_path
from clew.server.access.visit import Visit, caller_or_none, workspace_of
from clew.server.errors import headers_of, status_of
from clew.server.pages.error_page import told_error
from clew.server.pages.rendering import Shell, Templates, shell

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
    return HTMLResponse(_login_page(request, following))


def error_page(request: Request, error: ClewError) -> Response:
    """The error, in the frame of the site. Users who are not signed in are sent to the sign-in page."""
    status, headers = status_of(error), headers_of(error)
    path = request.url.path
    if path in {LOGIN, PROVIDER, PROVIDER_END, CALLBACK}:
        return HTMLResponse(_login_page(request, "/", error), status, headers)
    if error.code == NOT_SIGNED_IN.name and path != LINK:
        wanted = f"{path}?{request.url.query}" if request.url.query and request.method == "GET" else path
        return RedirectResponse(f"{LOGIN}?{urlencode({'next': wanted})}", 303)
    shown = told_error(error, path, status, _TITLES.get(status, "Invalid request"))
    page = _templates(request).render("error.html", page=shown, shell=_frame(request, path))
    return HTMLResponse(page, status, headers)


def _frame(request: Request, path: str) -> Shell | None:
    """The frame of the site for the caller; None for those who are not signed in."""
    try:
        caller = caller_or_none(request)
        section = path.strip("/").partition("/")[0].capitalize()
        return None if caller is None else shell(Visit(caller, workspace_of(request)), section)
    except ClewError:
        return None


def _login_page(request: Request, following: str, error: ClewError | None = None) -> str:
    """The ways to sign in, and what went wrong with one. A problem of the form is told without a hint: it is there."""
    oidc = workspace_of(request).oidc
    return _templates(request).render(
        "login.html",
        next=following,
        problem=error.diagnostic.message if error is not None else None,
        hint=error.diagnostic.hint if error is not None and request.url.path != LOGIN else None,
        provider=oidc.label if oidc is not None else None,
        provider_address=f"{PROVIDER}?{urlencode({'next': following})}",
        end_address=PROVIDER_END if oidc is not None and LEFT in request.query_params else None,
    )


def _templates(request: Request) -> Templates:
    found: Templates = request.app.state.templates
    return found
