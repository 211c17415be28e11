"""Old frames, links and windows are let go; what is young, or still needed, or of unknown age stays."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.storage.trace_id_bits import first_tick_of, trace_id_of
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import Bounds, TraceBatch, TraceLinkStores, TraceWindow
from clew.tracelink.stores import Age, Kept
from tests.tiers import examples

CUT = datetime(2026, 3, 1, tzinfo=UTC)
AGE = Age.before(CUT)


@pytest.fixture
def stores(url: str) -> Iterator[TraceLinkStores]:
    with open_trace_link_stores(url) as opened:
        yield opened


def minted(days: float, number: int = 1) -> int:
    """A trace id so many days after the cut, or before it."""
    moment = CUT + timedelta(days=days)
    return trace_id_of(first_tick_of(int(moment.timestamp() * 1000)) + number, node_id=7)


def at(days: float) -> int:
    return int((CUT + timedelta(days=days)).timestamp() * 1_000_000_000)


def frame(seq: int, days: float, trace_id: int, stream: int = 1) -> tuple[int, int, int, int, int, int, int]:
    return (stream, 1, seq, stream, at(days), trace_id, 0)


def window(trace_id: int, bounds: Bounds, stream: int = 1) -> TraceWindow:
    return TraceWindow(trace_id=trace_id, in_stream_id=stream, epoch=1, bounds=bounds)


def pruned(stores: TraceLinkStores) -> dict[str, int]:
    """What was removed; it is what was counted before, and nothing is left to remove."""
    counted = {kept.value: stores.pruner.count(kept, AGE) for kept in Kept}
    removed = {kept.value: stores.pruner.prune(kept, AGE, batch=2) for kept in Kept}
    assert removed == counted
    assert all(stores.pruner.count(kept, AGE) == 0 for kept in Kept)
    return {name: count for name, count in removed.items() if count}


def test_what_is_old_goes_and_what_is_young_stays(stores: TraceLinkStores) -> None:
    old, young = [minted(-9, n) for n in range(5)], [minted(1, n) for n in range(2)]
    frames = [frame(seq, -9, trace_id) for seq, trace_id in enumerate(old)]
    frames += [frame(10 + seq, 1, trace_id) for seq, trace_id in enumerate(young)]
    links = [(old[4], parent) for parent in old[:3]] + [(young[1], old[0]), (young[1], young[0])]
    stores.writer.write(TraceBatch(frames=frames, links=links))
    assert pruned(stores) == {"frames": 5, "links": 3}
    assert sorted(stores.reader.parents(young)) == [(young[1], old[0]), (young[1], young[0])]
    assert [each.seq for each in stores.reader.frames([*old, *young])] == [10, 11]


def test_a_trace_that_still_passes_stages_keeps_what_it_came_from(stores: TraceLinkStores) -> None:
    parent, child = minted(-9, 1), minted(-9, 2)
    frames = [frame(1, -9, parent), frame(1, -9, child, stream=2), frame(1, 1, child, stream=3)]
    stores.writer.write(TraceBatch(frames=frames, links=[(child, parent)]))
    assert pruned(stores) == {"frames": 2}
    assert list(stores.reader.parents([child])) == [(child, parent)]


@pytest.mark.parametrize("bounds", [Bounds.of_seq(3, 9), Bounds.of_time(at(-9.5), at(2))])
def test_frames_stay_as_long_as_a_window_that_stays_was_made_from_them(stores: TraceLinkStores, bounds: Bounds) -> None:
    inputs = [minted(-10 + seq / 10, seq) for seq in range(9)]
    frames = [frame(seq, -10 + seq / 10 + 0.3, trace_id) for seq, trace_id in enumerate(inputs)]
    total, gone = minted(1), minted(-8)
    windows = [window(total, bounds), window(gone, Bounds.of_seq(0, 2)), window(gone, Bounds.of_seq(0, 5), stream=2)]
    stores.writer.write(TraceBatch(frames=frames, windows=windows))
    before = sorted(stores.reader.parents([total]))
    assert before
    removed = pruned(stores)
    assert removed["windows"] == 2
    assert 0 < removed["frames"] <= 9 - len(before)
    assert sorted(stores.reader.parents([total])) == before


def test_numbers_that_tell_no_age_stay(stores: TraceLinkStores) -> None:
    foreign, huge = 5, 2**64 - 3
    frames = [frame(1, -9, foreign), frame(2, -9, huge), (1, 1, 3, 1, 2**64 - 1, minted(-9), 0)]
    windows = [window(foreign, Bounds.of_seq(1, 2), stream=9), window(huge, Bounds.of_seq(1, 2), stream=9)]
    stores.writer.write(TraceBatch(frames=frames, links=[(foreign, 4), (huge, 4)], windows=windows))
    assert pruned(stores) == {}


DAYS = st.sampled_from([-9, -5, -1, 1, 5])
SEQ = st.integers(0, 6)
TRACE = st.builds(minted, DAYS, st.integers(0, 2))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(st.tuples(SEQ, DAYS, TRACE), max_size=7, unique_by=lambda each: each[0]),
    links=st.lists(st.tuples(TRACE, TRACE), max_size=5, unique=True),
    windows=st.lists(st.tuples(TRACE, SEQ, SEQ), max_size=3, unique_by=lambda each: each[0]),
)
def test_the_parents_of_what_stays_stay(
    sqlite_url: str,
    frames: list[tuple[int, int, int]],
    links: list[tuple[int, int]],
    windows: list[tuple[int, int, int]],
) -> None:
    with open_trace_link_stores(sqlite_url) as stores:
        for kept in Kept:
            stores.pruner.prune(kept, Age.before(CUT + timedelta(days=999)))
        batch = TraceBatch(
            frames=[frame(*each) for each in frames],
            links=links,
            windows=[window(trace, Bounds.of_seq(min(ends), max(ends))) for trace, *ends in windows],
        )
        stores.writer.write(batch)
        young = {trace for _, days, trace in frames if days >= 0}
        traces = {trace for trace, _ in links} | {trace for trace, *_ in windows}
        staying = {trace for trace in traces if trace in young or trace >= AGE.trace_ids[1]}
        before = sorted(stores.reader.parents(staying))
        pruned(stores)
        assert sorted(stores.reader.parents(traces)) == before
        assert {each.seq for each in stores.reader.frames(young)} >= {seq for seq, days, _ in frames if days >= 0}
