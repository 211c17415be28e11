from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import TransientFailure, UserError
from clew.tracelink import TraceIdBlock, TraceIdGenerator, decompose

NOON = 1_767_960_000_000


def stopped_at(now_ms: int) -> Callable[[], int]:
    return lambda: now_ms


def test_ordinals_of_a_block_are_what_minting_one_by_one_would_have_given() -> None:
    one_by_one = TraceIdGenerator(77, clock_ms=stopped_at(NOON))
    block = TraceIdGenerator(77, clock_ms=stopped_at(NOON)).reserve_block(10_000)
    assert list(block) == [one_by_one.next_id() for _ in range(10_000)]
    assert [block.trace_id(i) for i in (0, 1, 4095, 4096, 9_999)] == [list(block)[i] for i in (0, 1, 4095, 4096, 9_999)]


@settings(deadline=None)
@given(
    node_id=st.integers(0, 1023),
    first_tick=st.integers(1, 2**53 - 2**33),
    count=st.integers(1, 2**33),
    data=st.data(),
)
def test_the_id_of_an_ordinal_is_the_documented_arithmetic_within_signed_64_bits(
    node_id: int, first_tick: int, count: int, data: st.DataObject
) -> None:
    block = TraceIdBlock(node_id=node_id, first_tick=first_tick, count=count)
    ordinal = data.draw(st.integers(0, count - 1))
    tick = first_tick + ordinal
    expected = tick + (tick >> 12) * 4_190_208 + (node_id << 12)
    assert block.trace_id(ordinal) == expected
    assert 0 < expected < 2**63
    assert (tick >> 12) * 4_190_208 < 2**63
    assert decompose(expected).node_id == node_id
    assert block.ordinal_of(expected) == ordinal
    assert expected in block


def test_a_block_is_known_by_three_integers_and_gives_the_same_ids_every_time() -> None:
    block = TraceIdGenerator(4, clock_ms=stopped_at(NOON)).reserve_block(5_000)
    again = TraceIdBlock(node_id=block.node_id, first_tick=block.first_tick, count=block.count)
    assert list(again) == list(block)
    assert len(block) == 5_000


def test_ids_outside_a_block_have_no_ordinal_in_it() -> None:
    generator = TraceIdGenerator(4, clock_ms=stopped_at(NOON))
    before = generator.next_id()
    block = generator.reserve_block(10)
    after = generator.next_id()
    other_node = TraceIdBlock(node_id=5, first_tick=block.first_tick, count=10).trace_id(0)
    assert [block.ordinal_of(i) for i in (before, after, other_node)] == [None, None, None]


def test_a_generator_goes_on_after_a_block_that_reaches_ahead_of_the_clock() -> None:
    generator = TraceIdGenerator(4, clock_ms=stopped_at(NOON))
    block = generator.reserve_block(4096 * 1000)
    assert decompose(block.trace_id(block.count - 1)).timestamp_ms == NOON + 999
    assert decompose(generator.next_id()).timestamp_ms == NOON + 1000
    assert block.end_ms == NOON + 1000
    assert generator.used_until_ms == NOON + 1001


def test_an_empty_block_uses_nothing_up() -> None:
    generator = TraceIdGenerator(4, clock_ms=stopped_at(NOON))
    block = generator.reserve_block(0)
    assert list(block) == []
    assert generator.next_id() == TraceIdGenerator(4, clock_ms=stopped_at(NOON)).next_id()


@settings(deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("next"), st.integers(-5_000, 5_000)),
            st.tuples(st.integers(0, 9_000), st.integers(-5_000, 5_000)),
        ),
        max_size=40,
    )
)
def test_ids_and_blocks_interleaved_over_a_jumping_clock_are_disjoint_and_grow(steps: list[tuple[object, int]]) -> None:
    now = NOON

    def clock() -> int:
        return now

    generator = TraceIdGenerator(12, clock_ms=clock)
    spans: list[tuple[int, int]] = []
    for what, jump in steps:
        now += jump
        if isinstance(what, int):
            block = generator.reserve_block(what)
            if what:
                spans.append((block.trace_id(0), block.trace_id(what - 1)))
        else:
            trace_id = generator.next_id()
            spans.append((trace_id, trace_id))
    edges = [edge for first, last in spans for edge in ((first, last) if first != last else (first,))]
    assert edges == sorted(set(edges))
    assert all(decompose(edge).timestamp_ms < generator.used_until_ms for edge in edges)


@settings(deadline=None)
@given(
    steps=st.lists(st.integers(0, 200), max_size=30), node_ids=st.lists(st.integers(0, 1023), min_size=2, max_size=3)
)
def test_no_two_ids_are_the_same_across_generators_of_different_nodes(steps: list[int], node_ids: list[int]) -> None:
    generators = [TraceIdGenerator(node_id, clock_ms=stopped_at(NOON)) for node_id in dict.fromkeys(node_ids)]
    minted: list[int] = []
    for step in steps:
        for generator in generators:
            minted.extend(generator.reserve_block(step))
            minted.append(generator.next_id())
    assert len(set(minted)) == len(minted)


def test_a_block_that_does_not_fit_before_the_end_of_its_window_is_refused_and_uses_nothing_up() -> None:
    generator = TraceIdGenerator(1, clock_ms=stopped_at(NOON), until_ms=NOON + 2)
    with pytest.raises(TransientFailure) as failure:
        generator.reserve_block(8193)
    assert failure.value.code == "TraceIdsExhausted"
    assert generator.reserve_block(8192).end_ms == NOON + 2


def test_what_cannot_be_a_block_is_refused() -> None:
    generator = TraceIdGenerator(1, clock_ms=stopped_at(NOON))
    block = generator.reserve_block(3)
    refused: list[Callable[[], object]] = [
        lambda: generator.reserve_block(-1),
        lambda: block.trace_id(-1),
        lambda: block.trace_id(3),
        lambda: TraceIdBlock(node_id=1024, first_tick=1, count=1),
        lambda: TraceIdBlock(node_id=1, first_tick=0, count=1),
        lambda: TraceIdBlock(node_id=1, first_tick=1, count=-1),
        lambda: TraceIdBlock(node_id=1, first_tick=2**53 - 1, count=2),
    ]
    for attempt in refused:
        with pytest.raises(UserError) as refusal:
            attempt()
        assert refusal.value.code == "InvalidBlock"
