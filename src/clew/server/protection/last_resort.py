"""Errors that nobody thought of become answers here, inside of what adds headers to every answer."""

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.errors import answer_to


class LastResort:
    """Answers for routes that broke. A client that has part of an answer already is left with that part."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
