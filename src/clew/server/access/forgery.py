"""Requests that a page of another site made a browser send: recognised, and refused."""

import hmac
from urllib.parse import urlsplit

from fastapi import Request

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import FORGED_REQUEST
from clew.server.access.caller import Caller
from clew.server.settings import ServerSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADER, FIELD = "x-csrf-token", "csrf_token"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def require_own_page(request: Request, caller: Caller, settings: ServerSettings) -> None:
    """UserError ForgedRequest where a session changes something and no page of ours has made the request.

    Tokens are exempt: a browser does not send them by itself.
    """
    if caller.csrf is None or request.method in SAFE_METHODS:
        return
    require_own_origin(request, settings)
    sent = request.headers.get(HEADER) or await _field(request)
    if not hmac.compare_digest(sent.encode(), caller.csrf.encode()):
        raise UserError(FORGED_REQUEST.anywhere())


def require_own_origin(request: Request, settings: ServerSettings) -> None:
    """UserError ForgedRequest where the browser says that the request comes from another site."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise UserError(FORGED_REQUEST.anywhere())
    origin = request.headers.get("origin")
    if origin is not None and (urlsplit(origin).hostname or "").lower() not in settings.known_hosts:
        raise UserError(FORGED_REQUEST.anywhere())


async def _field(request: Request) -> str:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in _FORMS:
        return ""
    sent = (await request.form()).get(FIELD)
    return sent if isinstance(sent, str) else ""
