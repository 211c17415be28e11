"""Receives datagrams and hands them to the thread that writes.

Receiving does nothing but that: while the store takes its time, the next datagram is taken from the system, whose own
buffer is small. What the system gave up before it could be received is counted where the system tells (Linux does).
"""

import contextlib
import socket
import struct
import sys
import threading
import time
from types import TracebackType
from typing import Final, Self

from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import ADDRESS_UNUSABLE
from clew.tracelink.collecting.buffer import DatagramBuffer
from clew.tracelink.collecting.counts import CollectorCounts
from clew.tracelink.collecting.reading import count_messages
from clew.tracelink.collecting.settings import CollectorSettings, reason_of
from clew.tracelink.collecting.writing import BatchWriting
from clew.tracelink.records import TraceWriter
from clew.tracelink.sender import Address

_LARGEST: Final = 1 << 16
_RECEIVE_BUFFER: Final = 8 << 20
_LOOK_S: Final = 0.1
"""How often a collector looks whether it is to stop."""
_LAST_S: Final = 1.0
"""How long a collector that stops takes what is on its way; with some producers that never ends."""
_SO_RXQ_OVFL: Final = 40
"""Linux tells with each datagram how many were given up before it. Python has no name for the option."""
_OVERRUN: Final = struct.Struct("=I")


class Collector:
    """Listens from the moment it is made; `run` collects. Use it in a `with` statement."""

    def __init__(self, address: Address, writer: TraceWriter, settings: CollectorSettings | None = None) -> None:
        settings = settings or CollectorSettings()
        self._socket = _listen(address)
        self._buffer = DatagramBuffer(settings.buffer_bytes)
        self._writing = BatchWriting(self._buffer, writer, settings)
        self._counts = CollectorCounts()

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return str(host), int(port)

    @property
    def counts(self) -> CollectorCounts:
        """What became of what came so far."""
        return self._counts + self._writing.counts

    def run(self, stop: threading.Event) -> CollectorCounts:
        """Collect until told to stop; then take what is on its way, write all there is, and tell what became of it."""
        self._writing.start()
        try:
            self._socket.settimeout(_LOOK_S)
            while not stop.is_set():
                self._receive()
            self._socket.setblocking(False)
            last = time.monotonic() + _LAST_S
            while self._receive() and time.monotonic() < last:
                pass
        finally:
            self._writing.finish()
        return self.counts

    def _receive(self) -> bool:
        """Take one datagram from the system; False where none came."""
        try:
            datagram, ancillary, _, _ = self._socket.recvmsg(_LARGEST, socket.CMSG_SPACE(_OVERRUN.size))
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            return True
        if ancillary:
            self._counts.overrun = _OVERRUN.unpack_from(ancillary[0][2])[0]
        self._counts.datagrams += 1
        if not self._buffer.put(datagram, time.time_ns()):
            self._counts.dropped += count_messages(datagram, self._counts)
        return True

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _listen(address: Address) -> socket.socket:
    host, port = address
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                listener.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
        listener.bind(place)
    except (OSError, UnicodeError) as error:
        if listener is not None:
            listener.close()
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=f"{host}:{port}", reason=reason_of(error))) from error
    return listener
