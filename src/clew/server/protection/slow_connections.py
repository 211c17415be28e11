"""Connections on which nothing moves are closed: no request comes, or nobody reads the answer.

A client that sends a byte now and then, or takes one, holds nothing for long.
"""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from clew.server.settings import ServerSettings

_LEAST_READ = 64 * 1024
"""Bytes of a waiting answer that have to go out in the time that a reader has, or else all that is left."""
_RESET = struct.pack("ii", 1, 0)


class PunctualH11Protocol(H11Protocol):
    """HTTP/1.1 in which the headers of a request have to be there in time, and answers are read."""

    headers_within_s: float
    read_within_s: float

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(*arguments, **options)
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected. Whatever it does not take at once counts as not read."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=1, low=0)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """The client has sent something."""
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        else:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes no more for the moment."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The client has taken everything."""
        self._stop_watching()
        super().resume_writing()

    def _is_answering(self) -> bool:
        # Before the first request there is no cycle, whatever uvicorn's annotation says.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_request(self) -> None:
        """Start to wait, once for all the bytes of a request's headers."""
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.headers_within_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()

    def _watch_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(self.read_within_s, self._cut_off_unless_read, left)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _cut_off_unless_read(self, before: int) -> None:
        if self.transport.get_write_buffer_size() <= before - _LEAST_READ:
            self._watch_reader()
            return
        self._unread = None
        # An ordinary close would wait for the client to read, and the system would keep what is written until then.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()


def punctual_protocol(settings: ServerSettings) -> type[PunctualH11Protocol]:
    """The protocol with the patience that the settings give it."""

    class Punctual(PunctualH11Protocol):
        headers_within_s = settings.slowest_headers_s
        read_within_s = settings.slowest_reader_s

    return Punctual
