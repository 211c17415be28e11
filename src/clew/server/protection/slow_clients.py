"""Bodies that are too large, or take too long to arrive."""

import asyncio

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import TOO_LARGE
from clew.server.errors import json_answer
from clew.server.settings import ServerSettings


class BoundedRequests:
    """Bounds the size of bodies and the time they take to arrive."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
    """The body of a request, with its bounds."""

    def __init__(self, receive: Receive, settings: ServerSettings) -> None:
        self._receive = receive
        self._settings = settings
        self._bytes = 0
        self._has_body = False
        self._deadline = asyncio.get_running_loop().time() + settings.slowest_body_s

    async def receive(self) -> Message:
        """The next message of the client; once the body is there, whoever waits for its end may wait for ever.

        What is wrong is raised as an HTTPException: that is what FastAPI lets through while it reads a body.
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
