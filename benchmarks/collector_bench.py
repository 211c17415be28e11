"""How many frames a second a collector takes on loopback, what a flood of twice that loses, and lineage over links.

Run it alone with `python -m benchmarks collector`. A flood lasts a minute (`CLEW_BENCH_FLOOD_S`): the collector has
room for what comes too much in the first twenty seconds or so, and loss shows only behind that.
`CLEW_BENCH_LINKS=10000000` measures lineage over ten million links instead of one; loading them takes a few minutes.
"""

import multiprocessing
import os
import random
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.figure import Figure

from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import (
    Collector,
    CollectorCounts,
    Direction,
    Emitter,
    EmitterCounts,
    FrameDescriptor,
    Link,
    TraceBatch,
    TraceLinkStores,
    walk,
)

FRAMES_PER_DATAGRAM = 100
SECONDS = 4.0
FIRST_RATE = 10_000
FLOOD_S = float(os.environ.get("CLEW_BENCH_FLOOD_S", "60"))
QUIET_S = 10.0
"""How long the producer of a flood is measured without a listener."""
LINKS = int(os.environ.get("CLEW_BENCH_LINKS", "1000000"))
HOPS = 10
FAN_IN = 2
QUESTIONS = 20
BATCH = 50_000


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        return [*collector(Path(folder)), *lineage(Path(folder))]


@dataclass(frozen=True)
class Trial:
    """What came of sending at a rate."""

    rate: float
    sent: int
    counts: CollectorCounts
    seconds_of_flush: float

    @property
    def lost(self) -> float:
        return 1 - self.counts.written / self.sent

    @property
    def is_sustained(self) -> bool:
        """Nothing lost, and the store kept up: what was left at the end was little."""
        return self.counts.written == self.sent and self.seconds_of_flush < SECONDS / 4


@dataclass(frozen=True)
class Pace:
    """What a producer came to that emits at a rate and does nothing else."""

    frames: int
    """How many it has emitted, whatever became of them."""
    seconds: float
    busy: float
    """Seconds that it spent in calls of the emitter."""
    counts: EmitterCounts

    @property
    def rate(self) -> float:
        return self.frames / self.seconds

    @property
    def ns_per_call(self) -> float:
        return self.busy / max(1, self.frames) * 1e9


@dataclass(frozen=True)
class Flood:
    """A collector that is sent more than it can take."""

    pace: Pace
    counts: CollectorCounts

    @property
    def lost(self) -> int:
        return self.pace.frames - self.counts.written

    @property
    def told(self) -> int:
        """Frames that producer and collector say are lost. What the system dropped is reported in datagrams."""
        emitted = self.pace.counts
        per_datagram = emitted.sent / max(1, emitted.datagrams)
        overrun = round(self.counts.overrun * per_datagram)
        return emitted.dropped + emitted.lost + self.counts.dropped + overrun


def produce(address: tuple[str, int], epoch: int, rate: float, done: Event, sent: object) -> None:
    """Send frames at a rate: in a separate process, so that producer and collector share no lock."""
    total = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < SECONDS:
            while total < rate * passed:
                frames = (
                    FrameDescriptor(1, epoch, total + n, timestamp_ns=total + n, trace_id=total + n + 1).encode()
                    for n in range(FRAMES_PER_DATAGRAM)
                )
                out.sendto(b"".join(frames), address)
                total += FRAMES_PER_DATAGRAM
            time.sleep(0.0005)
    sent.value = total  # type: ignore[attr-defined]
    done.set()


def trial(stores: TraceLinkStores, rate: float, epoch: int) -> Trial:
    context = multiprocessing.get_context("spawn")
    done, sent = context.Event(), context.Value("q", 0)
    stop = threading.Event()
    with Collector(("127.0.0.1", 0), stores.writer) as listening:
        running = threading.Thread(target=listening.run, args=(stop,))
        running.start()
        producer = context.Process(target=produce, args=(listening.address, epoch, rate, done, sent))
        producer.start()
        done.wait()
        ended = time.perf_counter()
        stop.set()
        running.join()
        flush = time.perf_counter() - ended
        producer.join()
        return Trial(rate, int(sent.value), listening.counts, flush)


def emit(address: tuple[str, int], rate: float, seconds: float, told: Connection) -> None:
    """Emit frames at a rate as a traced program does, in a separate process, and report the outcome."""
    total, busy = 0, 0.0
    with Emitter(address) as emitter:
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            due = int(rate * passed)
            began = time.perf_counter()
            while total < due:
                emitter.frame(1, 1, total, total, None, total + 1)
                total += 1
            busy += time.perf_counter() - began
            time.sleep(0.0005)
        ended = time.perf_counter() - start
        counts = emitter.close(10.0)
    told.send(Pace(total, ended, busy, counts))


def paced(address: tuple[str, int], rate: float, seconds: float) -> Pace:
    """A producer at work."""
    context = multiprocessing.get_context("spawn")
    told, tell = context.Pipe(duplex=False)
    producer = context.Process(target=emit, args=(address, rate, seconds, tell))
    producer.start()
    pace: Pace = told.recv()
    producer.join()
    return pace


def flood(stores: TraceLinkStores, rate: float, seconds: float) -> Flood:
    """Send at a rate for so long, and count what arrives in the store."""
    stop = threading.Event()
    with Collector(("127.0.0.1", 0), stores.writer) as listening:
        running = threading.Thread(target=listening.run, args=(stop,))
        running.start()
        try:
            pace = paced(listening.address, rate, seconds)
        finally:
            stop.set()
            running.join()
        return Flood(pace, listening.counts)


def flooded(folder: Path, rate: float, seconds: float, quiet_seconds: float) -> list[Figure]:
    """What a flood loses, and that the producer does not notice it."""
    quiet = paced(unused_address(), rate, quiet_seconds)
    with new_store(folder, "flood") as stores:
        found = flood(stores, rate, seconds)
    made = max(1, found.pace.frames)
    return [
        Figure(f"frames lost at twice that rate, over {seconds:.0f} s", 100 * found.lost / made, "%"),
        Figure("lost at twice that rate and not counted", 100 * abs(found.lost - found.told) / made, "%", at_most=1),
        Figure(
            "pace of the producer in the flood, against nobody listening", found.pace.rate / quiet.rate, "x", None, 0.95
        ),
        Figure("emitting a frame in the flood", found.pace.ns_per_call, "ns"),
        Figure("emitting a frame with nobody listening", quiet.ns_per_call, "ns"),
    ]


def unused_address() -> tuple[str, int]:
    """An address without a listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        host, port = taken.getsockname()
    return host, port


def collector(folder: Path) -> list[Figure]:
    """Raise the rate by a quarter as long as it is sustained, each time into a new database."""
    best: Trial | None = None
    rate, epoch = float(FIRST_RATE), 1
    while True:
        with new_store(folder, f"collector-{epoch}") as stores:
            found = trial(stores, rate, epoch)
        if not found.is_sustained:
            break
        best, rate, epoch = found, rate * 1.25, epoch + 1
    sustained = best.rate if best else 0.0
    return [
        Figure("collector, frames a second into SQLite without loss", sustained, "frames/s"),
        Figure("frames lost at that rate", 100 * best.lost if best else 100.0, "%", at_most=0),
        *flooded(folder, max(2 * sustained, FIRST_RATE), FLOOD_S, min(QUIET_S, FLOOD_S)),
    ]


@contextmanager
def new_store(folder: Path, name: str) -> Iterator[TraceLinkStores]:
    with open_trace_link_stores(f"sqlite:///{folder}/{name}.db") as stores:
        yield stores


def layered(links: int) -> Iterator[list[Link]]:
    """A graph of HOPS + 1 layers in which each trace has FAN_IN parents in the layer before, at random."""
    chance = random.Random(7)
    width = links // (HOPS * FAN_IN)
    batch: list[Link] = []
    for layer in range(1, HOPS + 1):
        for place in range(width):
            child = layer * width + place + 1
            batch.extend((child, (layer - 1) * width + chance.randrange(width) + 1) for _ in range(FAN_IN))
            if len(batch) >= BATCH:
                yield batch
                batch = []
    yield batch


def lineage(folder: Path) -> list[Figure]:
    """Questions from the last layer to the first and back; per trace against one question for the parents of one."""
    with new_store(folder, "lineage") as stores:
        start = time.perf_counter()
        written = sum(stores.writer.write(TraceBatch(links=batch)) for batch in layered(LINKS))
        loading = time.perf_counter() - start
        width = LINKS // (HOPS * FAN_IN)
        chance = random.Random(11)
        roots = [HOPS * width + chance.randrange(width) + 1 for _ in range(QUESTIONS)]
        up = [timed(stores, root, Direction.UP) for root in roots]
        down = [timed(stores, root - HOPS * width, Direction.DOWN) for root in roots]
        one = [timed_parents(stores, root) for root in roots]
    millions = f"{written / 1e6:.1f} million links"
    traces = statistics.median(count for _, count in up)
    up_ms, down_ms = (statistics.median(ms for ms, _ in side) for side in (up, down))
    return [
        Figure(f"links written a second, {millions}", written / loading, "links/s"),
        Figure(f"lineage up, {HOPS} hops, {traces:,.0f} traces, {millions}", up_ms, "ms"),
        Figure("the same down", down_ms, "ms"),
        Figure("the same up, per trace, against one question for the parents of one", up_ms / traces / ms_of(one), "x"),
    ]


def timed(stores: TraceLinkStores, root: int, direction: Direction) -> tuple[float, int]:
    start = time.perf_counter()
    graph = walk(stores.reader, root, direction, max_depth=HOPS + 1)
    assert graph.is_complete
    return (time.perf_counter() - start) * 1000, len(graph.nodes)


def timed_parents(stores: TraceLinkStores, root: int) -> float:
    start = time.perf_counter()
    list(stores.reader.parents([root]))
    return (time.perf_counter() - start) * 1000


def ms_of(times: list[float]) -> float:
    return statistics.median(times)
