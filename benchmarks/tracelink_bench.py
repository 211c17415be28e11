"""What TraceLink costs: codecs against bare struct calls, the emitter against doing nothing, ids against themselves.

Run it alone with `python -m benchmarks.tracelink_bench`. Each figure is the best of several rounds, and the two sides
of a ratio take turns, so that both see the same machine.
"""

import socket
import struct
import tempfile
import timeit
from array import array
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.figure import Figure

from clew.tracelink import (
    Emitter,
    FrameDescriptor,
    LinkSetView,
    TraceIdGenerator,
    TraceLinkSet,
    read_frame,
    read_link_set,
    write_frame,
    write_link_set,
)

PROCESSES = 8
IDS = 10_000_000
ROUNDS = 9
CODEC_ROUNDS = 60
CALLS = 5_000
FRAMES = 200_000
TRACE = 7_527_995_000_000_000_000
PARENTS = (TRACE + 1, TRACE + 2, TRACE + 3)


def measure() -> list[Figure]:
    return [*codecs(), *emitter(), *ids_of_processes()]


def nanoseconds(*sides: Callable[[], object]) -> list[float]:
    """Short rounds and many of them: some fall into a moment in which the processor is otherwise idle."""
    best = [float("inf")] * len(sides)
    for _ in range(CODEC_ROUNDS):
        for index, side in enumerate(sides):
            best[index] = min(best[index], timeit.timeit(side, number=CALLS))
    return [seconds / CALLS * 1e9 for seconds in best]


def codecs() -> list[Figure]:
    """A link set has any number of parents, so the bare calls have to look at it too before they can unpack them."""
    buffer = bytearray(256)
    whole, fixed = struct.Struct("<HHHHIQQQIQ"), struct.Struct("<HHHHIQQQHH")
    write_frame(buffer, 0, 7, TRACE, TRACE, TRACE, 9, TRACE)
    write_link_set(buffer, 64, 7, TRACE, TRACE, TRACE, PARENTS)

    def bare_frame_write() -> None:
        whole.pack_into(buffer, 0, 40, 4, 900, 1, 7, TRACE, TRACE, TRACE, 9, TRACE)

    def bare_links_write() -> None:
        count = len(PARENTS)
        struct.pack_into(f"<HHHHIQQQHH{count}Q", buffer, 64, 28, 1, 904, 1, 7, TRACE, TRACE, TRACE, 8, count, *PARENTS)

    def bare_links_read() -> object:
        fields = fixed.unpack_from(buffer, 64)
        return fields, struct.unpack_from(f"<{fields[9]}Q", buffer, 104)

    view = LinkSetView()
    frame, links = FrameDescriptor(7, 1, 2, trace_id=TRACE), TraceLinkSet(7, 1, 2, TRACE, PARENTS)
    frame_bytes, links_bytes = frame.encode(), links.encode()
    pairs: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("frame encode", bare_frame_write, lambda: write_frame(buffer, 0, 7, TRACE, TRACE, TRACE, 9, TRACE)),
        ("frame decode", lambda: whole.unpack_from(buffer, 0), lambda: read_frame(buffer, 0)),
        (
            "link set encode, 3 parents",
            bare_links_write,
            lambda: write_link_set(buffer, 64, 7, TRACE, TRACE, TRACE, PARENTS),
        ),
        ("link set decode, 3 parents", bare_links_read, lambda: read_link_set(buffer, 64)),
    ]
    figures = []
    for name, bare, ours in pairs:
        bare_ns, ours_ns = nanoseconds(bare, ours)
        figures.append(Figure(f"{name}, against bare struct", ours_ns / bare_ns, "x", at_most=2))
        figures.append(Figure(name, ours_ns, "ns"))
    objects: list[tuple[str, Callable[[], object]]] = [
        ("link set view, headers checked", lambda: view.wrap(buffer, 64)),
        ("FrameDescriptor.encode", frame.encode),
        ("FrameDescriptor.decode", lambda: FrameDescriptor.decode(frame_bytes)),
        ("TraceLinkSet.encode", links.encode),
        ("TraceLinkSet.decode", lambda: TraceLinkSet.decode(links_bytes)),
    ]
    return figures + [Figure(name, nanoseconds(call)[0], "ns") for name, call in objects]


def emitter() -> list[Figure]:
    """A producer's loop with nothing in it, with a full ring, and with a listener that takes what it can."""

    def loop(emit: Callable[[int, int, int], object]) -> float:
        start = perf_counter()
        for seq in range(FRAMES):
            emit(1, 1, seq)
        return (perf_counter() - start) / FRAMES * 1e9

    def nothing(_stream_id: int, _epoch: int, _seq: int) -> None:
        return None

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        with Emitter(listener.getsockname()) as sending:
            idle_ns = min(loop(nothing) for _ in range(ROUNDS))
            sending_ns = min(loop(sending.frame) for _ in range(ROUNDS))
            dropped = sending.counts.dropped / (FRAMES * ROUNDS)
        with Emitter(listener.getsockname(), ring_bytes=64, poll_seconds=60) as full:
            full_ns = min(loop(full.frame) for _ in range(ROUNDS))
    return [
        Figure("emitter, per frame beyond doing nothing", sending_ns - idle_ns, "ns"),
        Figure("emitter, per frame dropped at a full ring", full_ns - idle_ns, "ns"),
        Figure("emitter, frames dropped at full speed", dropped * 100, "%"),
    ]


def mint(task: tuple[int, str]) -> float:
    node_id, folder = task
    generator = TraceIdGenerator(node_id)
    start = process_time()
    ids = array("Q", (generator.next_id() for _ in range(IDS // PROCESSES)))
    seconds = process_time() - start
    Path(folder, str(node_id)).write_bytes(ids.tobytes())
    return seconds


def ids_of_processes() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        with get_context("spawn").Pool(PROCESSES) as pool:
            seconds = pool.map(mint, [(node_id, folder) for node_id in range(PROCESSES)], chunksize=1)
        chunks = [
            pa.Array.from_buffers(pa.uint64(), IDS // PROCESSES, [None, pa.py_buffer(path.read_bytes())])
            for path in Path(folder).iterdir()
        ]
    minted = pa.chunked_array(chunks)
    repeated = len(minted) - pc.count_distinct(minted).as_py()
    return [
        Figure(f"ids minted by {PROCESSES} processes", len(minted), "ids"),
        Figure("of these minted twice", repeated, "ids", at_most=0),
        Figure("processor time per id", max(seconds) / (IDS // PROCESSES) * 1e9, "ns"),
    ]


if __name__ == "__main__":
    for figure in measure():
        bound = "" if figure.at_most is None else f"   (at most {figure.at_most:g})"
        print(f"{figure.name:<50} {figure.value:>14,.2f} {figure.unit}{bound}")
