import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from clew.diagnostics import TransientFailure
from clew.events import NewEvent, StoredEvent
from clew.events.snapshot import RunStatus
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import StoreLimits
from clew.runs.request import RunFilter
from clew.store import open_run_stores
from tests.runs.runs_workers import QUICK_RETRY, FakeExecutors, Site, succeed
from tests.store.store_postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.postgres


class Noticing:
    """A writer that says when the store was found to be away."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.failed = threading.Event()

    def append(self, run_id: str, events: Sequence[NewEvent], **rest: Any) -> tuple[StoredEvent, ...]:
        try:
            stored: tuple[StoredEvent, ...] = self.inner.append(run_id, events, **rest)
        except TransientFailure:
            self.failed.set()
            raise
        return stored


def stopping_at(server: PostgresServer, writer: Noticing, step: str, threads: list[threading.Thread]) -> Callable:  # type: ignore[type-arg]
    """An engine during one step of which the database stops, to come back once its absence was noticed."""

    def restart() -> None:
        assert writer.failed.wait(60)
        server.start()

    def execute(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id == step and not threads:
            server.stop()
            threads.append(threading.Thread(target=restart))
            threads[0].start()
        return succeed(attempts, context)

    return execute


def test_a_run_survives_that_the_database_stops_and_starts_during_a_step() -> None:
    with postgres_server() as server, open_run_stores(server.url) as real:
        writer = Noticing(real.writer)
        threads: list[threading.Thread] = []
        limits = StoreLimits(write_latency_budget_ms=1000, outage_patience_s=60)
        site = Site(
            replace(real, writer=writer),
            FakeExecutors(3, stopping_at(server, writer, "20", threads)),
            limits=limits,
            retry=replace(QUICK_RETRY, engine_attempts=5),
        )
        site.submit()
        assert site.drive() is RunStatus.COMPLETED
        threads[0].join()
        types = [name for name in site.types() if name != "AlertRaised"]
        assert types == ["RunQueued", "RunStarted", *["StepStarted", "StepCompleted"] * 3, "RunCompleted"]
        step = site.snapshot().step("20")
        assert step is not None
        assert step.logical_attempt_id == 1


def test_a_worker_survives_the_loss_of_the_database() -> None:
    with postgres_server() as server, open_run_stores(server.url) as real:
        writer = Noticing(real.writer)
        threads: list[threading.Thread] = []
        site = Site(
            replace(real, writer=writer),
            FakeExecutors(3, stopping_at(server, writer, "10", threads)),
            limits=StoreLimits(write_latency_budget_ms=1000, outage_patience_s=60),
            retry=replace(QUICK_RETRY, engine_attempts=5),
        )
        site.submit("a")
        stop = threading.Event()
        working = threading.Thread(target=site.worker().run, args=(stop,))
        working.start()
        try:
            assert writer.failed.wait(60)
            while not threads:
                stop.wait(0.01)
            threads[0].join(60)
            site.submit("b")
            for _ in range(3000):
                if len(real.catalog.runs(RunFilter(status=RunStatus.COMPLETED))) == 2:
                    break
                stop.wait(0.02)
        finally:
            stop.set()
            working.join(60)
        assert not working.is_alive()
        assert {run.status for run in real.catalog.runs(RunFilter())} == {RunStatus.COMPLETED}
