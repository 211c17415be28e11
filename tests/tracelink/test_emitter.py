import hashlib
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clew.tracelink import (
    Emitter,
    EmitterCounts,
    FrameDescriptor,
    SkipCounts,
    TraceLinkSet,
    read_stream,
    write_frame,
)
from clew.tracelink.emitter import DatagramSender
from clew.tracelink.ring import RecordRing

PATIENCE = 30
"""Seconds that a test waits before it fails; nothing takes that long."""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        bound.settimeout(PATIENCE)
        yield bound


@pytest.fixture
def deaf_address() -> tuple[str, int]:
    """An address without a listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        address: tuple[str, int] = bound.getsockname()
        return address


@contextmanager
def emitting(address: tuple[str, int], *, datagram_bytes: int = 8192, poll_seconds: float = 0.005) -> Iterator[Emitter]:
    with Emitter(address, datagram_bytes=datagram_bytes, poll_seconds=poll_seconds) as emitter:
        yield emitter
        emitter.close(PATIENCE)


def receive(listener: socket.socket, count: int) -> tuple[list[FrameDescriptor | TraceLinkSet], int]:
    """Messages, and the datagrams that they came in."""
    messages: list[FrameDescriptor | TraceLinkSet] = []
    skips = SkipCounts()
    datagrams = 0
    while len(messages) < count:
        messages.extend(read_stream(listener.recv(65_536), skips))
        datagrams += 1
    assert skips.total == 0
    return messages, datagrams


def produce(emitter: Emitter | None, rows: int) -> str:
    """A little pipeline: the digest of its output must not depend on tracing."""
    digest = hashlib.sha256()
    for seq in range(rows):
        digest.update(seq.to_bytes(8, "little"))
        if emitter is not None:
            emitter.frame(1, 1, seq, trace_id=seq + 1)
            if seq % 3 == 2:
                emitter.links(1, 1, seq, seq + 1, (seq + 2, seq + 3))
    return digest.hexdigest()


def test_messages_arrive_as_they_were_emitted_and_in_order(listener: socket.socket) -> None:
    with emitting(listener.getsockname()) as emitter:
        assert emitter.frame(1, 2, 3, timestamp_ns=4, meta_version=5, trace_id=6)
        assert emitter.links(1, 2, 3, 6, [7, 8])
        assert emitter.frame(1, 2, 4)
    messages, _ = receive(listener, 3)
    assert messages == [
        FrameDescriptor(1, 2, 3, 4, 5, 6),
        TraceLinkSet(1, 2, 3, 6, (7, 8)),
        FrameDescriptor(1, 2, 4),
    ]


def test_a_link_set_names_the_stream_epoch_and_seq_of_its_frame(listener: socket.socket) -> None:
    with emitting(listener.getsockname()) as emitter:
        emitter.frame(11, 12, 13, trace_id=50)
        emitter.links(11, 12, 13, 50, (1, 2))
    (frame, links), _ = receive(listener, 2)
    assert (frame.stream_id, frame.epoch, frame.seq, frame.trace_id) == (
        links.stream_id,
        links.epoch,
        links.seq,
        links.trace_id,
    )


def test_link_sets_share_datagrams(listener: socket.socket) -> None:
    with emitting(listener.getsockname(), datagram_bytes=560, poll_seconds=60) as emitter:
        for seq in range(100):
            emitter.links(1, 1, seq, seq + 1, (seq + 2, seq + 3))
        counts = emitter.close(PATIENCE)
    messages, datagrams = receive(listener, 100)
    assert [message.seq for message in messages] == list(range(100))
    assert counts.datagrams == datagrams == 10


def test_emitting_into_the_ring_asks_for_no_more_memory(deaf_address: tuple[str, int]) -> None:
    """The ring is made beforehand: a thousand messages leave nothing behind that was not there after the first."""
    with Emitter(deaf_address, ring_bytes=1 << 20, poll_seconds=60) as emitter:
        emitter.frame(1, 1, 0, trace_id=1)
        emitter.links(1, 1, 0, 1, (2, 3))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for seq in range(1, 500):
            emitter.frame(1, 1, seq, trace_id=1)
            emitter.links(1, 1, seq, 1, (2, 3))
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert emitter.counts.accepted == 1000
        assert grown < 8_000


def test_messages_share_datagrams(listener: socket.socket) -> None:
    with emitting(listener.getsockname(), datagram_bytes=480, poll_seconds=60) as emitter:
        for seq in range(100):
            emitter.frame(1, 1, seq)
        counts = emitter.close(PATIENCE)
    messages, datagrams = receive(listener, 100)
    assert [message.seq for message in messages] == list(range(100))
    assert counts.datagrams == datagrams <= 11
    assert counts == EmitterCounts(accepted=100, dropped=0, refused=0, sent=100, lost=0, datagrams=datagrams, errors=0)


def test_a_link_set_longer_than_a_shared_datagram_travels_alone(listener: socket.socket) -> None:
    parents = tuple(range(1, 5001))
    with emitting(listener.getsockname(), datagram_bytes=480) as emitter:
        emitter.frame(1, 1, 1)
        assert emitter.links(1, 1, 1, 9, parents)
    messages, _ = receive(listener, 2)
    assert messages[1] == TraceLinkSet(1, 1, 1, 9, parents)


def test_a_link_set_that_fits_no_datagram_is_refused_and_counted(listener: socket.socket) -> None:
    with emitting(listener.getsockname()) as emitter:
        assert not emitter.links(1, 1, 1, 9, range(1, 9000))
        assert emitter.counts.refused == 1


def test_nothing_that_a_producer_passes_makes_an_emitter_raise(deaf_address: tuple[str, int]) -> None:
    with emitting(deaf_address) as emitter:
        mistakes: list[object] = [None, "x", -1, 2**64, 1.5, [], object()]
        for mistake in mistakes:
            assert not emitter.frame(mistake, 1, 1)  # type: ignore[arg-type]
            assert not emitter.links(1, 1, 1, mistake, (1, 2))  # type: ignore[arg-type]
            assert not emitter.links(1, 1, 1, 1, mistake)  # type: ignore[arg-type]
        assert not emitter.links(1, 1, 1, 0, (1, 2))
        assert not emitter.links(1, 1, 1, 1, (2, 0))
        assert not emitter.links(1, 1, 1, 1, (2, 2))
        assert emitter.counts.refused == 3 * len(mistakes) + 3
        assert emitter.counts.accepted == 0


def test_a_full_ring_drops_and_counts_and_keeps_what_it_had(listener: socket.socket) -> None:
    emitter = Emitter(listener.getsockname(), ring_bytes=1024, poll_seconds=60)
    emitted = [emitter.frame(1, 1, seq) for seq in range(1000)]
    counts = emitter.close(PATIENCE)
    accepted = [seq for seq, taken in enumerate(emitted) if taken]
    messages, _ = receive(listener, len(accepted))
    assert [message.seq for message in messages] == accepted
    assert counts.dropped == 1000 - len(accepted) > 0
    assert counts.sent == counts.accepted == len(accepted)


def test_a_closed_emitter_drops_and_can_be_closed_again(listener: socket.socket) -> None:
    emitter = Emitter(listener.getsockname())
    emitter.close()
    assert not emitter.frame(1, 1, 1)
    assert not emitter.links(1, 1, 1, 9, (1, 2))
    assert emitter.close().dropped == 2


def test_a_producer_runs_the_same_with_nobody_listening(deaf_address: tuple[str, int]) -> None:
    emitter = Emitter(deaf_address)
    assert produce(emitter, 20_000) == produce(None, 20_000)
    counts = emitter.close()
    assert counts.accepted + counts.dropped == 20_000 + 6_666
    assert counts.accepted == counts.sent + counts.lost + counts.waiting
    assert counts.errors > 0


def test_a_producer_runs_the_same_with_a_name_that_does_not_resolve_or_a_port_that_does_not_exist() -> None:
    for address in (("no..name", 9), ("127.0.0.1", 70_000)):
        emitter = Emitter(address)
        assert produce(emitter, 1_000) == produce(None, 1_000)
        counts = emitter.close()
        assert counts.sent == 0
        assert counts.accepted == counts.lost + counts.waiting


def test_a_flooding_producer_goes_on_with_a_reader_that_does_not_read(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    emitter = Emitter(listener.getsockname(), ring_bytes=1 << 14, datagram_bytes=1024)
    assert produce(emitter, 50_000) == produce(None, 50_000)
    counts = emitter.close()
    assert counts.accepted + counts.dropped == 50_000 + 16_666
    assert counts.refused == 0
    messages, _ = receive(listener, 1)
    assert all(message.stream_id == 1 for message in messages)


def test_a_slow_reader_receives_whole_messages_and_slows_nobody(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    skips = SkipCounts()
    received: list[int] = []
    end = FrameDescriptor(9, 9, 9)

    def read_slowly() -> None:
        while True:
            messages = list(read_stream(listener.recv(65_536), skips))
            if end in messages:
                return
            received.extend(message.seq for message in messages)
            hashlib.pbkdf2_hmac("sha256", b"slow", b"reader", 20_000)

    reader = threading.Thread(target=read_slowly)
    reader.start()
    emitter = Emitter(listener.getsockname(), datagram_bytes=1024)
    assert produce(emitter, 20_000) == produce(None, 20_000)
    counts = emitter.close()
    while reader.is_alive():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knock:
            knock.sendto(end.encode(), listener.getsockname())
        reader.join(0.01)
    assert counts.accepted + counts.dropped == 20_000 + 6_666
    assert skips.total == 0
    assert received == sorted(received)


def test_what_is_waiting_at_the_end_is_sent_within_the_time_given_and_no_longer(listener: socket.socket) -> None:
    for seconds, expected in ((0, 0), (PATIENCE, 100)):
        ring = RecordRing(1 << 16)
        for seq in range(100):
            write_frame(ring.buffer, ring.claim(48), 1, 1, seq, None, None, 0)
            ring.commit(48)
        sender = DatagramSender(ring, listener.getsockname(), datagram_bytes=1024, poll_seconds=60)
        sender.stop(seconds)
        sender.start()
        sender.join(PATIENCE)
        assert (sender.sent, sender.lost, ring.is_empty) == (expected, 0, expected == 100)


def test_an_emitter_that_is_forgotten_ends_its_thread(listener: socket.socket) -> None:
    emitter = Emitter(listener.getsockname())
    emitter.frame(1, 1, 7)
    sender = emitter._sender
    del emitter
    sender.join(PATIENCE)
    assert not sender._thread.is_alive()
    assert receive(listener, 1)[0] == [FrameDescriptor(1, 1, 7)]
