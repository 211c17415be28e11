"""The Host header has to name this server: a page of another site may not reach it through a name of its own."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import UNKNOWN_HOST
from clew.server.errors import json_answer


class KnownHosts:
    """Refuses requests for other hosts."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
