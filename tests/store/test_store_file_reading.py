"""A state store in a file, read and added to by the driver alone: the same as by SQLAlchemy."""

import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.auth.access_log import AccessRecord, Subject
from clew.diagnostics import TransientFailure, UserError
from clew.events import NewEvent, StepStarted
from clew.events.ledger import EntryKind, chain_problems
from clew.events.snapshot import RunStatus
from clew.events.values import PlanRef
from clew.runs.deadline import within
from clew.runs.limits import Accepted
from clew.runs.request import RunFilter, RunRequest
from clew.runs.stores import RunStores
from clew.store.access import SqlAccessLog
from clew.store.ledger import SqlLedgerReader
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.owner import Owner
from clew.store.reading import SqlHistory, SqlRunList, SqlSavedSnapshots
from clew.store.schema_version import NEWEST
from clew.store.sqlite_file import FileAccessLog, SqliteFile, readable_file
from clew.store.state_store import StoreOptions, open_database
from tests.store.seals import KEY, ledger_of, the_key
from tests.store.store_fixtures import OpenStores

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def opened(path: Path) -> SqliteFile:
    file = readable_file(path)
    assert file is not None
    return file


def with_runs(stores: RunStores, *names: str) -> None:
    for name in names:
        request = RunRequest(
            project_id="close", plan=PlanRef("p", "1"), period=name, request_id=name, parameters={"wörter": ["ß", 1]}
        )
        stores.intake.create(request, run_id=name, approval_required=False, decide=lambda _: Accepted())
        claim = stores.leases.acquire(name, owner="test", ttl_s=60)
        assert claim is not None
        stores.writer.append(name, [NewEvent(StepStarted(10, "Ä step"), MOMENT)], token=claim.lease.token)


def test_runs_and_histories_are_the_same_either_way(tmp_path: Path, sqlite_url: str, open_stores: OpenStores) -> None:
    stores = open_stores(sqlite_url)
    with_runs(stores, "run-1", "run-2", "other")
    file = opened(tmp_path / "state.db")
    listed, history = SqlRunList(file), SqlHistory(file)
    everything = stores.catalog.runs(RunFilter())
    assert len(everything) == 3
    for which in (
        RunFilter(),
        RunFilter(period="run-1"),
        RunFilter(status=RunStatus.PENDING),
        RunFilter(id_prefix="ru"),
    ):
        assert listed.runs(which) == stores.catalog.runs(which)
    assert listed.runs(RunFilter(), limit=1, before=everything[0]) == everything[1:2]
    for run in everything:
        assert listed.run(run.run_id) == run
        assert history.events(run.run_id) == stores.reader.events(run.run_id)
        assert history.events(run.run_id, after=1, limit=1) == stores.reader.events(run.run_id, after=1, limit=1)
        assert list(history.raw_events(run.run_id)) == list(stores.reader.raw_events(run.run_id))
        assert SqlSavedSnapshots(file).load(run.run_id) == stores.snapshots.load(run.run_id)
    with pytest.raises(UserError, match="no run"):
        listed.run("nobody")
    file.close()


def record(detail: str) -> AccessRecord:
    return AccessRecord(
        tenant_id="default",
        actor="Ada",
        role="admin",
        token_id=None,
        subject=Subject.TRACE,
        subject_id="run-1",
        detail=detail,
        read_at=MOMENT,
    )


def test_reads_that_the_driver_records_are_links_of_the_ledger(tmp_path: Path, sqlite_url: str) -> None:
    database = open_database(sqlite_url, StoreOptions())
    migrate(database, MIGRATIONS)
    log = SqlAccessLog(database, "dev", ledger_of(database))
    file = opened(tmp_path / "state.db")
    alone = FileAccessLog(file, Owner(), the_key)
    assert not alone.has_begun()
    log.add(record("one"))
    assert alone.has_begun()
    alone.add(record("two"), record("three"))
    log.add(record("four"))
    assert [each.detail for each in log.records("default")] == ["four", "three", "two", "one"]
    reader = SqlLedgerReader(database, Owner())
    problems, entries = chain_problems(reader.entries(), KEY)
    assert problems == []
    told = {str(each.content["key"]): each.content["digest"] for each in entries if each.kind == EntryKind.ROWS_READ}
    assert told == reader.row_digests("access_log")
    assert len(told) == 4
    file.close()
    database.close()


def test_a_record_is_stored_whole_or_not_at_all(tmp_path: Path, sqlite_url: str) -> None:
    database = open_database(sqlite_url, StoreOptions())
    migrate(database, MIGRATIONS)
    log = SqlAccessLog(database, "dev", ledger_of(database))
    log.add(record("one"))
    file = opened(tmp_path / "state.db")
    with database.write(), within(0.1), pytest.raises(TransientFailure):
        FileAccessLog(file, Owner(), the_key).add(record("two"))
    assert [each.detail for each in log.records("default")] == ["one"]
    file.close()
    database.close()


def test_what_must_be_created_or_upgraded_is_left_to_those_who_write(tmp_path: Path) -> None:
    assert readable_file(tmp_path / "state.db") is None
    (tmp_path / "empty.db").write_bytes(b"")
    assert readable_file(tmp_path / "empty.db") is None
    shutil.copyfile(Path(__file__).parent / "fixtures" / "state-v1.sqlite", tmp_path / "old.db")
    assert readable_file(tmp_path / "old.db") is None


def test_what_is_no_state_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(UserError) as refused:
        readable_file(tmp_path / "state.db")
    assert refused.value.diagnostic.code == "StoreUnreadable"


def test_nothing_is_written_by_reading(tmp_path: Path, sqlite_url: str, open_stores: OpenStores) -> None:
    open_stores(sqlite_url)
    file = opened(tmp_path / "state.db")
    with pytest.raises(Exception, match="readonly"):
        file.rows("DELETE FROM runs", {})
    file.close()


def test_the_newest_version_is_that_of_the_last_migration() -> None:
    assert MIGRATIONS[-1].version == NEWEST


def test_an_event_costs_the_same_however_many_came_before_it(
    tmp_path: Path, sqlite_url: str, open_stores: OpenStores
) -> None:
    open_stores(sqlite_url)
    connection = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    columns = "run_id, run_seq, event_id, step_id, logical_attempt_id, event_type, event_version, event_data"
    insert = (
        f"INSERT INTO run_events ({columns}, idempotency_key, emitted_at, persisted_at, adapter_version)"
        " VALUES ('run', :seq, :id, '10', 1, 'StepStarted', 1, '{}', :id, 'then', 'then', 'clew')"
    )
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def steps_of(seq: int) -> int:
        """The instructions of SQLite for one event."""
        nonlocal steps
        steps = 0
        connection.set_progress_handler(count, 1)
        connection.execute(insert, {"seq": seq, "id": f"{seq:032}"})
        connection.set_progress_handler(None, 0)
        return steps

    connection.execute("BEGIN")
    first = steps_of(1)
    connection.executemany(insert, [{"seq": seq, "id": f"{seq:032}"} for seq in range(2, 500)])
    assert steps_of(500) <= first + 20
    connection.close()
