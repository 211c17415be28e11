"""The reference designs from end to end: stages, an emitter, a collector, a database, questions."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import (
    Bounds,
    Collector,
    CollectorSettings,
    Direction,
    Emitter,
    LeasedTraceIds,
    TracedStream,
    TraceLinkStores,
    ask_lineage,
)

PATIENCE = 30
SOURCE, FILTERED, JOINED, SUMMED = 1, 2, 3, 4


@pytest.fixture
def tracing(url: str) -> Iterator[TraceLinkStores]:
    with open_trace_link_stores(url) as stores:
        yield stores


@contextmanager
def collected(tracing: TraceLinkStores, messages: int) -> Iterator[Emitter]:
    """An emitter whose messages are in the database afterwards."""
    stop = threading.Event()
    with Collector(("127.0.0.1", 0), tracing.writer, CollectorSettings(batch_ms=10)) as collector:
        running = threading.Thread(target=collector.run, args=(stop,))
        running.start()
        try:
            with Emitter(collector.address) as emitter:
                yield emitter
                assert emitter.close(PATIENCE).sent == messages
            pause = threading.Event()
            for _ in range(PATIENCE * 200):
                if collector.counts.received >= messages:
                    break
                pause.wait(0.005)
        finally:
            stop.set()
            running.join(PATIENCE)
    assert collector.counts.received == messages


def test_filter_join_and_window_give_the_lineage_that_is_written_of_them(tracing: TraceLinkStores) -> None:
    with (
        LeasedTraceIds(tracing.node_leases, policy=tracing.lease_policy) as ids,
        collected(tracing, messages=4 + 3 + 2 + 1) as emitter,
    ):
        source, filtered, joined, summed = (
            TracedStream(emitter, ids, stream_id=stream_id, epoch=1) for stream_id in (SOURCE, FILTERED, JOINED, SUMMED)
        )
        roots = [source.root(seq, timestamp_ns=100 + seq) for seq in range(4)]
        kept = [filtered.derive(seq, roots[seq], timestamp_ns=200 + seq) for seq in range(3)]
        pair = joined.join(0, kept[:2], timestamp_ns=300)
        total = summed.integrate(0, {SOURCE: Bounds.of_seq(1, 3)}, in_epoch=1, timestamp_ns=400)
        assert summed.windows.flush(tracing.writer) == 1
    assert kept == roots[:3]

    chain = [(f.stream_id, f.seq) for f in tracing.reader.frames([roots[0]])]
    assert chain == [(SOURCE, 0), (FILTERED, 0)]
    assert set(ask_lineage(tracing.reader, pair).graph.links) == {(pair, roots[0]), (pair, roots[1])}
    assert list(tracing.reader.parents([roots[0]])) == []

    assert set(ask_lineage(tracing.reader, total).leaves) == set(roots[1:])
    assert tracing.expander.expand().links == 3
    assert set(ask_lineage(tracing.reader, total).leaves) == set(roots[1:])
    down = ask_lineage(tracing.reader, roots[1], Direction.DOWN)
    assert {node.trace_id for node in down.graph.nodes} == {roots[1], pair, total}


def test_a_new_epoch_of_a_stream_goes_on_with_trace_ids(tracing: TraceLinkStores) -> None:
    with (
        LeasedTraceIds(tracing.node_leases, policy=tracing.lease_policy) as ids,
        collected(tracing, messages=3) as emitter,
    ):
        first = TracedStream(emitter, ids, stream_id=SOURCE, epoch=1).root(0, timestamp_ns=1)
        again = TracedStream(emitter, ids, stream_id=SOURCE, epoch=2)
        second = again.root(0, timestamp_ns=2)
        carried = again.derive(1, first, timestamp_ns=3)
    assert second > first == carried
    assert [(f.epoch, f.seq) for f in tracing.reader.frames([first])] == [(1, 0), (2, 1)]
