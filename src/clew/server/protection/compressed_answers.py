"""Compressed answers, but none that another site could measure.

What is streamed stays a stream: each part is sent as soon as it is there.
"""

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_SMALLEST = 1_000
_LEVEL = 5
_OWN = frozenset({"same-origin", "none"})


class CompressedAnswers:
    """Compresses answers for clients that accept it.

    Requests that a page of another site has caused are answered uncompressed: how well a page compresses tells whether
    a text in the request occurs in it, and so, bit by bit, what it says.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, minimum_size=_SMALLEST, compresslevel=_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        is_own = scope["type"] == "http" and Headers(scope=scope).get("sec-fetch-site", "none") in _OWN
        await (self._compressed if is_own else self._plain)(scope, receive, send)
