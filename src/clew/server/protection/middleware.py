"""Middleware that protects all routes.

- Requests forged by pages of other sites are refused.
- Response headers restrict what pages of this server may do in a browser.
- The Host header must name this server, so that other sites cannot reach it by DNS rebinding.
- Unexpected errors become responses, inside the middleware that adds headers.
- Bodies that are too large, or take too long to arrive, are rejected.
"""

import asyncio
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import FORGED_REQUEST, TOO_LARGE, UNKNOWN_HOST
from clew.server.access.doorman import Caller
from clew.server.errors import answer_to, json_answer
from clew.server.settings import ServerSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADER, FIELD = "x-csrf-token", "csrf_token"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def require_own_page(request: Request, caller: Caller, settings: ServerSettings) -> None:
    """Raise UserError ForgedRequest if a session changes something, but the request is not from our pages.

    Tokens are exempt: browsers never send them on their own.
    """
    if caller.csrf is None or request.method in SAFE_METHODS:
        return
    require_own_origin(request, settings)
    sent = request.headers.get(HEADER) or await _field(request)
    if not hmac.compare_digest(sent.encode(), caller.csrf.encode()):
        raise UserError(FORGED_REQUEST.anywhere())


def require_own_origin(request: Request, settings: ServerSettings) -> None:
    """Raise UserError ForgedRequest if the browser says that the request comes from another site."""
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


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Only scripts and styles from files of this server; nothing from other sites."""

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_TLS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}


class SecurityHeaders:
    """Adds the headers to every response, unless a route has set them."""

    def __init__(self, app: ASGIApp, *, is_always_secure: bool) -> None:
        self._app = app
        self._headers = {**_HEADERS, **(_TLS_ONLY if is_always_secure else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class KnownHosts:
    """Refuses requests for other hosts."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            if host_name(host) not in self._hosts:
                refusal = json_answer(UserError(UNKNOWN_HOST.anywhere(host=host)))
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_name(header: str) -> str:
    """The name in a Host header, without the port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


class LastResort:
    """Responds for routes that failed unexpectedly. If part of a response was sent already, nothing is added."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def noting(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            if has_started:
                raise
            answer = await answer_to(Request(scope), error)
            await answer(scope, receive, send)


class BoundedRequests:
    """Limits the size of bodies and the time they take to arrive."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not (declared.isascii() and declared.isdecimal()) or int(declared) > self._settings.largest_body:
            refusal = json_answer(UserError(TOO_LARGE.anywhere(limit=self._settings.largest_body)))
            await refusal(scope, receive, send)
            return
        await self._app(scope, _Body(receive, self._settings).receive, send)


class _Body:
    """The body of a request, with its limits."""

    def __init__(self, receive: Receive, settings: ServerSettings) -> None:
        self._receive = receive
        self._settings = settings
        self._bytes = 0
        self._has_body = False
        self._deadline = asyncio.get_running_loop().time() + settings.slowest_body_s

    async def receive(self) -> Message:
        """The next message of the client. Once the body is complete, waiting for a disconnect has no timeout.

        Raises HTTPException, since FastAPI passes no other exception on while it reads a body.
        """
        if self._has_body:
            return await self._receive()
        left = self._deadline - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, left))
        except TimeoutError as error:
            raise HTTPException(408) from error
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._settings.largest_body:
                raise HTTPException(413)
            self._has_body = not message.get("more_body", False)
        return message
