"""Nobody without the key says anything about rows of runs: not about those there are, nor about those to come."""

import hashlib
import hmac
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from clew.api.state import State
from clew.api.working import listening
from clew.api.workspace import open_workspace
from clew.sample import write_sample
from clew.tracelink import CollectorCounts, Emitter, FrameDescriptor, PublishedBlock, TraceIdBlock, TraceLinkSet
from clew.tracelink.sealing import ENVELOPE_LENGTH, Seal, read_envelope, write_envelope

KEY = "correct horse battery staple"
BLOCK = TraceIdBlock(node_id=3, first_tick=7_000_000_000_000, count=10_000)
ROW, LAST_ROW = BLOCK.trace_id(0), BLOCK.trace_id(9_999)
NEXT = TraceIdBlock(node_id=3, first_tick=BLOCK.first_tick + 10_000, count=1).trace_id(0)
OTHER, ANOTHER = 11, 12


@dataclass
class Site:
    state: State
    address: tuple[str, int]
    stop: threading.Event
    thread: threading.Thread
    ended: list[CollectorCounts]

    def register(self) -> None:
        self.state.tracelink.blocks.record(
            PublishedBlock(block=BLOCK, run_id="r", operation_seq=0, stream_id=1, epoch=1)
        )

    def parents(self, *trace_ids: int) -> set[tuple[int, int]]:
        return set(self.state.tracelink.reader.parents(trace_ids))

    def children(self, *trace_ids: int) -> set[tuple[int, int]]:
        return set(self.state.tracelink.reader.children(trace_ids))

    def framed(self, *trace_ids: int) -> list[int]:
        return [frame.trace_id for frame in self.state.tracelink.reader.frames(trace_ids)]

    def finish(self) -> CollectorCounts:
        self.stop.set()
        self.thread.join(60)
        [counts] = self.ended
        return counts


@contextmanager
def collecting(folder: Path, patch: pytest.MonkeyPatch, *, key: str | None = None) -> Iterator[Site]:
    """`clew collect` on a workspace, as the command calls it."""
    write_sample(folder)
    if key is not None:
        patch.setenv("COLLECTOR_KEY", key)
        settings = folder / "clew.yaml"
        line = "    tracelink: {key_ref: secret://env/COLLECTOR_KEY}\n"
        text = settings.read_text(encoding="utf-8").replace("    mode: dev\n", f"    mode: dev\n{line}", 1)
        settings.write_text(text, encoding="utf-8")
    where = listening("127.0.0.1:0", allow_remote=False, batch_ms=10, stages=())
    with open_workspace(folder) as workspace, workspace._access.opened() as at:
        stop, bound, addresses, ended = (
            threading.Event(),
            threading.Event(),
            list[tuple[str, int]](),
            list[CollectorCounts](),
        )

        def note(address: tuple[str, int]) -> None:
            addresses.append(address)
            bound.set()

        thread = threading.Thread(target=lambda: ended.append(workspace.collect(where, stop, note)))
        thread.start()
        try:
            assert bound.wait(60)
            yield Site(at.state, addresses[0], stop, thread, ended)
        finally:
            stop.set()
            thread.join(60)


def claim(site: Site, key: str | None = None) -> None:
    """Everything that a sender could say about rows."""
    with Emitter(site.address, key=key) as emitter:
        emitter.frame(5, 1, 1, trace_id=ROW)
        emitter.frame(5, 1, 2, trace_id=OTHER)
        emitter.links(5, 1, 1, ROW, (OTHER, ANOTHER))
        emitter.links(5, 1, 2, OTHER, (LAST_ROW, ANOTHER))
        emitter.links(5, 1, 3, NEXT, (OTHER,))
        assert emitter.close(60).sent == 5


def test_without_the_key_nothing_is_said_about_rows_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(tmp_path, monkeypatch) as site:
        site.register()
        claim(site)
        counts = site.finish()
        assert site.parents(ROW, LAST_ROW) == site.children(ROW, LAST_ROW) == set()
        assert site.framed(ROW, OTHER) == [OTHER]
        assert site.parents(OTHER, NEXT) == {(OTHER, ANOTHER), (NEXT, OTHER)}
    assert (counts.received, counts.written, counts.refused, counts.known) == (5, 3, 4, 0)


def test_what_was_said_about_rows_before_they_were_there_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(tmp_path, monkeypatch) as site:
        claim(site)
        assert site.finish().written == 7
        assert site.parents(ROW) == {(ROW, OTHER), (ROW, ANOTHER)}
        site.register()
        assert site.parents(ROW, LAST_ROW) == site.children(ROW, LAST_ROW) == set()
        assert site.framed(ROW, OTHER) == [OTHER]
        assert site.parents(OTHER, NEXT) == {(OTHER, ANOTHER), (NEXT, OTHER)}


def test_whoever_holds_the_key_says_what_was_made_from_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(tmp_path, monkeypatch, key=KEY) as site:
        site.register()
        claim(site, KEY)
        counts = site.finish()
        assert site.parents(ROW, OTHER) == {(ROW, OTHER), (ROW, ANOTHER), (OTHER, LAST_ROW), (OTHER, ANOTHER)}
        site.register()
        assert site.parents(ROW) == {(ROW, OTHER), (ROW, ANOTHER)}, "the same block again deletes nothing"
    assert (counts.written, counts.refused, counts.forged) == (7, 0, 0)


def test_another_key_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(tmp_path, monkeypatch, key=KEY) as site:
        site.register()
        claim(site, "a guess")
        claim(site)
        counts = site.finish()
        assert site.parents(ROW) == set()
    assert counts.forged >= 1
    assert (counts.written, counts.refused) == (3, 4), "datagrams without an envelope are read, forged ones are not"


def test_a_signed_datagram_that_was_changed_or_kept_for_long_is_forged() -> None:
    messages = TraceLinkSet(1, 1, 1, ROW, (OTHER,)).encode() + FrameDescriptor(1, 1, 1, trace_id=ROW).encode()
    datagram = bytearray(ENVELOPE_LENGTH) + messages
    now = time.time_ns()
    write_envelope(datagram, len(datagram), KEY.encode(), now)
    sealed = bytes(datagram)
    assert read_envelope(sealed, KEY.encode(), now) == (messages, Seal.VALID)
    assert read_envelope(sealed, None, now) == (messages, Seal.NONE)
    assert read_envelope(messages, KEY.encode(), now) == (messages, Seal.NONE)
    assert read_envelope(sealed, KEY.encode(), now + 301 * 10**9)[1] is Seal.FORGED
    assert read_envelope(sealed, KEY.encode(), now - 301 * 10**9)[1] is Seal.FORGED
    for place in (8, 16, 47, 48, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert read_envelope(bytes(changed), KEY.encode(), now)[1] is Seal.FORGED, place
    assert read_envelope(sealed[: ENVELOPE_LENGTH - 1], KEY.encode(), now)[1] is Seal.NONE


def test_the_bytes_of_an_envelope_are_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    front = struct.pack("<HHHHQ", 40, 1, 905, 1, time.time_ns())
    messages = TraceLinkSet(1, 1, 1, ROW, (OTHER,)).encode()
    mac = hmac.new(KEY.encode(), front + messages, hashlib.sha256).digest()
    with collecting(tmp_path, monkeypatch, key=KEY) as site:
        site.register()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(front + mac + messages, site.address)
        assert site.finish().written == 1
        assert site.parents(ROW) == {(ROW, OTHER)}
