"""A collector on a real store that is locked, stopped and started again."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clew.store import StoreOptions
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import Collector, CollectorCounts, CollectorSettings, Emitter, TraceLinkStores
from tests.store.store_postgres import postgres_server

PATIENCE = 60


class Running:
    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.stop = threading.Event()
        self.thread = threading.Thread(target=collector.run, args=(self.stop,))

    def until(self, **counts: int) -> None:
        pause = threading.Event()
        for _ in range(PATIENCE * 200):
            if all(getattr(self.collector.counts, name) >= count for name, count in counts.items()):
                return
            pause.wait(0.005)
        raise AssertionError(f"still {self.collector.counts}")

    def finish(self) -> CollectorCounts:
        self.stop.set()
        self.thread.join(PATIENCE)
        return self.collector.counts


@contextmanager
def collecting(stores: TraceLinkStores) -> Iterator[Running]:
    with Collector(("127.0.0.1", 0), stores.writer, CollectorSettings(batch_ms=10)) as collector:
        running = Running(collector)
        running.thread.start()
        try:
            yield running
        finally:
            running.finish()


def send(running: Running, first: int, count: int) -> None:
    with Emitter(running.collector.address) as emitter:
        for seq in range(first, first + count):
            assert emitter.frame(1, 1, seq, trace_id=seq + 1)
        assert emitter.close(PATIENCE).sent == count


def test_a_collector_waits_for_a_database_file_that_somebody_else_has_locked(sqlite_url: str) -> None:
    options = StoreOptions(busy_timeout_s=0.05)
    with open_trace_link_stores(sqlite_url, options) as stores, collecting(stores) as running:
        holder = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        send(running, 0, 100)
        running.until(failures=2)
        holder.execute("ROLLBACK")
        holder.close()
        running.until(written=100)
        counts = running.finish()
        assert len(list(stores.reader.frames(range(1, 101)))) == 100
    assert counts.dropped == 0


@pytest.mark.postgres
def test_a_collector_outlives_a_database_server_that_stops_and_starts_again() -> None:
    with postgres_server() as server, open_trace_link_stores(server.url) as stores, collecting(stores) as running:
        send(running, 0, 100)
        running.until(written=100)
        server.stop()
        send(running, 100, 100)
        running.until(failures=1)
        server.start()
        running.until(written=200)
        counts = running.finish()
        assert len(list(stores.reader.frames(range(1, 201)))) == 200
    assert (counts.received, counts.dropped) == (200, 0)
