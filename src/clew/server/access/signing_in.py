"""Signing in and out: sets and deletes the session cookie."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse

from clew.server.access.doorman import Caller
from clew.server.access.visit import caller_of, doorman_of, settings_of
from clew.server.protection.middleware import require_own_origin, require_own_page
from clew.server.settings import ServerSettings

router = APIRouter(include_in_schema=False)

LOGIN, LINK, LOGOUT = "/login", "/login/link", "/logout"


@router.get(LINK)
def sign_in_by_link(request: Request, key: str) -> RedirectResponse:
    """The link that an embedded server prints when it starts."""
    cookie = doorman_of(request).sign_in_by_link(key, _address(request))
    return _signed_in(cookie, "/", settings_of(request))


@router.post(LOGIN)
def sign_in(
    request: Request, token: Annotated[str, Form()], next_page: Annotated[str, Form(alias="next")] = "/"
) -> RedirectResponse:
    """The form of the sign-in page."""
    settings = settings_of(request)
    require_own_origin(request, settings)
    cookie = doorman_of(request).sign_in(token, _address(request))
    return _signed_in(cookie, local_path(next_page), settings)


@router.post(LOGOUT)
async def sign_out(request: Request, caller: Annotated[Caller, Depends(caller_of)]) -> RedirectResponse:
    """End the session of the browser."""
    settings = settings_of(request)
    await require_own_page(request, caller, settings)
    cookie = request.cookies.get(settings.cookie)
    if cookie:
        doorman_of(request).sign_out(cookie)
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(settings.cookie, path="/", secure=settings.is_secure, httponly=True, samesite="lax")
    return answer


def local_path(wanted: str) -> str:
    """A path of this server, whatever was requested: signing in never redirects to another site."""
    parts = urlsplit(wanted)
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return wanted if is_local and wanted.isprintable() else "/"


def _signed_in(cookie: str, where: str, settings: ServerSettings) -> RedirectResponse:
    answer = RedirectResponse(where, 303)
    answer.set_cookie(
        settings.cookie,
        cookie,
        max_age=int(settings.session_lifetime.total_seconds()),
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )
    return answer


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"
