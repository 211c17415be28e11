import multiprocessing
import shutil
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from clew.diagnostics import ClewError, UserError
from clew.events import NewEvent, RunCompleted, StepCompleted, verify_chain
from clew.events.snapshot import RunStatus, StepStatus
from clew.runs.limits import Accepted
from clew.runs.projector import Projector
from clew.runs.stores import RunStores
from clew.store import StoreOptions, open_run_stores
from clew.store.migrations import MIGRATIONS
from clew.store.schema import metadata
from tests.runs.runs_histories import START, request
from tests.store.seals import KEY, the_key
from tests.store.store_fixtures import OpenStores

FIXTURES = Path(__file__).parent / "fixtures"
NEWEST = MIGRATIONS[-1].version


@pytest.fixture
def first_version(request: pytest.FixtureRequest, url: str) -> str:
    """A database that the first version of the schema wrote, kept as a file."""
    if url.startswith("sqlite"):
        shutil.copy(FIXTURES / "state-v1.sqlite", url.removeprefix("sqlite:///"))
    else:
        script = (FIXTURES / "state-v1.postgresql.sql").read_text()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(script)
    return url


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def schema_version(url: str) -> int:
    engine = engine_of(url)
    with engine.connect() as connection:
        version = connection.exec_driver_sql("SELECT MAX(version) FROM schema_version").scalar_one()
    engine.dispose()
    return int(version)


def test_a_database_of_the_first_version_opens_and_its_run_goes_on(first_version: str, open_stores: OpenStores) -> None:
    assert schema_version(first_version) == 1
    stores = open_stores(first_version, key=the_key)
    assert schema_version(first_version) == NEWEST

    snapshot = Projector(stores.reader, stores.writer, stores.snapshots).look("run-v1").snapshot
    assert snapshot.status is RunStatus.RUNNING
    assert [step.status for step in snapshot.steps] == [StepStatus.SUCCESS, StepStatus.RUNNING]
    assert snapshot.artifacts[0].size_bytes == 1234
    assert snapshot.steps[0].counts == {}

    claim = stores.leases.claim("dev", owner="new", ttl_s=30, max_running=1)
    assert claim is not None
    assert stores.attempts.next_engine_attempt(claim.lease, "20", 1) == 2
    done = [NewEvent(StepCompleted(), START, step_id="20"), NewEvent(RunCompleted(), START)]
    stores.writer.append("run-v1", done, token=claim.lease.token)
    assert [event.run_seq for event in stores.reader.events("run-v1")] == [1, 2, 3, 4, 5, 6, 7]
    run = stores.catalog.run("run-v1")
    report = verify_chain(
        stores.reader.raw_events("run-v1"), key=KEY, last_seq=run.last_seq, last_hash=run.last_hash, adopted=5
    )
    assert (report.is_intact, report.unchained, report.verified) == (True, 5, 2)
    assert [entry.event.run_seq for entry in stores.outbox.take("hook", limit=5, hold_s=1)] == [5]


def test_events_of_an_upgraded_database_are_still_guarded(first_version: str, open_stores: OpenStores) -> None:
    open_stores(first_version)
    engine = engine_of(first_version)
    with pytest.raises(sa.exc.DatabaseError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM run_events")
    engine.dispose()


def test_the_migrations_build_exactly_the_tables_that_queries_use(url: str, open_stores: OpenStores) -> None:
    open_stores(url)
    engine = engine_of(url)
    inspector = sa.inspect(engine)
    for table in metadata.sorted_tables:
        keys = {column.name for column in table.primary_key}
        found = {column["name"]: column["nullable"] for column in inspector.get_columns(table.name)}
        assert found.keys() == set(table.c.keys())
        assert all(found[column.name] == column.nullable for column in table.c if column.name not in keys)
        assert set(inspector.get_pk_constraint(table.name)["constrained_columns"]) == keys
        expected = {
            tuple(column.name for column in constraint.columns)
            for constraint in table.constraints
            if isinstance(constraint, sa.UniqueConstraint)
        }
        assert {tuple(u["column_names"]) for u in inspector.get_unique_constraints(table.name)} == expected
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(url: str, open_stores: OpenStores) -> None:
    open_stores(url)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO schema_version (version) VALUES ({NEWEST + 1})")
    engine.dispose()
    with pytest.raises(UserError) as refused, open_run_stores(url):
        pass
    assert refused.value.code == "StoreTooNew"


@pytest.mark.parametrize(
    "address", ["mysql://localhost/x", "not an address", "sqlite://", "postgresql://nobody@/none?host=/nowhere"]
)
def test_what_is_not_a_state_store_is_refused(address: str) -> None:
    with pytest.raises(ClewError, match="state store"), open_run_stores(address):
        pass


@pytest.mark.parametrize("address", ["mysql://u:hunter2@localhost/x", "postgresql://u:hunter2@localhost:port/x"])
def test_a_refused_address_is_told_without_its_password(address: str) -> None:
    with pytest.raises(UserError) as refused, open_run_stores(address):
        pass
    assert refused.value.code == "StoreUnreadable"
    assert "localhost" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_folder_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(UserError) as refused, open_run_stores(f"sqlite:///{tmp_path}/taken/state.db"):
        pass
    assert refused.value.code == "StoreUnreadable"
    assert "its folder cannot be made" in str(refused.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("id;amount\n" * 500)
    with pytest.raises(UserError) as refused, open_run_stores(f"sqlite:///{path}"):
        pass
    assert refused.value.code == "StoreUnreadable"


def open_and_submit(url: str, number: int) -> None:
    with open_run_stores(url, StoreOptions(busy_timeout_s=30)) as stores:
        wanted = request(request_id=str(number))
        stores.intake.create(wanted, run_id=f"run-{number}", approval_required=False, decide=lambda _: Accepted())


def test_eight_processes_may_create_the_database_at_the_same_time(url: str, open_stores: OpenStores) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["clew.store", "runs_histories"])
    processes = [context.Process(target=open_and_submit, args=(url, number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    stores: RunStores = open_stores(url)
    assert stores.catalog.load("dev").queued == 8
