"""The collector: receives datagrams from other programs and writes their frames and links to the store.

One thread receives, another writes; a bounded buffer sits between them. If the store is unavailable for longer than the
buffer lasts, messages are dropped and counted: receiving never waits.
"""

import contextlib
import ipaddress
import logging
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from types import MappingProxyType, TracebackType
from typing import Final, Self

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.tracelink import ADDRESS_UNUSABLE, INVALID_STAGE, REMOTE_NOT_ALLOWED
from clew.tracelink.emitter import Address
from clew.tracelink.frame_descriptor import FrameFields
from clew.tracelink.frames import CollectorWriter, TraceBatch, UnsignedWrite
from clew.tracelink.ids import UNTRACED
from clew.tracelink.link_set import LinkSetFields
from clew.tracelink.sealing import Seal, read_envelope
from clew.tracelink.stream import SkipCounts, read_batch

Received = tuple[bytes, int]
"""A datagram, and when it arrived, in nanoseconds since 1970."""


class DatagramBuffer:
    """A buffer between the thread that receives and the one that writes. Refuses what does not fit, never waits."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._datagrams: deque[Received] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, datagram: bytes, received_ns: int) -> bool:
        """Add a datagram; False if there is no room."""
        with self._changed:
            if self._bytes + len(datagram) > self._capacity:
                return False
            self._datagrams.append((datagram, received_ns))
            self._bytes += len(datagram)
            if len(self._datagrams) == 1:
                self._changed.notify()
            return True

    def wait(self, seconds: float) -> bool:
        """Wait for up to so many seconds until there is something. Returns whether there is."""
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


@dataclass(slots=True, kw_only=True)
class CollectorCounts:
    """Counts of one thread of a collector; their sum is that of the collector.

    Of the messages received every one is untraced, dropped, or made of records that were written, known or refused.
    """

    datagrams: int = 0
    """Datagrams received."""
    frames: int = 0
    """FrameDescriptors received."""
    link_sets: int = 0
    """TraceLinkSets received."""
    bad: int = 0
    """Messages that break a rule, and bytes that are not a message."""
    unknown_schema: int = 0
    """Datagrams skipped from a message of an unknown schema or template on."""
    untraced: int = 0
    """Frames without a trace id, which are not stored."""
    dropped: int = 0
    """Messages dropped because the store was unavailable for longer than the buffer lasts."""
    overrun: int = 0
    """Datagrams that the operating system dropped before they were received, if it says so."""
    written: int = 0
    """Records new in the store: frames, and links one by one."""
    known: int = 0
    """Records that the store already had."""
    transactions: int = 0
    """Transactions that succeeded."""
    forged: int = 0
    """Datagrams with an envelope that the key of the collector does not fit."""
    refused: int = 0
    """Records that name rows of runs, from senders without the key."""
    failures: int = 0
    """Transactions that failed. Their content was tried again."""

    @property
    def received(self) -> int:
        """Messages received."""
        return self.frames + self.link_sets

    def __add__(self, other: "CollectorCounts") -> "CollectorCounts":
        return CollectorCounts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def to_json(self) -> dict[str, int]:
        """All counts."""
        return {"received": self.received} | {field.name: getattr(self, field.name) for field in fields(self)}


_LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings:
    """How a collector works."""

    batch_ms: int = 50
    """How long messages are gathered for one transaction."""
    buffer_bytes: int = 64 << 20
    """How much is buffered while the store is slow or unavailable."""
    flush_s: float = 10.0
    """How long stopping waits for a store that is unavailable."""
    key: bytes | None = field(default=None, repr=False)
    """What senders must hold to say something about rows of runs; without it, nobody can."""
    stages: Mapping[int, int] = field(default_factory=dict)
    """The stage that publishes a stream, by stream. By default it is the stage with the same number."""


def stages_of(texts: Sequence[str]) -> dict[int, int]:
    """The stages that `STREAM=STAGE` texts name, by stream."""
    found = dict[int, int]()
    for text in texts:
        stream, equals, stage = text.partition("=")
        if not (equals and stream.isdecimal() and stage.isdecimal() and int(stream) < 2**32 and int(stage) < 2**63):
            raise UserError(INVALID_STAGE.anywhere(text=text))
        found[int(stream)] = int(stage)
    return found


def reason_of(error: Exception) -> str:
    """The message of an operating system error, without its number."""
    said = error.strerror if isinstance(error, OSError) else None
    return (said or str(error)).lower()


def bind_address(text: str, *, allow_remote: bool) -> Address:
    """The address that `HOST:PORT` names. One that other machines reach has to be allowed: senders are not asked who
    they are."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal():
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason="it is not of the form HOST:PORT"))
    if int(port) > _LARGEST_PORT:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason=f"ports go up to {_LARGEST_PORT}"))
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason=reason_of(error))) from error
    places = [str(place[0]) for *_, place in found]
    if not allow_remote and not all(ipaddress.ip_address(p.partition("%")[0]).is_loopback for p in places):
        raise UserError(REMOTE_NOT_ALLOWED.anywhere(address=text))
    return places[0], int(port)


_EACH_ITS_OWN: Final[Mapping[int, int]] = MappingProxyType({})


def read_datagrams(
    received: Iterable[Received], counts: CollectorCounts, stages: Mapping[int, int] = _EACH_ITS_OWN
) -> TraceBatch:
    """The frames and links of datagrams. A frame without a time gets the time of its arrival.

    Messages name streams, not stages: a stream belongs to the stage with the same number, unless `stages` says which
    one publishes it.
    """
    batch, skips = TraceBatch(), SkipCounts()
    frames: list[FrameFields] = []
    link_sets: list[LinkSetFields] = []
    keep_frame, keep_links, stage_of = batch.frames.append, batch.links.extend, stages.get
    for datagram, received_ns in received:
        read_batch(datagram, frames, link_sets, skips)
        for stream_id, epoch, seq, timestamp_ns, _, trace_id, _ in frames:
            if trace_id == UNTRACED:
                counts.untraced += 1
            else:
                t_ns = received_ns if timestamp_ns is None else timestamp_ns
                keep_frame((stream_id, epoch, seq, stage_of(stream_id, stream_id), t_ns, trace_id, 0))
        for _, _, _, trace_id, parents, _ in link_sets:
            keep_links([(trace_id, parent) for parent in parents])
        counts.frames += len(frames)
        counts.link_sets += len(link_sets)
        frames.clear()
        link_sets.clear()
    _count_skips(skips, counts)
    return batch


def count_messages(datagram: bytes, counts: CollectorCounts) -> int:
    """Count the messages of a datagram that is dropped."""
    frames: list[FrameFields] = []
    link_sets: list[LinkSetFields] = []
    skips = SkipCounts()
    read_batch(read_envelope(datagram, None, 0)[0], frames, link_sets, skips)
    counts.frames += len(frames)
    counts.link_sets += len(link_sets)
    _count_skips(skips, counts)
    return len(frames) + len(link_sets)


def _count_skips(skips: SkipCounts, counts: CollectorCounts) -> None:
    counts.bad += skips.malformed
    counts.unknown_schema += skips.unknown_schemas + skips.unknown_templates


_log = logging.getLogger(__name__)
_BYTES_PER_TRANSACTION = 1 << 19
"""About ten thousand frames: some fifty milliseconds in which no one else can write to a database file."""
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class BatchWriting:
    """Takes datagrams out of the buffer and writes their content until it is told to finish."""

    def __init__(self, buffer: DatagramBuffer, writer: CollectorWriter, settings: CollectorSettings) -> None:
        self.counts = CollectorCounts()
        self._buffer = buffer
        self._writer = writer
        self._settings = settings
        self._stopping = threading.Event()
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="clew-collector-writer", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def finish(self) -> None:
        """Write what is left, for as long as the settings allow, and end. Drops the rest."""
        self._give_up_at = time.monotonic() + self._settings.flush_s
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        interval = self._settings.batch_ms / 1000
        while not self._stopping.is_set():
            if self._buffer.wait(interval) and not self._stopping.wait(interval):
                self._write_some()
        while self._write_some():
            pass

    def _write_some(self) -> bool:
        received = self._buffer.take(_BYTES_PER_TRANSACTION)
        if not received:
            return False
        for seal, datagrams in self._by_seal(received).items():
            before = self.counts.received - self.counts.untraced
            batch = read_datagrams(datagrams, self.counts, self._settings.stages)
            if not self._write(batch, seal):
                self.counts.dropped += self.counts.received - self.counts.untraced - before
        return True

    def _by_seal(self, received: Iterable[Received]) -> dict[Seal, list[Received]]:
        """The datagrams without their envelopes, by what is known about the sender; forged ones are left out."""
        found: dict[Seal, list[Received]] = {Seal.VALID: [], Seal.NONE: []}
        for datagram, received_ns in received:
            messages, seal = read_envelope(datagram, self._settings.key, received_ns)
            if seal is Seal.FORGED:
                self.counts.forged += 1
            else:
                found[seal].append((messages, received_ns))
        return found

    def _write(self, batch: TraceBatch, seal: Seal) -> bool:
        """Write a batch, waiting for a store that is unavailable; False if it had to be dropped."""
        pause = _FIRST_PAUSE_S
        while len(batch):
            try:
                done = self._written(batch, seal)
            except TransientFailure as away:
                self.counts.failures += 1
                _log.warning("the state store does not take what was collected: %s", away)
                if not self._wait(pause):
                    return False
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            except ClewError:
                self.counts.failures += 1
                _log.exception("the state store refuses what was collected")
                return False
            else:
                self.counts.transactions += 1
                self.counts.written += done.written
                self.counts.refused += done.refused
                self.counts.known += len(batch) - done.written - done.refused
                return True
        return True

    def _written(self, batch: TraceBatch, seal: Seal) -> UnsignedWrite:
        if seal is Seal.VALID:
            return UnsignedWrite(self._writer.write(batch), 0)
        return self._writer.write_unsigned(batch)

    def _wait(self, seconds: float) -> bool:
        """Wait before another attempt; False if there is none, because stopping has waited long enough."""
        if not self._stopping.wait(seconds):
            return True
        left = self._give_up_at - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, _FIRST_PAUSE_S))
        return True


_LARGEST: Final = 1 << 16
_RECEIVE_BUFFER: Final = 8 << 20
_LOOK_S: Final = 0.1
"""How often a collector checks whether to stop."""
_LAST_S: Final = 1.0
"""How long a stopping collector still receives; some producers never stop sending."""
_SO_RXQ_OVFL: Final = 40
"""Linux reports with each datagram how many were dropped before it. Python has no name for the option."""
_OVERRUN: Final = struct.Struct("=I")


class Collector:
    """Listens as soon as it is created; `run` collects. Use it in a `with` statement."""

    def __init__(self, address: Address, writer: CollectorWriter, settings: CollectorSettings | None = None) -> None:
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
        """The counts so far."""
        return self._counts + self._writing.counts

    def run(self, stop: threading.Event) -> CollectorCounts:
        """Collect until told to stop, then receive what is on its way and write everything. Returns the counts."""
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
        """Receive one datagram; False if none arrived."""
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
