"""Sends frames and links from a Python process, without ever blocking it.

A message goes into a ring; a thread takes messages out of the ring and sends several in one datagram.
"""

import socket
import threading
import time
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from clew.deferred import dataclass
from clew.tracelink.frame_descriptor import FRAME_LENGTH, write_frame
from clew.tracelink.ids import UNTRACED
from clew.tracelink.link_set import link_set_length, write_link_set
from clew.tracelink.ring import FULL, RecordRing
from clew.tracelink.sealing import ENVELOPE_LENGTH, write_envelope

Address = tuple[str, int]
"""Host and port."""

LARGEST_DATAGRAM = 65_507
"""What fits into a UDP datagram over IPv4."""

_LARGEST_PORT: Final = 65_535
"""Resolving an address takes larger numbers too, and gives another port."""
_SEND_TIMEOUT_SECONDS: Final = 0.1
_REOPEN_AFTER_SECONDS: Final = 1.0


class DatagramSender:
    """Sends what is in a ring until it is stopped. Errors are counted, and their messages dropped.

    It looks into the ring at intervals instead of being woken, since waking it would take a lock in the producer; and
    after a datagram with much room left it lets the interval pass, so that the next one fills.
    """

    def __init__(
        self, ring: RecordRing, address: Address, *, datagram_bytes: int, poll_seconds: float, key: bytes | None = None
    ) -> None:
        self._ring = ring
        self._address = address
        self._key = key
        self._start = ENVELOPE_LENGTH if key is not None else 0
        self._limit = min(datagram_bytes, LARGEST_DATAGRAM - self._start)
        self._nearly_full = self._limit // 2
        self._poll_seconds = poll_seconds
        self._datagram = bytearray(LARGEST_DATAGRAM)
        self._messages = memoryview(self._datagram)[self._start :]
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
        """Send what is left, for up to the timeout, and end. Does not wait for the end."""
        if not self._stopping.is_set():
            self._give_up_at = time.monotonic() + timeout_seconds
            self._stopping.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end, for up to the timeout."""
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
        length, count = self._ring.take(self._messages, self._limit)
        if not count:
            return 0
        end = self._start + length
        if self._key is not None:
            write_envelope(self._datagram, end, self._key, time.time_ns())
        if self._deliver(memoryview(self._datagram)[:end]):
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
        """A refusal concerns an earlier datagram that was not received; this one has not been tried yet."""
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
        raise OSError(f"{port} is not a port")
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    connection = socket.socket(family, kind, protocol)
    try:
        connection.settimeout(_SEND_TIMEOUT_SECONDS)
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


COLLECTOR_ADDRESS: Address = ("127.0.0.1", 9904)
"""Where a collector listens by default."""

_LAST_SECONDS = 5.0
"""How long an emitter keeps sending after it was garbage collected. Nothing waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterCounts:
    """Counts of messages. Every message is in exactly one of accepted, dropped and refused."""

    accepted: int
    """Taken into the ring."""
    dropped: int
    """Dropped, because the ring was full or the emitter closed."""
    refused: int
    """Refused, because a message cannot have these values or be that long."""
    sent: int
    """Of those accepted: handed to the network. Datagrams can still be lost on their way."""
    lost: int
    """Of those accepted: lost, because the network did not accept them."""
    datagrams: int
    """How many datagrams carried those sent."""
    errors: int
    """How often the network reported a problem; having no listener is one."""

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
        key: str | bytes | None = None,
    ) -> None:
        """`key` is the key that the collector shares with its senders; without it, datagrams are not signed."""
        secret = key.encode() if isinstance(key, str) else key
        self._ring = RecordRing(ring_bytes)
        self._buffer = self._ring.buffer
        room = LARGEST_DATAGRAM if secret is None else LARGEST_DATAGRAM - ENVELOPE_LENGTH
        self._longest = min(self._ring.largest_record, room)
        self._accepted = 0
        self._dropped = 0
        self._refused = 0
        self._closed = False
        self._sender = DatagramSender(
            self._ring, address, datagram_bytes=datagram_bytes, poll_seconds=poll_seconds, key=secret
        )
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
        """Emit a FrameDescriptor. False if it was dropped or refused; a producer may ignore that."""
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
        """Emit a TraceLinkSet. False if it was dropped or refused; a producer may ignore that."""
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
        """The counts of messages so far."""
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
        """Send what is waiting, for up to the timeout, and end. The rest is lost."""
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
