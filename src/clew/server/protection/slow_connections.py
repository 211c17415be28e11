"""Closes stalled connections: no request arrives, or the client does not read the response.

Uvicorn has no setting for this, so we put a protocol between the event loop and uvicorn's own (`uvicorn.Config` takes
any class of asyncio's protocols as `http`). It uses only asyncio's public API and forwards everything. Whether a
request is being answered is noted by the application around ours (`Punctual.around`), which finds its connection in a
context variable: the task of a request starts in the context in which its bytes were received.
"""

import asyncio
import socket
import struct
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from clew.server.settings import ServerSettings

_LEAST_READ = 64 * 1024
"""Bytes of a pending response that the client must read within its time limit, or all of them if fewer are left."""
_RESET = struct.pack("ii", 1, 0)

_connection: ContextVar["_Connection"] = ContextVar("connection")


class Punctual:
    """The time limits for clients, and the number of requests answered."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._idle = _IdleConnections(settings.most_idle_per_address)
        self.answered = 0

    def protocol(self) -> type[asyncio.Protocol]:
        """HTTP/1.1 with time limits for sending request headers and for reading responses."""

        class PunctualProtocol(_Connection):
            headers_within_s = self._settings.slowest_headers_s
            read_within_s = self._settings.slowest_reader_s
            idle = self._idle

        return PunctualProtocol

    def around(self, app: ASGIApp) -> ASGIApp:
        """The application, wrapped so that connections know about their requests."""

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            connection = _connection.get(None)
            if scope["type"] != "http" or connection is None:
                await app(scope, receive, send)
                return
            connection.begin_answer()
            try:
                await app(scope, receive, send)
            finally:
                connection.end_answer()
                self.answered += 1

        return noting


class _IdleConnections:
    """Connections that wait for a request, by the address of the client, the oldest first.

    Each takes a file handle and counts towards the connections that the server holds, so one client must not have all.
    """

    def __init__(self, most_per_address: int) -> None:
        self._most = most_per_address
        self._by_address: dict[str, dict[_Connection, None]] = {}

    def add(self, connection: "_Connection") -> None:
        """A connection waits for a request. Closes the oldest one of its address if there are too many."""
        waiting = self._by_address.setdefault(connection.address, {})
        waiting.pop(connection, None)
        waiting[connection] = None
        if len(waiting) > self._most:
            next(iter(waiting)).close_idle()

    def discard(self, connection: "_Connection") -> None:
        """A connection has a request, or is closed."""
        waiting = self._by_address.get(connection.address, {})
        waiting.pop(connection, None)
        if not waiting:
            self._by_address.pop(connection.address, None)


class _Connection(asyncio.Protocol):
    """A connection with its timers. Every call is forwarded to uvicorn's protocol."""

    headers_within_s: float
    read_within_s: float
    idle: _IdleConnections

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        self._handed_on = H11Protocol(**options)
        self._transport: asyncio.Transport
        self.address = ""
        self._answering = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected. Whatever it does not read at once counts as unread."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - uvicorn serves streams only
        self._transport = transport
        self.address = str((transport.get_extra_info("peername") or ("unknown",))[0])
        self._handed_on.connection_made(transport)
        transport.set_write_buffer_limits(high=1, low=0)
        self.idle.add(self)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """The client has sent something."""
        _connection.set(self)
        self._handed_on.data_received(data)
        if not self._answering:
            self._expect_request()

    def eof_received(self) -> None:
        """The client has stopped sending."""
        self._handed_on.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self.idle.discard(self)
        self._stop_waiting()
        self._stop_watching()
        self._handed_on.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client is not reading at the moment."""
        self._handed_on.pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The client has read everything."""
        self._stop_watching()
        self._handed_on.resume_writing()

    def begin_answer(self) -> None:
        """The headers of a request are complete."""
        self._answering += 1
        self.idle.discard(self)
        self._stop_waiting()

    def end_answer(self) -> None:
        """A request is answered. Uvicorn itself closes the connection if no other request starts."""
        self._answering -= 1
        if not self._answering and not self._transport.is_closing():
            self.idle.add(self)

    def close_idle(self) -> None:
        """Make room for another connection of the same client."""
        self.idle.discard(self)
        self._transport.close()

    def _expect_request(self) -> None:
        """Start the timer, once for all headers of a request."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(self.headers_within_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._answering and not self._transport.is_closing():
            self._transport.close()

    def _watch_reader(self) -> None:
        left = self._transport.get_write_buffer_size()
        self._unread = asyncio.get_running_loop().call_later(self.read_within_s, self._cut_off_unless_read, left)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _cut_off_unless_read(self, before: int) -> None:
        if self._transport.get_write_buffer_size() <= before - _LEAST_READ:
            self._watch_reader()
            return
        self._unread = None
        # A normal close would wait for the client to read, and keep the written data in memory until then.
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
