import resource
import signal
from collections import deque
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
import pytest

from clew.diagnostics import ClewError, TransientFailure
from clew.runs.limits import Accepted
from clew.store import StoreOptions, open_run_stores
from tests.runs.runs_histories import request
from tests.store.store_fixtures import OpenStores
from tests.store.store_postgres import postgres_server
from tests.store.store_processes import alert, fork_context


def fill_the_disk(path: str, report: Connection) -> None:
    """Append under a limit on the size of files until the store refuses, then lift the limit and go on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open_run_stores(f"sqlite:///{path}", StoreOptions(max_event_bytes=100_000)) as stores:
        stores.intake.create(request(), run_id="a", approval_required=False, decide=lambda _: Accepted())
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size + 100_000, most))
        stored, refused = 0, None
        while refused is None and stored < 10_000:
            try:
                stores.writer.append("a", [alert(0, stored)])
                stored += 1
            except ClewError as error:
                refused = error
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        survived = len(stores.reader.events("a"))
        stores.writer.append("a", [alert(1, 1)])
        report.send((stored, type(refused).__name__, refused.code if refused else None, survived))


def test_a_write_to_a_full_disk_fails_cleanly_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    context = fork_context()
    receive, send = context.Pipe(duplex=False)
    path = tmp_path / "state.db"
    process = context.Process(target=fill_the_disk, args=(str(path), send))
    process.start()
    stored, kind, code, survived = receive.recv()
    process.join(30)
    assert process.exitcode == 0
    assert kind == "TransientFailure"
    assert code in {"StoreFull", "StoreUnavailable"}
    assert survived == stored + 1
    with open_run_stores(f"sqlite:///{path}") as stores:
        assert [event.run_seq for event in stores.reader.events("a")] == list(range(1, stored + 3))


def test_a_database_file_at_its_limit_says_that_it_is_full(sqlite_url: str, open_stores: OpenStores) -> None:
    stores = open_stores(sqlite_url)
    stores.intake.create(request(), run_id="a", approval_required=False, decide=lambda _: Accepted())
    with stores.writer._database.write() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
    batches = ([alert(0, number)] for number in range(2000))
    with pytest.raises(TransientFailure) as refused:
        deque((stores.writer.append("a", batch) for batch in batches), maxlen=0)
    assert refused.value.code == "StoreFull"
    events = stores.reader.events("a")
    assert [event.run_seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.postgres
def test_a_server_that_went_away_is_a_transient_failure_and_its_return_is_noticed() -> None:
    with postgres_server() as server, open_run_stores(server.url) as stores:
        stores.intake.create(request(), run_id="a", approval_required=False, decide=lambda _: Accepted())
        server.stop()
        with pytest.raises(TransientFailure) as away:
            stores.writer.append("a", [alert(0, 1)])
        assert away.value.code == "StoreUnavailable"
        with pytest.raises(TransientFailure):
            stores.reader.events("a")
        server.start()
        stores.writer.append("a", [alert(0, 1)])
        assert len(stores.reader.events("a")) == 2


def test_a_writer_that_waits_too_long_for_another_gets_a_transient_failure(
    postgres_url: str, sqlite_url: str, open_stores: OpenStores
) -> None:
    for url in (postgres_url, sqlite_url):
        stores = open_stores(url, busy_timeout_s=0.2)
        stores.intake.create(request(), run_id="a", approval_required=False, decide=lambda _: Accepted())
        other = open_stores(url)
        with other.writer._database.write() as connection:  # type: ignore[attr-defined]
            connection.exec_driver_sql("UPDATE runs SET retry_of = 'x' WHERE run_id = 'a'")
            with pytest.raises(TransientFailure) as refused:
                stores.writer.append("a", [alert(0, 1)])
        assert refused.value.code == "StoreUnavailable"
        stores.writer.append("a", [alert(0, 1)])


def test_a_wrong_password_or_database_is_not_taken_for_an_outage(postgres_url: str) -> None:
    wrong = postgres_url.replace("/postgres?", "/no_such_database?")
    with pytest.raises(ClewError) as refused, open_run_stores(wrong):
        pass
    assert refused.value.code in {"StoreUnreadable", "StoreUnavailable"}
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
