"""Signing in and out: sets and deletes the session cookie.

While someone signs in at an OpenID Connect provider, a cookie of their browser holds what only it knows of the attempt.
The server keeps nothing, so it does not matter which of several servers the browser comes back to.
"""

import base64
import binascii
import json
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import RedirectResponse

from clew.auth.openid import OpenIdAttempt
from clew.server.access.doorman import CALLBACK, Caller, ProviderAnswer
from clew.server.access.visit import caller_of, doorman_of, settings_of
from clew.server.protection.middleware import require_own_origin, require_own_page
from clew.server.settings import ServerSettings

router = APIRouter(include_in_schema=False)

LOGIN, LINK, LOGOUT, PROVIDER = "/login", "/login/link", "/logout", "/login/oidc"
PROVIDER_END = "/logout/oidc"
LEFT = "left"
"""In the address of the sign-in page: someone has just signed out."""
_ATTEMPT_S = 600
"""How long people may take at the provider."""
_LONGEST_NEXT = 2000
"""A cookie holds 4,096 bytes."""


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


@router.get(PROVIDER)
def sign_in_at_provider(request: Request, next_page: Annotated[str, Query(alias="next")] = "/") -> RedirectResponse:
    """Send the browser to the OpenID Connect provider."""
    settings = settings_of(request)
    attempt, where = doorman_of(request).begin_at_provider()
    following = next_page if len(next_page) <= _LONGEST_NEXT else "/"
    answer = RedirectResponse(where, 303)
    answer.set_cookie(
        settings.attempt_cookie,
        _written(attempt, local_path(following)),
        max_age=_ATTEMPT_S,
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get(CALLBACK)
def signed_in_at_provider(
    request: Request,
    state: str = "",
    code: str = "",
    error: str = "",
    iss: str | None = None,
) -> RedirectResponse:
    """The provider has sent the browser back."""
    settings = settings_of(request)
    attempt, following = _read(request.cookies.get(settings.attempt_cookie, ""))
    sent = ProviderAnswer(state=state, code=code, error=error, issuer=iss)
    cookie = doorman_of(request).sign_in_at_provider(attempt, sent, _address(request))
    answer = _signed_in(cookie, local_path(following), settings)
    answer.delete_cookie(settings.attempt_cookie, path="/", secure=settings.is_secure, httponly=True, samesite="lax")
    return answer


def _written(attempt: OpenIdAttempt, following: str) -> str:
    document = json.dumps({**asdict(attempt), "next": following})
    return base64.urlsafe_b64encode(document.encode()).decode()


def _read(cookie: str) -> tuple[OpenIdAttempt | None, str]:
    """The attempt in a cookie, and where the person wanted to go; None if there is none that can be read."""
    try:
        document = json.loads(base64.urlsafe_b64decode(cookie.encode()))
        state, nonce, verifier, following = (document[name] for name in ("state", "nonce", "verifier", "next"))
    except (ValueError, KeyError, TypeError, binascii.Error):
        return None, "/"
    if not all(isinstance(each, str) and each for each in (state, nonce, verifier, following)):
        return None, "/"
    return OpenIdAttempt(state=state, nonce=nonce, verifier=verifier), following


@router.post(LOGOUT)
async def sign_out(request: Request, caller: Annotated[Caller, Depends(caller_of)]) -> RedirectResponse:
    """End the session of the browser."""
    settings = settings_of(request)
    await require_own_page(request, caller, settings)
    cookie = request.cookies.get(settings.cookie)
    if cookie:
        doorman_of(request).sign_out(cookie)
    has_provider = doorman_of(request).workspace.oidc is not None
    answer = RedirectResponse(f"{LOGIN}?{LEFT}=1" if has_provider else LOGIN, 303)
    answer.delete_cookie(settings.cookie, path="/", secure=settings.is_secure, httponly=True, samesite="lax")
    return answer


@router.get(PROVIDER_END)
def sign_out_at_provider(request: Request) -> RedirectResponse:
    """Send the browser to where people sign out of the provider, or to the sign-in page if it has no such place.

    A link leads here, and no form does: pages may not send forms, nor what answers them, to other sites.
    """
    return RedirectResponse(doorman_of(request).end_at_provider(LOGIN) or LOGIN, 303)


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
