import os
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import TransientFailure, UserError
from clew.tracelink import TraceIdGenerator, decompose, monotonic_epoch_clock

NOON = 1_767_960_000_000
END_OF_TIME = 2**41


def clock_of(*readings: int) -> Callable[[], int]:
    remaining = iter(readings)
    return lambda: next(remaining)


def stopped_at(now_ms: int) -> Callable[[], int]:
    return lambda: now_ms


@settings(deadline=None)
@given(
    now_ms=st.integers(1, END_OF_TIME - 1),
    node_id=st.integers(0, 1023),
)
def test_an_id_is_41_bits_of_milliseconds_10_of_node_and_12_of_sequence_below_a_zero(now_ms: int, node_id: int) -> None:
    generator = TraceIdGenerator(node_id, clock_ms=stopped_at(now_ms))
    bits = [f"{generator.next_id():064b}" for _ in range(3)]
    for sequence, text in enumerate(bits):
        assert text == "0" + f"{now_ms:041b}" + f"{node_id:010b}" + f"{sequence:012b}"


def test_a_known_id_has_the_value_that_agronas_layout_gives() -> None:
    generator = TraceIdGenerator(5, clock_ms=stopped_at(1))
    assert generator.next_id() == 1 * 4_194_304 + 5 * 4096 + 0
    assert generator.next_id() == 4_214_785
    assert TraceIdGenerator(1023, clock_ms=stopped_at(2**41 - 1)).next_id() == 0x7FFF_FFFF_FFFF_F000


def test_an_id_decomposes_into_what_it_was_made_of() -> None:
    generator = TraceIdGenerator(700, clock_ms=stopped_at(NOON))
    generator.next_id()
    parts = decompose(generator.next_id())
    assert (parts.timestamp_ms, parts.node_id, parts.sequence) == (NOON, 700, 1)


def test_the_sequence_starts_anew_with_each_millisecond() -> None:
    generator = TraceIdGenerator(1, clock_ms=clock_of(NOON, NOON, NOON + 1))
    parts = [decompose(generator.next_id()) for _ in range(3)]
    assert [(p.timestamp_ms - NOON, p.sequence) for p in parts] == [(0, 0), (0, 1), (1, 0)]


def test_more_ids_than_a_millisecond_has_borrow_from_the_next_one_without_waiting() -> None:
    generator = TraceIdGenerator(3, clock_ms=stopped_at(NOON))
    ids = [generator.next_id() for _ in range(4097)]
    assert len(set(ids)) == 4097
    last, after = decompose(ids[4095]), decompose(ids[4096])
    assert (last.timestamp_ms, last.sequence) == (NOON, 4095)
    assert (after.timestamp_ms, after.sequence, after.node_id) == (NOON + 1, 0, 3)


def test_a_clock_that_goes_back_neither_stops_ids_nor_makes_them_smaller() -> None:
    generator = TraceIdGenerator(3, clock_ms=clock_of(NOON, NOON - 3_600_000, NOON - 1, NOON + 1))
    ids = [generator.next_id() for _ in range(4)]
    assert ids == sorted(set(ids))
    assert [decompose(i).timestamp_ms - NOON for i in ids] == [0, 0, 0, 1]


@settings(deadline=None)
@given(readings=st.lists(st.integers(0, END_OF_TIME - 2), min_size=1, max_size=50))
def test_ids_grow_whatever_the_clock_does(readings: list[int]) -> None:
    generator = TraceIdGenerator(0, clock_ms=clock_of(*readings))
    ids = [generator.next_id() for _ in readings]
    assert ids == sorted(set(ids))
    assert 0 not in ids


def test_the_id_that_means_untraced_is_never_minted() -> None:
    assert TraceIdGenerator(0, clock_ms=stopped_at(0)).next_id() == 1


@pytest.mark.parametrize("node_id", [-1, 1024])
def test_a_node_id_that_does_not_fit_is_refused(node_id: int) -> None:
    with pytest.raises(UserError) as refusal:
        TraceIdGenerator(node_id)
    assert refusal.value.code == "InvalidNodeId"


def test_the_end_of_the_timestamps_is_an_error_and_not_an_overflow() -> None:
    generator = TraceIdGenerator(1, clock_ms=stopped_at(END_OF_TIME))
    with pytest.raises(TransientFailure) as failure:
        generator.next_id()
    assert failure.value.code == "TraceIdsExhausted"


def test_threads_share_a_generator_without_getting_an_id_twice() -> None:
    generator = TraceIdGenerator(9)
    minted: list[list[int]] = [[] for _ in range(4)]

    def mint(into: list[int]) -> None:
        for _ in range(5_000):
            into.append(generator.next_id())  # noqa: PERF401 - one call at a time, so that threads interleave

    threads = [threading.Thread(target=mint, args=(into,)) for into in minted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in minted)
    assert len({i for ids in minted for i in ids}) == 20_000


def test_a_forked_process_cannot_mint_its_parents_ids_again(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = TraceIdGenerator(9)
    generator.next_id()
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(UserError) as refusal:
        generator.next_id()
    assert refusal.value.code == "ForkedGenerator"
    with pytest.raises(UserError):
        generator.reserve_block(1)


def test_the_default_clock_follows_the_wall_clock_at_its_start_and_is_monotonic_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOON * 1_000_000)
    clock = monotonic_epoch_clock()
    first = clock()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    readings = [clock() for _ in range(100)]
    assert first >= NOON
    assert readings == sorted(readings)
    assert readings[0] >= first
