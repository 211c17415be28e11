"""Sending frames and links from a Python process, without ever being in its way.

The producer writes a message into a ring and goes on: no lock, no system call, no allocation to speak of. A thread of
its own sends. If the ring is full because sending cannot keep up, the message is dropped and counted; if it cannot be a
message at all, it is refused and counted. Nothing is raised, nothing waits, and what is lost is lost to tracing alone.
"""

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from clew.tracelink.frame_descriptor import FRAME_LENGTH, write_frame
from clew.tracelink.layout import UNTRACED
from clew.tracelink.link_set import link_set_length, write_link_set
from clew.tracelink.ring import FULL, RecordRing
from clew.tracelink.sender import LARGEST_DATAGRAM, Address, DatagramSender

COLLECTOR_ADDRESS: Address = ("127.0.0.1", 9904)
"""Where a collector listens unless it is told otherwise."""

_LAST_SECONDS = 5.0
"""How long a forgotten emitter goes on sending. Nobody waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterCounts:
    """What became of the messages. Every message is in exactly one of accepted, dropped and refused."""

    accepted: int
    """Taken into the ring."""
    dropped: int
    """Not taken, since the ring was full or the emitter closed."""
    refused: int
    """Not taken, since a message cannot have these values or be that long."""
    sent: int
    """Of those accepted: handed to the network. Datagrams can still be lost on their way."""
    lost: int
    """Of those accepted: given up, since the network did not take them."""
    datagrams: int
    """How many datagrams carried those sent."""
    errors: int
    """How often the network reported a problem; nobody listening is one."""

    @property
    def waiting(self) -> int:
        """Of those accepted: still in the ring."""
        return self.accepted - self.sent - self.lost


class Emitter:
    """Emits the messages of one producer thread; each thread has its own. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        address: Address = COLLECTOR_ADDRESS,
        *,
        ring_bytes: int = 1 << 20,
        datagram_bytes: int = 8192,
        poll_seconds: float = 0.005,
    ) -> None:
        self._ring = RecordRing(ring_bytes)
        self._buffer = self._ring.buffer
        self._longest = min(self._ring.largest_record, LARGEST_DATAGRAM)
        self._accepted = 0
        self._dropped = 0
        self._refused = 0
        self._closed = False
        self._sender = DatagramSender(self._ring, address, datagram_bytes=datagram_bytes, poll_seconds=poll_seconds)
        self._sender.start()
        weakref.finalize(self, self._sender.stop, _LAST_SECONDS)

    def frame(
        self,
        stream_id: int,
        epoch: int,
        seq: int,
        timestamp_ns: int | None = None,
        meta_version: int | None = None,
        trace_id: int = UNTRACED,
    ) -> bool:
        """Emit a FrameDescriptor. False if it was dropped or refused, which a producer need not look at."""
        try:
            offset = FULL if self._closed else self._ring.claim(FRAME_LENGTH)
            if offset == FULL:
                self._dropped += 1
                return False
            write_frame(self._buffer, offset, stream_id, epoch, seq, timestamp_ns, meta_version, trace_id)
            self._ring.commit(FRAME_LENGTH)
        except Exception:  # noqa: BLE001 - no mistake in tracing may reach the producer
            self._refused += 1
            return False
        self._accepted += 1
        return True

    def links(self, stream_id: int, epoch: int, seq: int, trace_id: int, parents: Iterable[int]) -> bool:
        """Emit a TraceLinkSet. False if it was dropped or refused, which a producer need not look at."""
        try:
            listed = tuple(parents)
            length = link_set_length(len(listed))
            if length > self._longest:
                self._refused += 1
                return False
            offset = FULL if self._closed else self._ring.claim(length)
            if offset == FULL:
                self._dropped += 1
                return False
            write_link_set(self._buffer, offset, stream_id, epoch, seq, trace_id, listed)
            self._ring.commit(length)
        except Exception:  # noqa: BLE001 - no mistake in tracing may reach the producer
            self._refused += 1
            return False
        self._accepted += 1
        return True

    @property
    def counts(self) -> EmitterCounts:
        """What became of the messages so far."""
        sender = self._sender
        return EmitterCounts(
            sent=sender.sent,
            lost=sender.lost,
            datagrams=sender.datagrams,
            errors=sender.errors,
            accepted=self._accepted,
            dropped=self._dropped,
            refused=self._refused,
        )

    def close(self, timeout_seconds: float = 1.0) -> EmitterCounts:
        """Send what is waiting, for no longer than the timeout, and end. What is waiting then is lost."""
        self._closed = True
        self._sender.stop(timeout_seconds)
        self._sender.join(timeout_seconds)
        return self.counts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
