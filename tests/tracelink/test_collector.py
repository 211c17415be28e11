import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.runs import STORE_REFUSED_VALUE, STORE_UNAVAILABLE
from clew.tracelink import (
    Collector,
    CollectorCounts,
    CollectorSettings,
    Emitter,
    FrameDescriptor,
    FrameRow,
    Link,
    TraceBatch,
    TraceLinkSet,
    bind_address,
    stages_of,
)
from clew.tracelink.frames import UnsignedWrite

PATIENCE = 30
"""Seconds that a test waits before it fails; nothing takes that long."""


class MemoryWriter:
    """Keeps what it is given, as a store does, and can be made to be away."""

    def __init__(self) -> None:
        self.frames: dict[tuple[int, int, int], FrameRow] = {}
        self.links: dict[Link, None] = {}
        self.sizes: list[int] = []
        self.failing: Exception | None = None
        self.asked = threading.Event()
        self.may_write = threading.Event()
        self.may_write.set()
        self.wrote = threading.Event()

    def write(self, batch: TraceBatch) -> int:
        self.asked.set()
        assert self.may_write.wait(PATIENCE)
        if self.failing is not None:
            raise self.failing
        before = len(self.frames) + len(self.links)
        for row in batch.frames:
            self.frames.setdefault(row[:3], row)
        self.links.update(dict.fromkeys(batch.links))
        self.sizes.append(len(batch))
        self.wrote.set()
        return len(self.frames) + len(self.links) - before

    def write_unsigned(self, batch: TraceBatch) -> UnsignedWrite:
        return UnsignedWrite(self.write(batch), 0)


AWAY = TransientFailure(STORE_UNAVAILABLE.anywhere(reason="gone for lunch"))


class Running:
    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.end: CollectorCounts | None = None

    def _run(self) -> None:
        self.end = self.collector.run(self.stop)

    def finish(self) -> CollectorCounts:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert self.end is not None
        return self.end

    def has(self, **counts: int) -> bool:
        return all(getattr(self.collector.counts, name) >= count for name, count in counts.items())


@contextmanager
def collecting(writer: MemoryWriter, **settings: float) -> Iterator[Running]:
    with Collector(("127.0.0.1", 0), writer, CollectorSettings(**settings)) as collector:  # type: ignore[arg-type]
        running = Running(collector)
        running.thread.start()
        try:
            yield running
        finally:
            writer.may_write.set()
            running.finish()


def send(running: Running, *datagrams: bytes) -> None:
    """Sends as quickly as the collector receives, so that the system loses nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number, datagram in enumerate(datagrams, start=running.collector.counts.datagrams + 1):
            sender.sendto(datagram, running.collector.address)
            until(running, datagrams=number)


def until(running: Running, **counts: int) -> None:
    pause = threading.Event()
    for _ in range(PATIENCE * 1000):
        if running.has(**counts):
            return
        pause.wait(0.001)
    raise AssertionError(f"still {running.collector.counts}")


def frames(*seqs: int, stream_id: int = 1) -> bytes:
    return b"".join(FrameDescriptor(stream_id, 1, seq, timestamp_ns=5, trace_id=100 + seq).encode() for seq in seqs)


def test_frames_and_links_of_an_emitter_arrive_in_the_store() -> None:
    writer = MemoryWriter()
    with collecting(writer) as running:
        with Emitter(running.collector.address) as emitter:
            emitter.frame(7, 1, 1, timestamp_ns=50, trace_id=11)
            emitter.frame(7, 1, 2, trace_id=12)
            emitter.frame(8, 1, 1, timestamp_ns=60, trace_id=13)
            emitter.links(8, 1, 1, 13, (11, 12))
            emitter.close(PATIENCE)
        until(running, written=5)
        counts = running.finish()
    assert writer.frames[7, 1, 1] == (7, 1, 1, 7, 50, 11, 0)
    assert writer.frames[7, 1, 2][4] > 1_700_000_000_000_000_000
    assert list(writer.links) == [(13, 11), (13, 12)]
    assert (counts.frames, counts.link_sets, counts.received, counts.written) == (3, 1, 4, 5)
    assert (counts.bad, counts.unknown_schema, counts.dropped, counts.overrun, counts.failures) == (0, 0, 0, 0, 0)


def test_what_comes_within_an_interval_is_one_transaction() -> None:
    writer = MemoryWriter()
    with collecting(writer, batch_ms=60_000) as running:
        send(running, *(frames(seq) for seq in range(50)))
        counts = running.finish()
    assert writer.sizes == [50]
    assert counts.transactions == 1


def test_a_frame_is_of_the_stage_that_publishes_its_stream() -> None:
    writer = MemoryWriter()
    with collecting(writer, stages=stages_of(["8=3", "9=3"])) as running:  # type: ignore[arg-type]
        with Emitter(running.collector.address) as emitter:
            for stream in (7, 8, 9):
                emitter.frame(stream, 1, 1, trace_id=11)
            emitter.close(PATIENCE)
        until(running, written=3)
        running.finish()
    assert {key[0]: row[3] for key, row in writer.frames.items()} == {7: 7, 8: 3, 9: 3}


@pytest.mark.parametrize("text", ["7", "7=", "a=1", "-1=1", f"{2**32}=1", f"1={2**63}", "1=2=3"])
def test_a_stage_that_is_not_two_numbers_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="InvalidStage"):
        stages_of([text])


def test_large_batches_are_split_so_that_transactions_stay_short() -> None:
    writer = MemoryWriter()
    with collecting(writer, batch_ms=60_000) as running:
        send(running, *(frames(*range(start, start + 1000)) for start in range(0, 60_000, 1000)))
        counts = running.finish()
    assert len(writer.frames) == 60_000
    assert counts.transactions == 6
    assert max(writer.sizes) <= 11_000


def test_mixed_streams_are_gated_and_garbage_is_counted() -> None:
    writer = MemoryWriter()
    foreign = bytes.fromhex("0400010063000000") + b"none of ours"
    other_template = bytes.fromhex("0400090088030000") + b"????"
    no_parents = TraceLinkSet(1, 1, 1, 9, (8,)).encode()[:38] + b"\0\0"
    untraced = FrameDescriptor(1, 1, 77).encode()
    with collecting(writer) as running:
        send(running, b"", b"\1", b"\xff" * 1000, foreign, frames(1) + foreign, other_template)
        send(running, frames(2) + no_parents + frames(3), frames(4)[:30], untraced + frames(5))
        until(running, written=4)
        counts = running.finish()
    assert sorted(key[2] for key in writer.frames) == [1, 2, 3, 5]
    assert (counts.frames, counts.untraced, counts.written) == (5, 1, 4)
    assert (counts.bad, counts.unknown_schema) == (3, 4)
    assert counts.datagrams == 9


def test_what_comes_twice_is_counted_as_known() -> None:
    writer = MemoryWriter()
    with collecting(writer) as running:
        send(running, frames(1, 2))
        until(running, written=2)
        send(running, frames(2, 3))
        until(running, written=3)
        counts = running.finish()
    assert (counts.written, counts.known) == (3, 1)


def test_a_store_that_goes_away_and_comes_back_loses_nothing_that_there_is_room_for() -> None:
    writer = MemoryWriter()
    writer.failing = AWAY
    with collecting(writer, batch_ms=10) as running:
        send(running, *(frames(seq) for seq in range(100)))
        until(running, failures=2)
        writer.failing = None
        until(running, written=100)
        counts = running.finish()
    assert sorted(key[2] for key in writer.frames) == list(range(100))
    assert counts.dropped == 0
    assert counts.failures >= 2


def test_beyond_its_room_a_collector_drops_and_counts_and_goes_on() -> None:
    writer = MemoryWriter()
    writer.may_write.clear()
    size = len(frames(0)) * 10
    with collecting(writer, batch_ms=10, buffer_bytes=size * 5) as running:
        send(running, frames(*range(10)))
        assert writer.asked.wait(PATIENCE)
        send(running, *(frames(*range(start, start + 10)) for start in range(10, 210, 10)))
        until(running, dropped=150)
        writer.may_write.set()
        until(running, written=60)
        send(running, frames(999))
        until(running, written=61)
        counts = running.finish()
    assert counts.received == 211
    assert (counts.written, counts.dropped) == (61, 150)
    assert sorted(key[2] for key in writer.frames) == [*range(60), 999]


def test_a_batch_that_a_store_refuses_for_good_is_dropped_and_the_next_one_written() -> None:
    writer = MemoryWriter()
    writer.failing = UserError(STORE_REFUSED_VALUE.anywhere(reason="no"))
    with collecting(writer, batch_ms=10) as running:
        send(running, frames(1, 2))
        until(running, dropped=2)
        writer.failing = None
        send(running, frames(3))
        until(running, written=1)
        counts = running.finish()
    assert (counts.dropped, counts.failures, counts.written) == (2, 1, 1)


def test_stopping_writes_what_has_come_and_gives_up_a_store_that_stays_away() -> None:
    writer = MemoryWriter()
    with collecting(writer, batch_ms=60_000) as running:
        send(running, frames(1, 2, 3))
        assert writer.frames == {}
        assert running.finish().written == 3
    writer.failing = AWAY
    with collecting(writer, batch_ms=60_000, flush_s=0.1) as running:
        send(running, frames(4, 5))
        counts = running.finish()
    assert (counts.written, counts.dropped) == (0, 2)


def produce(emitter: Emitter | None, rows: int) -> str:
    """A little pipeline: the digest of its output must not depend on tracing."""
    digest = hashlib.sha256()
    for seq in range(rows):
        digest.update(seq.to_bytes(8, "little"))
        if emitter is not None:
            emitter.frame(1, 1, seq, trace_id=seq + 1)
            emitter.links(1, 1, seq, seq + 1, (seq + 2, seq + 3))
    return digest.hexdigest()


@pytest.mark.parametrize("state", ["down", "slow", "drowning", "well"])
def test_the_output_of_a_producer_is_the_same_to_the_byte_whatever_its_collector_does(state: str) -> None:
    writer = MemoryWriter()
    if state == "slow":
        writer.may_write.clear()
    room = {"drowning": 1 << 12}.get(state, 1 << 26)
    with collecting(writer, batch_ms=10, buffer_bytes=room) as running:
        address = running.collector.address
        if state == "down":
            running.finish()
            running.collector.close()
        emitter = Emitter(address)
        assert produce(emitter, 20_000) == produce(None, 20_000)
        sent = emitter.close()
    assert sent.accepted + sent.dropped == 40_000
    assert sent.refused == 0
    if state != "down":
        counts = running.collector.counts
        assert counts.received == counts.link_sets + counts.frames <= sent.sent
        assert counts.bad == counts.unknown_schema == 0


@pytest.mark.parametrize("text", ["127.0.0.1:0", "localhost:9904", "[::1]:9904", "127.8.8.8:1"])
def test_addresses_of_this_machine_alone_need_no_leave(text: str) -> None:
    assert bind_address(text, allow_remote=False)[1] == int(text.rpartition(":")[2])


@pytest.mark.parametrize("text", ["0.0.0.0:9904", "192.0.2.7:9904", "[::]:9904"])
def test_addresses_that_others_reach_have_to_be_allowed(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        bind_address(text, allow_remote=False)
    assert refusal.value.code == "RemoteNotAllowed"
    assert bind_address(text, allow_remote=True)[0] in text


@pytest.mark.parametrize("text", ["", "9904", ":9904", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "no..name:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        bind_address(text, allow_remote=True)
    assert refusal.value.code == "AddressUnusable"
    assert "Errno" not in refusal.value.diagnostic.message
    assert ("ports go up to 65535" in refusal.value.diagnostic.message) == text.endswith("70000")


def test_two_collectors_do_not_share_an_address() -> None:
    with Collector(("127.0.0.1", 0), MemoryWriter()) as first, pytest.raises(UserError, match="cannot listen at") as no:
        Collector(first.address, MemoryWriter())
    assert no.value.code == "AddressUnusable"
    assert no.value.diagnostic.message.endswith(": address already in use")
