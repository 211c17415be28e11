import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clew.tracelink import (
    Emitter,
    FrameDescriptor,
    TracedStream,
    TraceIdGenerator,
    TraceLinkSet,
    decompose,
    read_stream,
)

NOON = 1_767_960_000_000
Message = FrameDescriptor | TraceLinkSet


class Wire:
    """An emitter, and what came out of it once it was closed."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.messages: list[Message] = []


@contextmanager
def open_wire() -> Iterator[Wire]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(30)
        wire = Wire(Emitter(listener.getsockname()))
        yield wire
        sent = wire.emitter.close(30).sent
        while len(wire.messages) < sent:
            wire.messages.extend(read_stream(listener.recv(65_536)))


@pytest.fixture
def ids() -> TraceIdGenerator:
    return TraceIdGenerator(4, clock_ms=lambda: NOON)


def test_a_root_frame_mints_a_new_trace_id_and_has_no_links(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        stream = TracedStream(wire.emitter, ids, stream_id=1, epoch=2)
        first, second = stream.root(0, timestamp_ns=77), stream.root(1)
    assert first != second
    assert decompose(first).node_id == 4
    assert wire.messages == [FrameDescriptor(1, 2, 0, 77, trace_id=first), FrameDescriptor(1, 2, 1, trace_id=second)]


def test_a_filter_reuses_the_trace_id_and_emits_no_links(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        source = TracedStream(wire.emitter, ids, stream_id=1, epoch=2)
        filtered = TracedStream(wire.emitter, ids, stream_id=5, epoch=2)
        trace_id = source.root(0)
        assert filtered.derive(0, trace_id) == trace_id
    assert wire.messages == [FrameDescriptor(1, 2, 0, trace_id=trace_id), FrameDescriptor(5, 2, 0, trace_id=trace_id)]


def test_a_join_mints_and_links_to_all_parents_in_order_with_the_place_of_its_frame(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        joined = TracedStream(wire.emitter, ids, stream_id=5, epoch=2)
        trace_id = joined.join(9, [300, 100, 200])
    assert trace_id not in {300, 100, 200, 0}
    assert wire.messages == [
        FrameDescriptor(5, 2, 9, trace_id=trace_id),
        TraceLinkSet(5, 2, 9, trace_id, (300, 100, 200)),
    ]


def test_a_join_names_a_parent_once_and_leaves_untraced_ones_out(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        joined = TracedStream(wire.emitter, ids, stream_id=5, epoch=2)
        linked = joined.join(0, [100, 0, 100, 200])
        unlinked = joined.join(1, [0, 0])
    links = [message for message in wire.messages if isinstance(message, TraceLinkSet)]
    assert links == [TraceLinkSet(5, 2, 0, linked, (100, 200))]
    assert unlinked not in {0, linked}


def test_rerooting_links_a_new_trace_to_its_only_parent(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        trace_id = TracedStream(wire.emitter, ids, stream_id=5, epoch=2).reroot(0, 100)
    assert trace_id != 100
    assert TraceLinkSet(5, 2, 0, trace_id, (100,)) in wire.messages


def test_trace_ids_go_on_over_a_change_of_epoch(ids: TraceIdGenerator) -> None:
    with open_wire() as wire:
        before = TracedStream(wire.emitter, ids, stream_id=1, epoch=1).root(0)
        after = TracedStream(wire.emitter, ids, stream_id=1, epoch=2).root(0)
    assert after > before


def test_a_stage_goes_on_untraced_when_no_ids_can_be_had() -> None:
    exhausted = TraceIdGenerator(4, clock_ms=lambda: NOON, until_ms=NOON)
    with open_wire() as wire:
        stream = TracedStream(wire.emitter, exhausted, stream_id=1, epoch=2)
        assert (stream.root(0), stream.join(1, [5, 6]), stream.derive(2, 7)) == (0, 0, 7)
        assert stream.untraced == 2
    assert wire.messages == [FrameDescriptor(1, 2, 0), FrameDescriptor(1, 2, 1), FrameDescriptor(1, 2, 2, trace_id=7)]
