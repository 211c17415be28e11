"""Datagrams on their way from the network to the store: as many as there is room for, in order."""

import threading
from collections import deque
from collections.abc import Sequence

Received = tuple[bytes, int]
"""A datagram, and when it came in nanoseconds since 1970."""


class DatagramBuffer:
    """Between one thread that receives and one that writes. What does not fit is refused, never waited for."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._datagrams: deque[Received] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, datagram: bytes, received_ns: int) -> bool:
        """Take a datagram in; False where there is no room."""
        with self._changed:
            if self._bytes + len(datagram) > self._capacity:
                return False
            self._datagrams.append((datagram, received_ns))
            self._bytes += len(datagram)
            if len(self._datagrams) == 1:
                self._changed.notify()
            return True

    def wait(self, seconds: float) -> bool:
        """Wait until there is something, for no longer than so many seconds; whether there is."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._datagrams), seconds)

    def take(self, at_most_bytes: int) -> Sequence[Received]:
        """The oldest datagrams, up to about so many bytes."""
        taken: list[Received] = []
        size = 0
        with self._changed:
            while self._datagrams and size < at_most_bytes:
                taken.append(self._datagrams.popleft())
                size += len(taken[-1][0])
            self._bytes -= size
        return taken
