from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.tracelink import (
    ConfiguredNode,
    LeasedTraceIds,
    LeaseEnd,
    NodeHolder,
    NodeLeasePolicy,
    NodeLeases,
    decompose,
    this_process,
)
from tests.tiers import examples
from tests.tracelink.memory_node_leases import MemoryNodeLeases

NOON = 1_767_960_000_000
POLICY = NodeLeasePolicy(duration_ms=30_000, cooldown_ms=60_000)


class Clock:
    def __init__(self, now_ms: int = NOON) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def holder(process_id: int = 1) -> NodeHolder:
    return NodeHolder(process_id=process_id, start_time_ms=NOON, host="a")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> NodeLeases:
    return MemoryNodeLeases(POLICY, clock)


def ids(
    leases: NodeLeases, clock: Clock, process_id: int = 1, node_id: int | ConfiguredNode | None = None
) -> LeasedTraceIds:
    return LeasedTraceIds(leases, policy=POLICY, holder=holder(process_id), node_id=node_id, clock_ms=clock)


def refusal_of(error: pytest.ExceptionInfo[ClewError]) -> str:
    return error.value.code


def test_processes_that_do_not_care_get_different_node_ids(leases: NodeLeases, clock: Clock) -> None:
    assert len({ids(leases, clock, n).node_id for n in range(1024)}) == 1024
    with pytest.raises(UserError) as refusal:
        ids(leases, clock)
    assert refusal_of(refusal) == "NodeIdTaken"


def test_a_configured_node_id_is_leased_as_such_and_refused_while_it_is_held(leases: NodeLeases, clock: Clock) -> None:
    assert ids(leases, clock, 1, node_id=7).node_id == 7
    with pytest.raises(UserError, match="is held by process 1 on a") as refusal:
        ids(leases, clock, 2, node_id=7)
    assert refusal_of(refusal) == "NodeIdTaken"


@pytest.mark.parametrize("node_id", [-1, 1024])
def test_a_node_id_that_does_not_exist_is_not_leased(leases: NodeLeases, clock: Clock, node_id: int) -> None:
    with pytest.raises(UserError) as refusal:
        ids(leases, clock, node_id=node_id)
    assert refusal_of(refusal) == "InvalidNodeId"


def test_every_lease_is_recorded_with_process_and_start_time(leases: NodeLeases, clock: Clock) -> None:
    ids(leases, clock, 41, node_id=3).close()
    clock.now_ms += 1_000_000
    ids(leases, clock, 42, node_id=3)
    assert [(r.node_id, r.term, r.holder.process_id, r.holder.start_time_ms) for r in leases.record()] == [
        (3, 1, 41, NOON),
        (3, 2, 42, NOON),
    ]


def test_this_process_is_known_by_id_start_and_host() -> None:
    here = this_process()
    assert here.process_id > 0
    assert here.start_time_ms > NOON
    assert here.host


def test_keepalives_hold_a_node_id_for_as_long_as_they_come(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=5)
    for _ in range(100):
        clock.now_ms += POLICY.keepalive_every_ms
        minting.keepalive()
        minting.next_id()
    assert minting.node_id == 5
    with pytest.raises(UserError):
        ids(leases, clock, 2, node_id=5)


def test_a_lease_without_keepalive_expires_and_cannot_be_revived(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=5)
    clock.now_ms += POLICY.duration_ms
    with pytest.raises(TransientFailure, match="no keepalive came in time") as failure:
        minting.keepalive()
    assert refusal_of(failure) == "NodeLeaseLost"


def test_minting_stops_when_keepalives_have_failed_for_longer_than_the_window(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock)
    clock.now_ms = minting.lease.reserved_until_ms - 1
    minting.next_id()
    clock.now_ms += 1
    with pytest.raises(TransientFailure) as failure:
        minting.next_id()
    assert refusal_of(failure) == "TraceIdsExhausted"


def test_a_revoked_lease_is_lost_at_the_next_keepalive_and_its_node_id_rests(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=5)
    leases.revoke(5)
    with pytest.raises(TransientFailure, match="revoked") as failure:
        minting.keepalive()
    assert refusal_of(failure) == "NodeLeaseLost"
    with pytest.raises(TransientFailure):
        minting.reserve_block(10)
    with pytest.raises(UserError, match="not cooled down"):
        ids(leases, clock, 2, node_id=5)
    assert leases.record()[0].end is LeaseEnd.REVOKED


def test_a_node_id_is_given_out_again_only_after_the_cooldown(leases: NodeLeases, clock: Clock) -> None:
    first = ids(leases, clock, node_id=5)
    first.next_id()
    first.close()
    used_until = leases.record()[0].reserved_until_ms
    assert used_until == NOON + 1
    clock.now_ms = used_until + POLICY.cooldown_ms - 1
    with pytest.raises(UserError, match="it is free in 1 ms"):
        ids(leases, clock, 2, node_id=5)
    clock.now_ms += 1
    assert ids(leases, clock, 2, node_id=5).lease.term == 2


def test_a_configured_node_id_is_free_as_soon_as_nobody_holds_it(leases: NodeLeases, clock: Clock) -> None:
    first = ids(leases, clock, node_id=ConfiguredNode(5))
    last = first.next_id()
    with pytest.raises(UserError, match=f"is held by process 1 on a; it is free in {POLICY.duration_ms} ms"):
        ids(leases, clock, 2, node_id=ConfiguredNode(5))
    first.close()
    assert ids(leases, clock, 2, node_id=ConfiguredNode(5)).next_id() > last


def test_a_configured_node_id_whose_holder_died_mints_beyond_all_that_was_reserved(
    leases: NodeLeases, clock: Clock
) -> None:
    dead = ids(leases, clock, node_id=ConfiguredNode(5))
    block = dead.reserve_block(10_000_000)
    clock.now_ms = dead.lease.expires_at_ms
    successor = ids(leases, clock, 2, node_id=ConfiguredNode(5))
    assert successor.reserve_block(10).first_tick >= block.end_tick


def test_a_revoked_node_id_rests_though_it_is_configured(leases: NodeLeases, clock: Clock) -> None:
    ids(leases, clock, node_id=ConfiguredNode(5))
    leases.revoke(5)
    with pytest.raises(UserError, match="not cooled down"):
        ids(leases, clock, node_id=ConfiguredNode(5))


def test_the_cooldown_starts_only_when_blocks_reserved_ahead_have_come_to_pass(
    leases: NodeLeases, clock: Clock
) -> None:
    crashed = ids(leases, clock, node_id=5)
    block = crashed.reserve_block(4096 * 3_600_000)
    assert block.end_ms == NOON + 3_600_000
    clock.now_ms += 3_600_000
    with pytest.raises(UserError, match="not cooled down"):
        ids(leases, clock, 2, node_id=5)
    clock.now_ms += 2 * POLICY.duration_ms + POLICY.cooldown_ms + 1
    successor = ids(leases, clock, 2, node_id=5)
    assert decompose(successor.next_id()).timestamp_ms >= block.end_ms


def test_a_block_is_covered_by_the_recorded_lease_before_it_is_given_out(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock)
    block = minting.reserve_block(4096 * 1_000_000)
    assert leases.record()[0].reserved_until_ms >= block.end_ms


def test_a_node_id_stays_the_same_and_a_closed_one_mints_nothing_more(leases: NodeLeases, clock: Clock) -> None:
    with ids(leases, clock, node_id=8) as minting:
        assert decompose(minting.next_id()).node_id == minting.node_id == 8
    with pytest.raises(TransientFailure):
        minting.next_id()
    with pytest.raises(TransientFailure):
        minting.reserve_block(1)


def test_a_release_after_the_lease_was_lost_changes_nothing(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=8)
    leases.revoke(8)
    before = leases.record()
    minting.close()
    assert leases.record() == before


def test_the_longest_free_node_id_is_taken_once_none_is_unused(leases: NodeLeases, clock: Clock) -> None:
    minting = [ids(leases, clock, n) for n in range(1024)]
    clock.now_ms += 5
    minting[600].close()
    clock.now_ms += 5
    minting[3].close()
    clock.now_ms += POLICY.cooldown_ms
    assert ids(leases, clock).node_id == 600


def test_a_process_whose_clock_is_behind_starts_where_the_last_holder_ended(leases: NodeLeases, clock: Clock) -> None:
    first = ids(leases, clock, node_id=5)
    last_id = first.next_id()
    first.close()
    clock.now_ms += POLICY.cooldown_ms * 2
    behind = Clock(NOON - 86_400_000)
    successor = LeasedTraceIds(leases, policy=POLICY, holder=holder(2), node_id=5, clock_ms=behind)
    assert successor.next_id() > last_id


def test_a_store_clock_set_back_shortens_no_lease(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock)
    before = minting.lease
    clock.now_ms -= 3_600_000
    minting.keepalive()
    assert minting.lease == replace(before, reserved_until_ms=minting.lease.reserved_until_ms)
    assert minting.lease.reserved_until_ms >= before.reserved_until_ms


PROCESS = st.integers(0, 3)
ACTIONS = st.one_of(
    st.tuples(st.just("start"), st.integers(-2, 2)),
    st.tuples(st.sampled_from(["mint", "block", "keepalive", "close", "revoke"]), PROCESS),
    st.tuples(st.just("clock of the store"), st.sampled_from([-10_000, 9_000, 31_000, 150_000])),
    st.tuples(st.just("clock of a process"), PROCESS),
)


@settings(max_examples=examples(300), deadline=None)
@given(actions=st.lists(ACTIONS, min_size=10, max_size=60))
def test_no_id_is_minted_twice_whatever_clocks_leases_and_undead_processes_do(actions: list[tuple[str, int]]) -> None:
    store_clock = Clock()
    leases = MemoryNodeLeases(POLICY, store_clock)
    processes: list[tuple[LeasedTraceIds, Clock]] = []
    minted: list[tuple[int, int]] = []
    for action, number in actions:
        try:
            if action == "start":
                all_believe_it_is_noon = Clock(NOON + number)
                minting = ids(leases, all_believe_it_is_noon, len(processes), node_id=0)
                processes.append((minting, all_believe_it_is_noon))
            elif action == "clock of the store":
                store_clock.now_ms += number
            elif processes:
                process, own_clock = processes[number % len(processes)]
                if action == "clock of a process":
                    own_clock.now_ms = NOON + 150_000 - own_clock.now_ms % 150_000
                elif action == "revoke":
                    leases.revoke(0)
                else:
                    minted.extend(do(process, action))
        except ClewError:
            continue
    for (_, end), (start, _) in pairwise(sorted(minted)):
        assert end <= start


def do(process: LeasedTraceIds, action: str) -> list[tuple[int, int]]:
    """Returns the ticks that were minted, from one to before another."""
    if action == "mint":
        parts = decompose(process.next_id())
        tick = parts.timestamp_ms * 4096 + parts.sequence
        return [(tick, tick + 1)]
    if action == "block":
        block = process.reserve_block(4096 * 10_000)
        return [(block.first_tick, block.end_tick)]
    if action == "keepalive":
        process.keepalive()
    else:
        process.close()
    return []
