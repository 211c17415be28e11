import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.store import StoreOptions
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import LeasedTraceIds, LeaseEnd, NodeHolder, NodeLeasePolicy, NodeLeases, TraceLinkStores, decompose

NOON = datetime(2026, 1, 9, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
POLICY = NodeLeasePolicy(duration_ms=30_000, cooldown_ms=60_000)


class Clock:
    """The clock of the store; processes read their own, which is one of these too."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def ms(self) -> int:
        return int(self.now.timestamp() * 1000)

    def pass_ms(self, milliseconds: int) -> None:
        self.now += timedelta(milliseconds=milliseconds)


OpenTracing = Callable[[str, Clock], TraceLinkStores]


@pytest.fixture
def open_tracing() -> Iterator[OpenTracing]:
    with ExitStack() as stack:

        def opener(address: str, clock: Clock) -> TraceLinkStores:
            return stack.enter_context(open_trace_link_stores(address, StoreOptions(clock=clock), POLICY))

        yield opener


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(url: str, clock: Clock, open_tracing: OpenTracing) -> NodeLeases:
    return open_tracing(url, clock).node_leases


def holder(process_id: int = 1) -> NodeHolder:
    return NodeHolder(process_id=process_id, start_time_ms=NOON_MS, host="a")


def ids(leases: NodeLeases, clock: Clock, process_id: int = 1, node_id: int | None = None) -> LeasedTraceIds:
    return LeasedTraceIds(leases, policy=POLICY, holder=holder(process_id), node_id=node_id, clock_ms=clock.ms)


def test_processes_get_different_node_ids_and_a_configured_one_is_refused_while_it_is_held(
    leases: NodeLeases, clock: Clock
) -> None:
    assert len({ids(leases, clock, n).node_id for n in range(20)}) == 20
    assert ids(leases, clock, 30, node_id=700).node_id == 700
    with pytest.raises(UserError, match="is held by process 30 on a") as refusal:
        ids(leases, clock, 31, node_id=700)
    assert refusal.value.code == "NodeIdTaken"


def test_keepalives_hold_a_node_id_and_without_them_it_expires_and_rests(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=5)
    for _ in range(10):
        clock.pass_ms(POLICY.keepalive_every_ms)
        minting.keepalive()
    clock.pass_ms(POLICY.duration_ms)
    with pytest.raises(TransientFailure, match="no keepalive came in time"):
        minting.keepalive()
    with pytest.raises(UserError, match="not cooled down"):
        ids(leases, clock, 2, node_id=5)
    clock.pass_ms(minting.lease.free_from_ms(POLICY) - clock.ms())
    successor = ids(leases, clock, 2, node_id=5)
    assert successor.lease.term == 2
    assert successor.lease.first_ms == minting.lease.reserved_until_ms
    with pytest.raises(TransientFailure, match="another process holds it"):
        minting.keepalive()


def test_a_revoked_lease_is_lost_and_revoking_what_nobody_holds_does_nothing(leases: NodeLeases, clock: Clock) -> None:
    minting = ids(leases, clock, node_id=5)
    leases.revoke(5)
    leases.revoke(6)
    with pytest.raises(TransientFailure, match="revoked"):
        minting.reserve_block(10)
    before = leases.record()
    minting.close()
    assert leases.record() == before
    assert before[0].end is LeaseEnd.REVOKED


def test_the_cooldown_covers_blocks_reserved_ahead_of_the_clock(leases: NodeLeases, clock: Clock) -> None:
    crashed = ids(leases, clock, node_id=5)
    block = crashed.reserve_block(4096 * 3_600_000)
    assert leases.record()[0].reserved_until_ms >= block.end_ms
    clock.pass_ms(3_600_000 + POLICY.duration_ms)
    with pytest.raises(UserError, match="not cooled down"):
        ids(leases, clock, 2, node_id=5)
    clock.pass_ms(2 * POLICY.duration_ms + POLICY.cooldown_ms)
    assert decompose(ids(leases, clock, 2, node_id=5).next_id()).timestamp_ms >= block.end_ms


def test_every_lease_is_recorded_with_node_id_process_id_and_start_time(leases: NodeLeases, clock: Clock) -> None:
    ids(leases, clock, 41, node_id=3).close()
    clock.pass_ms(1_000_000)
    ids(leases, clock, 42, node_id=3)
    assert [(r.node_id, r.holder.process_id, r.holder.start_time_ms, r.end) for r in leases.record()] == [
        (3, 41, NOON_MS, LeaseEnd.RELEASED),
        (3, 42, NOON_MS, None),
    ]


def test_a_record_outlives_the_process_that_opened_the_store(url: str, clock: Clock, open_tracing: OpenTracing) -> None:
    with open_trace_link_stores(url, StoreOptions(clock=clock), POLICY) as first:
        ids(first.node_leases, clock, 41, node_id=3)
    again = open_tracing(url, clock).node_leases
    with pytest.raises(UserError, match="process 41"):
        ids(again, clock, 42, node_id=3)


PROCESS = st.integers(0, 3)
ACTIONS = st.one_of(
    st.tuples(st.just("start"), st.integers(-2, 2)),
    st.tuples(st.sampled_from(["mint", "block", "keepalive", "close", "revoke"]), PROCESS),
    st.tuples(st.just("clock of the store"), st.sampled_from([-10_000, 9_000, 31_000, 150_000])),
    st.tuples(st.just("clock of a process"), PROCESS),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, min_size=10, max_size=40))
def test_no_id_is_minted_twice_whatever_steps_clocks_make(sqlite_url: str, actions: list[tuple[str, int]]) -> None:
    """Each example has a separate node id: what earlier ones did to the store stays."""
    clock = Clock()
    with open_trace_link_stores(sqlite_url, StoreOptions(clock=clock), POLICY) as stores:
        node_id = len({lease.node_id for lease in stores.node_leases.record()})
        minted = list(_ticks(stores.node_leases, clock, actions, node_id))
    for (_, end), (start, _) in pairwise(sorted(minted)):
        assert end <= start


def _ticks(leases: NodeLeases, clock: Clock, actions: list[tuple[str, int]], node_id: int) -> Iterator[tuple[int, int]]:
    processes: list[tuple[LeasedTraceIds, Clock]] = []
    for action, number in actions:
        try:
            if action == "start":
                believes = Clock(NOON + timedelta(milliseconds=number))
                processes.append((ids(leases, believes, len(processes), node_id=node_id), believes))
            elif action == "clock of the store":
                clock.pass_ms(number)
            elif processes:
                process, own_clock = processes[number % len(processes)]
                if action == "clock of a process":
                    own_clock.pass_ms(150_000 - own_clock.ms() % 150_000)
                elif action == "revoke":
                    leases.revoke(node_id)
                elif action == "mint":
                    parts = decompose(process.next_id())
                    tick = parts.timestamp_ms * 4096 + parts.sequence
                    yield tick, tick + 1
                elif action == "block":
                    block = process.reserve_block(4096 * 10_000)
                    yield block.first_tick, block.end_tick
                elif action == "keepalive":
                    process.keepalive()
                else:
                    process.close()
        except ClewError:
            continue


def lease_and_mint(url: str, count: int) -> tuple[int, list[int]]:
    with (
        open_trace_link_stores(url, StoreOptions(busy_timeout_s=60)) as stores,
        LeasedTraceIds(stores.node_leases, policy=stores.lease_policy) as minting,
    ):
        minted = [minting.next_id() for _ in range(count)]
        minted.extend(minting.reserve_block(count))
        minted.extend(minting.next_id() for _ in range(count))
        return minting.node_id, minted


def test_eight_processes_that_lease_from_one_store_mint_no_id_twice(url: str) -> None:
    context = get_context("forkserver")
    context.set_forkserver_preload(["clew.store.tracelink"])
    with context.Pool(8) as pool:
        results = pool.starmap(lease_and_mint, [(url, 5_000)] * 8, chunksize=1)
    every = [trace_id for _, minted in results for trace_id in minted]
    assert len({node_id for node_id, _ in results}) == 8
    assert len(every) == len(set(every)) == 8 * 15_000


def lease_mint_and_hang(url: str, told: Connection) -> None:
    with open_trace_link_stores(url, policy=POLICY) as stores:
        minting = LeasedTraceIds(stores.node_leases, policy=POLICY, node_id=9)
        block = minting.reserve_block(4096 * 3_600_000)
        told.send((minting.next_id(), block.trace_id(block.count - 1)))
        told.recv()


def test_a_process_that_is_killed_leaves_a_node_id_that_rests_and_ids_that_nobody_repeats(
    url: str, open_tracing: OpenTracing
) -> None:
    context = get_context("forkserver")
    told, tell = context.Pipe()
    process = context.Process(target=lease_mint_and_hang, args=(url, tell))
    process.start()
    assert told.poll(60)
    minted = told.recv()
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    clock = Clock(datetime.now(UTC))
    leases = open_tracing(url, clock).node_leases
    [lost] = leases.record()
    assert (lost.holder.process_id, lost.end) == (process.pid, None)
    with pytest.raises(UserError, match="is held by process"):
        ids(leases, clock, 2, node_id=9)
    for moment in (lost.expires_at_ms, lost.reserved_until_ms, lost.free_from_ms(POLICY) - 1):
        clock.pass_ms(moment - clock.ms())
        with pytest.raises(UserError, match="not cooled down"):
            ids(leases, clock, 2, node_id=9)
    clock.pass_ms(1)
    successor = ids(leases, clock, 2, node_id=9)
    last = successor.next_id()
    assert last > max(minted)
    a_day_behind = Clock(clock.now - timedelta(hours=24))
    clock.pass_ms(successor.lease.free_from_ms(POLICY) - clock.ms())
    assert ids(leases, a_day_behind, 3, node_id=9).next_id() > last
