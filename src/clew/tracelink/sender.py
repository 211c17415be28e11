"""The thread behind an emitter: takes messages out of the ring and sends them, several to a datagram."""

import socket
import threading
import time
from typing import Final

from clew.tracelink.ring import RecordRing

Address = tuple[str, int]
"""Host and port."""

LARGEST_DATAGRAM = 65_507
"""What fits into a UDP datagram over IPv4."""

_LARGEST_PORT: Final = 65_535
"""Resolving an address takes larger numbers too, and gives another port."""
_SEND_TIMEOUT_SECONDS: Final = 0.1
_REOPEN_AFTER_SECONDS: Final = 1.0


class DatagramSender:
    """Sends what is in a ring until it is stopped. Whatever goes wrong is counted, and what it held is given up.

    It looks into the ring at intervals instead of being woken, since waking it would take a lock in the producer; and
    after a datagram with much room left it lets the interval pass, so that the next one fills.
    """

    def __init__(self, ring: RecordRing, address: Address, *, datagram_bytes: int, poll_seconds: float) -> None:
        self._ring = ring
        self._address = address
        self._limit = min(datagram_bytes, LARGEST_DATAGRAM)
        self._nearly_full = self._limit // 2
        self._poll_seconds = poll_seconds
        self._datagram = bytearray(LARGEST_DATAGRAM)
        self._socket: socket.socket | None = None
        self._reopen_at = 0.0
        self._stopping = threading.Event()
        self._give_up_at = 0.0
        self._thread = threading.Thread(target=self._run, name="clew-tracelink-sender", daemon=True)
        self.sent = 0
        self.datagrams = 0
        self.lost = 0
        self.errors = 0

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Send what is left, for no longer than the timeout, and end. Does not wait for that."""
        if not self._stopping.is_set():
            self._give_up_at = time.monotonic() + timeout_seconds
            self._stopping.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end, for no longer than the timeout."""
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._send_one() < self._nearly_full:
                    self._stopping.wait(self._poll_seconds)
            while time.monotonic() < self._give_up_at and self._send_one():
                pass
        finally:
            self._close_socket()

    def _send_one(self) -> int:
        """Send one datagram and return its length, which is 0 if there was nothing to send."""
        length, count = self._ring.take(self._datagram, self._limit)
        if not count:
            return 0
        if self._deliver(memoryview(self._datagram)[:length]):
            self.sent += count
            self.datagrams += 1
        else:
            self.lost += count
        return length

    def _deliver(self, datagram: memoryview) -> bool:
        connection = self._connection()
        if connection is None:
            return False
        try:
            connection.send(datagram)
        except ConnectionRefusedError:
            self.errors += 1
            return self._send_again(connection, datagram)
        except OSError:
            self.errors += 1
            return False
        return True

    def _send_again(self, connection: socket.socket, datagram: memoryview) -> bool:
        """A refusal tells of an earlier datagram that nobody received; this one has not been tried yet."""
        try:
            connection.send(datagram)
        except OSError:
            return False
        return True

    def _connection(self) -> socket.socket | None:
        if self._socket is None and time.monotonic() >= self._reopen_at:
            try:
                self._socket = _connect(self._address)
            except (OSError, UnicodeError):
                self.errors += 1
                self._reopen_at = time.monotonic() + _REOPEN_AFTER_SECONDS
        return self._socket

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connect(address: Address) -> socket.socket:
    host, port = address
    if not 0 < port <= _LARGEST_PORT:
        raise OSError(f"{port} is no port")
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    connection = socket.socket(family, kind, protocol)
    try:
        connection.settimeout(_SEND_TIMEOUT_SECONDS)
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection
