"""Connections on which no request comes are closed: a client that sends a byte now and then holds nothing for long."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEADERS_WITHIN_S = 15.0


class PunctualH11Protocol(H11Protocol):
    """HTTP/1.1 in which the headers of a request have to be there in time."""

    headers_within_s = HEADERS_WITHIN_S

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(*arguments, **options)
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
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
        super().connection_lost(exc)

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
