"""The trace ids of the runs of a process, over the leases of a real state store."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from clew.api.trace_ids import ProcessTraceIds
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.diagnostics.codes.tracelink import NODE_LEASE_LOST
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import NodeLeasePolicy, PublishedBlock, TraceIdBlock
from clew.tracelink.node_leases import LeaseEnd, this_process
from clew.tracelink.stores import TraceLinkStores


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[TraceLinkStores]:
    with open_trace_link_stores(
        f"sqlite:///{tmp_path / 'state.db'}", policy=NodeLeasePolicy(duration_ms=3_000)
    ) as opened:
        yield opened


def test_a_process_keeps_its_node_id_while_it_drives_runs_and_gives_it_back_at_the_end(stores: TraceLinkStores) -> None:
    ids, done = ProcessTraceIds(stores), threading.Event()
    beside = threading.Thread(target=ids.run, args=(done,))
    beside.start()
    assert stores.node_leases.record() == ()
    blocks = [reserved(ids, 5_000)]
    granted = stores.node_leases.record()[0]
    while stores.node_leases.record()[0].expires_at_ms <= granted.expires_at_ms:
        done.wait(0.02)
    blocks.append(reserved(ids, 10))
    done.set()
    beside.join()
    [lease] = stores.node_leases.record()
    assert {block.node_id for block in blocks} == {lease.node_id}
    assert all(one.end_tick <= other.first_tick for one, other in pairwise(blocks))
    assert lease.end is LeaseEnd.RELEASED
    assert lease.reserved_until_ms >= max(block.end_ms for block in blocks)


def test_two_processes_get_different_ids(stores: TraceLinkStores) -> None:
    one, other = ProcessTraceIds(stores), ProcessTraceIds(stores)
    assert not set(reserved(one, 1_000)) & set(reserved(other, 1_000))


def test_after_a_lost_lease_another_node_id_is_leased(stores: TraceLinkStores) -> None:
    ids = ProcessTraceIds(stores)
    first = reserved(ids, 10)
    stores.node_leases.revoke(first.node_id)
    second = reserved(ids, 10)
    assert second.node_id != first.node_id


def test_a_busy_store_does_not_make_a_process_change_its_node_id(stores: TraceLinkStores) -> None:
    ids = ProcessTraceIds(stores)
    first = reserved(ids, 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(stores.node_leases), "keepalive", _busy)
        assert ids.reserve(10) is None
    again = reserved(ids, 10)
    assert (again.node_id, len(stores.node_leases.record())) == (first.node_id, 1)
    assert again.first_tick >= first.end_tick


def test_a_store_that_was_away_for_longer_than_the_lease_gives_the_same_node_id_again(tmp_path: Path) -> None:
    with open_trace_link_stores(
        f"sqlite:///{tmp_path / 'state.db'}", policy=NodeLeasePolicy(duration_ms=1, cooldown_ms=3_600_000)
    ) as stores:
        ids, found = ProcessTraceIds(stores), list[TraceIdBlock | None]()
        while len(stores.node_leases.record()) < 3:
            found.append(ids.reserve(10))
        assert len({lease.node_id for lease in stores.node_leases.record()}) == 1
        blocks = [block for block in found if block is not None]
        assert all(one.end_tick <= other.first_tick for one, other in pairwise(blocks))


def test_another_process_does_not_get_a_node_id_that_has_expired_before_its_cooldown(tmp_path: Path) -> None:
    with open_trace_link_stores(
        f"sqlite:///{tmp_path / 'state.db'}", policy=NodeLeasePolicy(duration_ms=1, cooldown_ms=3_600_000)
    ) as stores:
        mine = stores.node_leases.acquire(this_process(), reserve_until_ms=0)
        other = replace(this_process(), start_time_ms=this_process().start_time_ms + 1)
        with pytest.raises(UserError, match="NodeIdTaken"):
            stores.node_leases.acquire(other, reserve_until_ms=0, node_id=mine.node_id)


def test_the_start_time_of_a_holder_is_that_of_its_process() -> None:
    assert this_process() == this_process()
    assert abs(this_process().start_time_ms - psutil.Process().create_time() * 1000) < 2_000


def _busy(*_: object, **__: object) -> None:
    raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="the database is locked"))


def test_a_configured_node_id_is_used_by_one_process_after_the_other_without_a_rest(stores: TraceLinkStores) -> None:
    blocks = []
    for _ in range(3):
        ids, done = ProcessTraceIds(stores, node_id=700), threading.Event()
        blocks.append(reserved(ids, 5_000))
        done.set()
        ids.run(done)
    assert [lease.node_id for lease in stores.node_leases.record()] == [700] * 3
    assert all(one.end_tick <= other.first_tick for one, other in pairwise(blocks))


def test_a_second_process_with_the_same_configured_node_id_mints_nothing_and_says_who_has_it(
    stores: TraceLinkStores, caplog: pytest.LogCaptureFixture
) -> None:
    reserved(ProcessTraceIds(stores, node_id=700), 10)
    assert ProcessTraceIds(stores, node_id=700).reserve(10) is None
    assert f"10 rows have no trace ids: NodeIdTaken: node id 700 is held by process {os.getpid()} on" in caplog.text
    assert [lease.node_id for lease in stores.node_leases.record()] == [700]


def test_nothing_that_a_store_does_reaches_the_run(stores: TraceLinkStores, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise TransientFailure(NODE_LEASE_LOST.anywhere(node_id=0, reason="the store is away"))

    ids = ProcessTraceIds(stores)
    block = reserved(ids, 10)
    monkeypatch.setattr(type(stores.node_leases), "acquire", away)
    monkeypatch.setattr(type(stores.node_leases), "keepalive", away)
    monkeypatch.setattr(type(stores.blocks), "record", away)
    assert ids.reserve(10) is None
    ids.publish([PublishedBlock(block=block, run_id="r", operation_seq=0, stream_id=0, epoch=1)])
    done = threading.Event()
    done.set()
    ids.run(done)


def reserved(ids: ProcessTraceIds, count: int) -> TraceIdBlock:
    block = ids.reserve(count)
    assert block is not None
    return block
