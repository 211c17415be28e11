from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from clew.diagnostics import EngineBug, TransientFailure, UserError
from clew.events import (
    AlertRaised,
    NewEvent,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunStarted,
    SignalAccepted,
    SignalRejected,
    StepCompleted,
    StepFailed,
    StepStarted,
    verify_chain,
)
from clew.events.bodies import Counters
from clew.events.envelope import idempotency_key
from clew.events.values import ArtifactRef, Cursor, PlanRef
from clew.runs.leases import LateWrite, Lease, OutOfDate
from clew.runs.limits import Accepted
from clew.runs.stores import RecentSignals, RunStores
from clew.store.schema import run_events
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import ConfiguredNode, LeasedTraceIds, PublishedBlock
from tests.runs.runs_histories import FAILURE, START, artifact, request, steps
from tests.store.seals import KEY, the_key
from tests.store.store_fixtures import OpenStores


def new_run(stores: RunStores, run_id: str = "run-1", **changes: object) -> Lease:
    wanted = request(request_id=f"for {run_id}", **changes)
    stores.intake.create(wanted, run_id=run_id, approval_required=False, decide=lambda _: Accepted())
    claim = stores.leases.acquire(run_id, owner="tests", ttl_s=60)
    assert claim is not None
    return claim.lease


def started(at_seq: int = 10, attempt: int = 1) -> NewEvent:
    return NewEvent(StepStarted(at_seq, "fx"), START, step_id=str(at_seq), logical_attempt_id=attempt)


def completed(at_seq: int = 10, attempt: int = 1, **fields: Any) -> NewEvent:
    body = StepCompleted((artifact(str(at_seq)),), {"rows_updated": 3})
    return NewEvent(body, START, step_id=str(at_seq), logical_attempt_id=attempt, **fields)


def alert(number: int) -> NewEvent:
    return NewEvent(AlertRaised("TEST", "P2", "m"), START, step_id="ALERT:TEST", logical_attempt_id=number)


def seqs(stores: RunStores, run_id: str = "run-1") -> list[int]:
    return [event.run_seq for event in stores.reader.events(run_id)]


def test_events_come_back_as_they_were_given_in_order(stores: RunStores) -> None:
    lease = new_run(stores)
    ref = {"spark": "app-1", "ui": None}
    begun = NewEvent(RunStarted(steps(2)), START, engine_run_ref=ref)
    given = [begun, started(), completed(engine_attempt_id=3, parent_event_id=begun.event_id)]
    returned = stores.writer.append("run-1", given, token=lease.token)
    read = stores.reader.events("run-1", after=1)
    assert read == returned
    assert [event.run_seq for event in read] == [2, 3, 4]
    assert [event.body for event in read] == [event.body for event in given]
    assert [event.event_id for event in read] == [event.event_id for event in given]
    assert read[0].raw.engine_run_ref == ref
    assert read[2].engine_attempt_id == 3
    assert read[2].raw.parent_event_id == begun.event_id
    assert all(event.emitted_at == START and event.raw.adapter_version for event in read)


def test_the_key_of_a_stored_event_is_the_normative_one(stores: RunStores) -> None:
    lease = new_run(stores)
    (event,) = stores.writer.append("run-1", [started()], token=lease.token)
    assert event.raw.idempotency_key == idempotency_key("run-1", "10", 1, "StepStarted", "7")
    assert stores.reader.by_key("run-1", [event.raw.idempotency_key]) == (event,)


def test_the_same_key_again_stores_nothing_and_returns_the_stored_event(stores: RunStores) -> None:
    lease = new_run(stores)
    (first,) = stores.writer.append("run-1", [completed(engine_attempt_id=1)], token=lease.token)
    again, fresh = stores.writer.append("run-1", [completed(engine_attempt_id=2), started(20)], token=lease.token)
    assert again == first
    assert fresh.run_seq == first.run_seq + 1
    assert seqs(stores) == [1, 2, 3]


def test_another_logical_attempt_is_another_event(stores: RunStores) -> None:
    lease = new_run(stores)
    failed = NewEvent(StepFailed(FAILURE), START, step_id="10")
    stores.writer.append("run-1", [started(), failed, started(attempt=2), completed(attempt=2)], token=lease.token)
    assert seqs(stores) == [1, 2, 3, 4, 5]


def test_one_key_twice_in_one_batch_is_one_event(stores: RunStores) -> None:
    lease = new_run(stores)
    one, two = stores.writer.append("run-1", [started(), started()], token=lease.token)
    assert one == two
    assert seqs(stores) == [1, 2]


def test_a_batch_is_stored_as_a_whole_or_not_at_all(stores: RunStores) -> None:
    lease = new_run(stores)
    huge = NewEvent(StepCompleted(tuple(artifact(str(n)) for n in range(3000))), START, step_id="20")
    with pytest.raises(UserError) as refused:
        stores.writer.append("run-1", [started(), huge], token=lease.token)
    assert refused.value.code == "TooLargeForHistory"
    assert seqs(stores) == [1]


def test_an_append_with_an_old_token_is_refused(stores: RunStores) -> None:
    old = new_run(stores)
    stores.leases.release(old, seen_seq=0)
    claim = stores.leases.acquire("run-1", owner="other", ttl_s=60)
    assert claim is not None
    with pytest.raises(LateWrite):
        stores.writer.append("run-1", [started()], token=old.token)
    assert seqs(stores) == [1]
    stores.writer.append("run-1", [started()], token=claim.lease.token)


def test_what_changes_a_run_needs_a_token(stores: RunStores) -> None:
    new_run(stores)
    with pytest.raises(EngineBug) as refused:
        stores.writer.append("run-1", [started()])
    assert refused.value.code == "UnfencedWrite"
    stores.writer.append("run-1", [alert(1)])
    assert seqs(stores) == [1, 2]


def test_a_run_that_has_ended_takes_no_more_of_what_changes_it(stores: RunStores) -> None:
    lease = new_run(stores)
    stores.writer.append("run-1", [NewEvent(RunCompleted(), START)], token=lease.token)
    with pytest.raises(EngineBug) as refused:
        stores.writer.append("run-1", [NewEvent(RunFailed(FAILURE), START)], token=lease.token)
    assert refused.value.code == "EventAfterTheEnd"
    stores.writer.append("run-1", [NewEvent(RunCompleted(), START)], token=lease.token)
    stores.writer.append("run-1", [alert(1)])
    assert seqs(stores) == [1, 2, 3]


def test_a_decision_on_an_outdated_state_is_refused(stores: RunStores) -> None:
    lease = new_run(stores)
    stores.writer.append("run-1", [alert(1)])
    with pytest.raises(OutOfDate):
        stores.writer.append("run-1", [started()], token=lease.token, expected_seq=1)
    stores.writer.append("run-1", [started()], token=lease.token, expected_seq=2)
    again = stores.writer.append("run-1", [started()], token=lease.token, expected_seq=2)
    assert [event.run_seq for event in again] == [3]


def test_a_run_that_does_not_exist_takes_no_events(stores: RunStores) -> None:
    with pytest.raises(UserError) as refused:
        stores.writer.append("nothing", [alert(1)])
    assert refused.value.code == "RunNotFound"
    assert stores.reader.events("nothing") == ()


def test_histories_of_different_runs_are_numbered_apart(stores: RunStores) -> None:
    one, two = new_run(stores, "run-1"), new_run(stores, "run-2", period="2026-02")
    stores.writer.append("run-1", [started(), completed()], token=one.token)
    stores.writer.append("run-2", [started()], token=two.token)
    assert (seqs(stores, "run-1"), seqs(stores, "run-2")) == ([1, 2, 3], [1, 2])


def test_reading_starts_behind_a_number_and_ends_at_a_limit(stores: RunStores) -> None:
    new_run(stores)
    stores.writer.append("run-1", [alert(number) for number in range(1, 6)])
    assert [event.run_seq for event in stores.reader.events("run-1", after=2, limit=2)] == [3, 4]
    assert len(list(stores.reader.raw_events("run-1"))) == 6


def test_reading_from_the_last_continuation(stores: RunStores) -> None:
    lease = new_run(stores)
    assert [event.run_seq for event in stores.reader.since_last_continuation("run-1")] == [1]
    for segment in (1, 2):
        body = RunContinued(PlanRef("p", "1"), Cursor(((0, segment),)), (), Counters(segments=segment), START)
        event = NewEvent(body, START, logical_attempt_id=segment)
        stores.writer.append("run-1", [event, alert(segment)], token=lease.token)
    assert [event.run_seq for event in stores.reader.since_last_continuation("run-1")] == [4, 5]


def test_recent_signals_are_counted_by_sender_and_by_the_clock_of_the_store(url: str, open_stores: OpenStores) -> None:
    moment = [datetime(2026, 2, 1, tzinfo=UTC)]
    stores = open_stores(url, clock=lambda: moment[0])
    new_run(stores)
    stores.writer.append("run-1", [alert(1), signal("a", by="ada"), refused_signal("b", by="ada")])
    moment[0] += timedelta(seconds=40)
    stores.writer.append("run-1", [refused_signal("c", by='"; eve'), signal("d", by="bob")])
    assert stores.reader.now() == moment[0]
    recent = stores.reader.recent_signals
    assert recent("run-1", "ada", seconds=60) == RecentSignals(accepted=2, of_sender=2)
    assert recent("run-1", '"; eve', seconds=60) == RecentSignals(accepted=2, of_sender=1)
    assert recent("run-1", "nobody", seconds=60) == RecentSignals(accepted=2, of_sender=0)
    moment[0] += timedelta(seconds=21)
    assert recent("run-1", "ada", seconds=60) == RecentSignals(accepted=1, of_sender=0)


def signal(signal_id: str, *, by: str) -> NewEvent:
    body = SignalAccepted(signal_id, "PAUSE", by, "operator")
    return NewEvent(body, START, step_id=f"SIGNAL:{signal_id}")


def refused_signal(signal_id: str, *, by: str) -> NewEvent:
    body = SignalRejected(signal_id, "PAUSE", by, "viewer", "NOT_AUTHORIZED", "no")
    return NewEvent(body, START, step_id=f"SIGNAL:{signal_id}")


def test_text_of_any_kind_comes_back_unchanged(stores: RunStores) -> None:
    new_run(stores)
    details = {"ü": '日本語 \u0000 \\ " 🙂', "n": 2**60, "f": 0.1, "big": 1e300, "deep": [{"a": None}]}
    event = NewEvent(AlertRaised("TEST", "P2", "ça", details), START)
    stores.writer.append("run-1", [event])
    read = stores.reader.events("run-1")[-1].body
    assert read == event.body


def test_artifacts_are_kept_as_references(stores: RunStores) -> None:
    lease = new_run(stores)
    stores.writer.append("run-1", [completed()], token=lease.token)
    body = stores.reader.events("run-1")[-1].body
    assert isinstance(body, StepCompleted)
    assert body.artifacts == (artifact("10"),)
    assert isinstance(body.artifacts[0], ArtifactRef)


def raw_engine(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run_events SET event_type = 'RunCompleted'",
        "UPDATE run_events SET event_data = '{}' WHERE run_seq = 1",
        "DELETE FROM run_events",
        "DELETE FROM run_events WHERE run_seq = 2",
        "DELETE FROM run_deletions",
    ],
)
def test_the_database_itself_refuses_to_change_or_delete_events(
    url: str, open_stores: OpenStores, statement: str
) -> None:
    stores = open_stores(url)
    lease = new_run(stores)
    stores.writer.append("run-1", [started(), completed()], token=lease.token)
    done = new_run(stores, "run-2", period="2026-02")
    stores.writer.append("run-2", [NewEvent(RunCompleted(), START)], token=done.token)
    stores.intake.delete("run-2", deleted_by="ada", reason="a test")
    before = stores.reader.events("run-1")
    engine = raw_engine(url)
    with pytest.raises(sa.exc.DatabaseError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert stores.reader.events("run-1") == before


def test_sqlite_refuses_to_replace_an_event(sqlite_url: str, open_stores: OpenStores) -> None:
    stores = open_stores(sqlite_url)
    lease = new_run(stores)
    stores.writer.append("run-1", [started()], token=lease.token)
    engine = raw_engine(sqlite_url)
    for same, statement in _replacements().items():
        with pytest.raises(sa.exc.DatabaseError, match="append-only"), engine.begin() as connection:
            connection.exec_driver_sql(statement)
        assert [event.event_type for event in stores.reader.events("run-1")] == ["RunQueued", "StepStarted"], same
    engine.dispose()


def _replacements() -> dict[str, str]:
    """Statements that replace an event by another one, which has one of its keys and nothing else of it."""
    columns = [column.name for column in run_events.c]
    other = {"run_seq": "99", "idempotency_key": "'another key'", "event_id": "'another id'"}
    statements = dict[str, str]()
    for same in other:
        changed = {**other, "event_type": "'RunFailed'", "event_data": "'{}'"}
        del changed[same]
        values = ", ".join(changed.get(name, name) for name in columns)
        into = f"INSERT OR REPLACE INTO run_events ({', '.join(columns)})"
        statements[same] = f"{into} SELECT {values} FROM run_events WHERE run_seq = 2"
    return statements


def test_postgresql_keeps_events_in_partitions_that_cannot_be_emptied(
    postgres_url: str, open_stores: OpenStores
) -> None:
    stores = open_stores(postgres_url)
    for number in range(20):
        new_run(stores, f"run-{number}", period=f"p{number}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        used = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM run_events").fetchall()
        assert len(used) > 3
        for table in ("run_events", used[0][0]):
            with pytest.raises(psycopg.DatabaseError, match="append-only"):
                connection.execute(f"TRUNCATE {table}")
            with pytest.raises(psycopg.DatabaseError, match="append-only"):
                connection.execute(f"DELETE FROM {table}")


def test_a_whole_run_can_be_deleted_once_it_has_ended(stores: RunStores) -> None:
    lease = new_run(stores)
    with pytest.raises(UserError) as refused:
        stores.intake.delete("run-1", deleted_by="ada", reason="tidy")
    assert refused.value.code == "RunNotDeletable"
    stores.writer.append("run-1", [NewEvent(RunFailed(FAILURE), START)], token=lease.token)
    stores.intake.delete("run-1", deleted_by="ada", reason="tidy")
    assert stores.reader.events("run-1") == ()
    with pytest.raises(UserError):
        stores.catalog.run("run-1")
    with pytest.raises(UserError) as gone:
        new_run(stores)
    assert gone.value.code == "RunDeleted"


def test_the_blocks_of_a_deleted_run_go_and_their_ids_are_never_given_out_again(url: str, stores: RunStores) -> None:
    lease = new_run(stores)
    stores.writer.append("run-1", [NewEvent(RunFailed(FAILURE), START)], token=lease.token)
    with open_trace_link_stores(url) as tracing:
        far_ahead, node = 4096 * 3_600_000, ConfiguredNode(5)
        minting = LeasedTraceIds(tracing.node_leases, policy=tracing.lease_policy, node_id=node)
        kept, gone = minting.reserve_block(3), minting.reserve_block(far_ahead)
        for run_id, block in {"run-2": kept, "run-1": gone}.items():
            published = PublishedBlock(block=block, run_id=run_id, operation_seq=0, stream_id=0, epoch=1)
            tracing.blocks.record(published)
        minting.close()
        stores.intake.delete("run-1", deleted_by="ada", reason="tidy")
        assert tracing.blocks.blocks_of_run("run-1") == ()
        assert list(tracing.blocks.blocks_of([gone.trace_id(0)])) == []
        assert [block.block for block in tracing.blocks.blocks_of_run("run-2")] == [kept]
        successor = LeasedTraceIds(tracing.node_leases, policy=tracing.lease_policy, node_id=node)
        assert successor.next_id() > gone.trace_id(far_ahead - 1)


def test_a_chained_history_can_be_verified_and_shows_tampering(url: str, open_stores: OpenStores) -> None:
    stores = open_stores(url, key=the_key)
    lease = new_run(stores)
    stores.writer.append("run-1", [started(), completed()], token=lease.token)
    stores.writer.append("run-1", [alert(1)])
    run = stores.catalog.run("run-1")
    report = verify_chain(stores.reader.raw_events("run-1"), key=KEY, last_seq=run.last_seq, last_hash=run.last_hash)
    assert report.is_intact
    assert report.verified == 4

    engine = raw_engine(url)
    drop = {"sqlite": "DROP TRIGGER run_events_never_change"}.get(
        engine.dialect.name, "ALTER TABLE run_events DISABLE TRIGGER USER"
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(drop)
        connection.exec_driver_sql("UPDATE run_events SET step_id = '20' WHERE run_seq = 2")
    engine.dispose()
    report = verify_chain(stores.reader.raw_events("run-1"), key=KEY, last_seq=run.last_seq, last_hash=run.last_hash)
    assert [broken.run_seq for broken in report.breaks] == [2]


def test_the_reader_cannot_write(url: str, open_stores: OpenStores) -> None:
    stores = open_stores(url)
    new_run(stores)
    database = stores.reader._database  # type: ignore[attr-defined]
    with pytest.raises(TransientFailure, match=r"read.?only"), database.read() as connection:
        connection.exec_driver_sql("UPDATE runs SET last_seq = 0")
    assert stores.catalog.run("run-1").last_seq == 1
