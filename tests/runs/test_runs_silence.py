"""A store that does not answer at all: a network that has fallen silent, a file that is locked."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

from clew.diagnostics import ClewError, TransientFailure
from clew.events import NewEvent, RunCompleted, StepCompleted, StepStarted
from clew.events.snapshot import RunStatus
from clew.runs.budget import BudgetedWriter
from clew.runs.deadline import within
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.leases import WriteBudgetExceeded
from clew.runs.limits import RetryPolicy, StoreLimits
from clew.runs.secrets import Redactor
from clew.runs.stores import RunStores
from clew.store.looking import look_into_postgresql
from tests.runs.runs_histories import START
from tests.runs.runs_workers import FakeExecutors, Site, succeed
from tests.store.silent_proxy import SilentProxy, silent_proxy
from tests.store.store_fixtures import OpenStores

T = TypeVar("T")

BUDGET = StoreLimits(write_latency_budget_ms=500)
PATIENCE_S = 300.0
"""How long the store itself would wait; what is done long before has ended because of its budget."""
LONG_S = 60.0


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[SilentProxy]:
    (folder,) = parse_qs(urlsplit(postgres_url).query)["host"]
    with silent_proxy(Path(folder)) as running:
        yield running


def through(proxy: SilentProxy, postgres_url: str) -> str:
    (options,) = parse_qs(urlsplit(postgres_url).query)["options"]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?options={options.replace('=', '%3D')}"


def outcome_while_silent(action: Callable[[], T], end_silence: Callable[[], None]) -> T:
    """What an action comes to while nothing answers. It fails if the action waits for an answer."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(action)
        try:
            return future.result(timeout=LONG_S)
        except StillRunning:
            pytest.fail("it waits for an answer that does not come")
        finally:
            end_silence()


def writer_of(stores: RunStores) -> BudgetedWriter:
    Site(stores, FakeExecutors()).submit()
    claim = stores.leases.acquire("run-1", owner="w", ttl_s=600)
    assert claim is not None
    return BudgetedWriter(stores.writer, claim.lease, limits=BUDGET, redactor=Redactor())


def raised_by(action: Callable[[], object]) -> Callable[[], type[BaseException] | None]:
    def catch() -> type[BaseException] | None:
        try:
            action()
        except ClewError as error:
            return type(error)
        return None

    return catch


COMPLETED = NewEvent(StepCompleted(), START, step_id="10")
STARTED = NewEvent(StepStarted(10, "fx"), START, step_id="10")


def test_the_budget_of_a_write_holds_on_a_connection_that_has_fallen_silent(
    proxy: SilentProxy, postgres_url: str, open_stores: OpenStores
) -> None:
    stores = open_stores(through(proxy, postgres_url), busy_timeout_s=PATIENCE_S)
    writer = writer_of(stores)
    proxy.fall_silent()
    write = raised_by(lambda: writer.append([COMPLETED]))
    assert outcome_while_silent(write, lambda: None) is WriteBudgetExceeded
    # The pool has to connect anew now, which takes no longer.
    assert outcome_while_silent(write, proxy.speak) is WriteBudgetExceeded
    assert [event.event_type for event in writer.append([COMPLETED])][-1] == "StepCompleted"


def test_a_start_fails_open_on_a_connection_that_has_fallen_silent(
    proxy: SilentProxy, postgres_url: str, open_stores: OpenStores
) -> None:
    writer = writer_of(open_stores(through(proxy, postgres_url), busy_timeout_s=PATIENCE_S))
    proxy.fall_silent()
    assert outcome_while_silent(lambda: writer.append([STARTED]), proxy.speak) == ()
    assert [event.event_type for event in writer.waiting] == ["StepStarted", "AlertRaised"]


def test_every_call_ends_on_a_connection_that_has_fallen_silent(
    proxy: SilentProxy, postgres_url: str, open_stores: OpenStores
) -> None:
    address = through(proxy, postgres_url)
    stores = open_stores(address, busy_timeout_s=0.2)
    writer_of(stores)
    proxy.fall_silent()
    calls: list[Callable[[], object]] = [
        lambda: stores.reader.events("run-1"),
        lambda: stores.leases.claim("dev", owner="w", ttl_s=30, max_running=1),
        lambda: stores.outbox.take("hook", limit=1, hold_s=1),
        lambda: look_into_postgresql(address, "dev"),
    ]
    found = [outcome_while_silent(raised_by(call), lambda: None) for call in calls]
    proxy.speak()
    assert found == [TransientFailure] * len(calls)


def test_a_run_completes_though_the_connection_fell_silent_while_a_step_ended(
    proxy: SilentProxy, postgres_url: str, open_stores: OpenStores
) -> None:
    stores = open_stores(through(proxy, postgres_url), busy_timeout_s=0.5)

    def silence_once(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id == "20" and not silences:
            silences.append(1)
            proxy.fall_silent()
        return succeed(attempts, context)

    silences = list[int]()
    site = Site(stores, FakeExecutors(3, silence_once), limits=BUDGET, retry=RetryPolicy(first_delay_s=0.0))
    site.submit()

    def speak_when_called() -> None:
        proxy.callers_in_silence.acquire(timeout=LONG_S)
        proxy.speak()

    helper = threading.Thread(target=speak_when_called)
    helper.start()
    assert outcome_while_silent(site.drive, proxy.speak) is RunStatus.COMPLETED
    helper.join()
    assert site.types().count("StepCompleted") == 3


def test_the_budget_of_a_write_holds_on_a_locked_file(tmp_path: Path, open_stores: OpenStores) -> None:
    path = tmp_path / "state.db"
    writer = writer_of(open_stores(f"sqlite:///{path}", busy_timeout_s=PATIENCE_S))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert outcome_while_silent(raised_by(lambda: writer.append([COMPLETED])), lambda: None) is WriteBudgetExceeded
        assert outcome_while_silent(lambda: writer.append([STARTED]), other.rollback) == ()
    types = [event.event_type for event in writer.append([COMPLETED])]
    assert types == ["AlertRaised", "StepStarted", "AlertRaised", "StepCompleted"]


def test_the_budget_of_a_write_holds_while_another_thread_writes(tmp_path: Path, open_stores: OpenStores) -> None:
    stores = open_stores(f"sqlite:///{tmp_path / 'state.db'}", busy_timeout_s=PATIENCE_S)
    writer = writer_of(stores)
    database: Any = stores.writer._database  # type: ignore[attr-defined]
    with database.write():
        assert outcome_while_silent(raised_by(lambda: writer.append([COMPLETED])), lambda: None) is WriteBudgetExceeded


def test_a_budget_inside_another_never_lasts_longer(tmp_path: Path, open_stores: OpenStores) -> None:
    path = tmp_path / "state.db"
    stores = open_stores(f"sqlite:///{path}", busy_timeout_s=PATIENCE_S)
    writer_of(stores)

    def complete() -> None:
        with within(0.2), within(PATIENCE_S):
            stores.writer.append("run-1", [NewEvent(RunCompleted(), START)], token=1)

    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert outcome_while_silent(raised_by(complete), other.rollback) is TransientFailure
