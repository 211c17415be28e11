import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from clew.events import StepCompleted, verify_chain
from clew.events.snapshot import RunStatus, StepStatus
from clew.runs.stores import RunStores
from clew.storage.committed import committed_part
from clew.storage.local import sha256_of_file
from clew.storage.roots import storage_at
from tests.runs.runs_crashes import WritingSteps, an_hour_later, work_and_freeze, work_until_death, work_until_told
from tests.runs.runs_workers import FakeExecutors, Site
from tests.store.seals import KEY, the_key
from tests.store.store_fixtures import OpenStores
from tests.store.store_processes import fork_context

pytestmark = pytest.mark.slow

SINGLE = [f"{when} {number}" for number in range(1, 9) for when in ("before", "after")] + ["in 10", "in 20", "in 30"]
FUSED = [f"{when} {number}" for number in range(1, 7) for when in ("before", "after")] + ["in 10", "in 20", "in 30"]


def pipe() -> tuple[Connection, Connection]:
    receive, send = fork_context().Pipe(duplex=False)
    return receive, send


def kill_and_restart(url: str, open_stores: OpenStores, folder: Path, point: str, fuse: int) -> None:
    stores: RunStores = open_stores(url, key=the_key, clock=an_hour_later)
    Site(open_stores(url, key=the_key), FakeExecutors()).submit()
    process = fork_context().Process(target=work_until_death, args=(url, point, str(folder), fuse))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    again = Site(stores, FakeExecutors(3, WritingSteps(folder), fuse))
    claim = stores.leases.claim("dev", owner="second", ttl_s=60, max_running=1)
    if claim is not None:  # the first one may have died with nothing left to do
        active = again.driver.begin(claim).active
        if active is not None:
            again.driver.drive(active, again.heartbeat, threading.Event())
    check_history(stores, again, folder)


def check_history(stores: RunStores, site: Site, folder: Path) -> None:
    events = stores.reader.events("run-1")
    assert [event.run_seq for event in events] == list(range(1, len(events) + 1))
    happened = [(event.step_id, event.event_type) for event in events if event.event_type != "AlertRaised"]
    expected = [("RUN", "RunQueued"), ("RUN", "RunStarted"), ("RUN", "RunCompleted")]
    expected += [(step, what) for step in ("10", "20", "30") for what in ("StepStarted", "StepCompleted")]
    assert sorted(happened) == sorted(expected)
    snapshot = site.snapshot()
    assert snapshot.status is RunStatus.COMPLETED
    assert [step.status for step in snapshot.steps] == [StepStatus.SUCCESS] * 3
    for event in events:
        if isinstance(event.body, StepCompleted):
            (ref,) = event.body.artifacts
            (file,) = committed_part(storage_at(folder), ref).files
            assert (folder / file.path).read_text() == f"half of {event.step_id}, all of {event.step_id}"
            assert sha256_of_file(folder / file.path) == file.sha256
    run = stores.catalog.run("run-1")
    report = verify_chain(stores.reader.raw_events("run-1"), key=KEY, last_seq=run.last_seq, last_hash=run.last_hash)
    assert report.is_intact


@pytest.mark.parametrize("point", SINGLE)
def test_a_worker_killed_at_any_point_loses_and_doubles_nothing(
    sqlite_url: str, open_stores: OpenStores, tmp_path: Path, point: str
) -> None:
    kill_and_restart(sqlite_url, open_stores, tmp_path, point, fuse=1)


@pytest.mark.parametrize("point", FUSED)
def test_a_worker_killed_amid_fused_steps_loses_and_doubles_nothing(
    sqlite_url: str, open_stores: OpenStores, tmp_path: Path, point: str
) -> None:
    kill_and_restart(sqlite_url, open_stores, tmp_path, point, fuse=2)


@pytest.mark.parametrize("point", ["before 1", "after 1", "before 5", "after 5", "in 20", "after 8"])
def test_a_worker_on_postgresql_killed_at_any_point_loses_and_doubles_nothing(
    postgres_url: str, open_stores: OpenStores, tmp_path: Path, point: str
) -> None:
    kill_and_restart(postgres_url, open_stores, tmp_path, point, fuse=1)


def test_the_late_write_of_a_frozen_worker_is_refused_by_the_fence(url: str, open_stores: OpenStores) -> None:
    stores: RunStores = open_stores(url)
    site = Site(stores, FakeExecutors(2))
    site.submit()
    from_frozen, tell = pipe()
    hear, to_frozen = pipe()
    process = fork_context().Process(target=work_and_freeze, args=(url, tell, hear))
    process.start()
    assert process.pid is not None
    try:
        assert from_frozen.recv() == "in the step"
        os.kill(process.pid, signal.SIGSTOP)
        claim: Any = None
        patience = threading.Event()
        for _ in range(600):
            claim = stores.leases.claim("dev", owner="second", ttl_s=60, max_running=9)
            if claim is not None:
                break
            patience.wait(0.1)
        assert claim is not None, "the lease of the frozen worker never ran out"
        active = site.driver.begin(claim).active
        assert active is not None
        assert site.driver.drive(active, site.heartbeat, threading.Event()) is RunStatus.COMPLETED
        before = stores.reader.events("run-1")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    to_frozen.send("go on")
    warnings = from_frozen.recv()
    process.join(30)
    assert process.exitcode == 0
    assert any("came too late" in warning for warning in warnings)
    assert stores.reader.events("run-1") == before
    assert [e.event_type for e in before].count("StepCompleted") == 2


def test_a_worker_stops_cleanly_on_sigterm_and_another_goes_on(url: str, open_stores: OpenStores) -> None:
    stores: RunStores = open_stores(url)
    site = Site(stores, FakeExecutors())
    site.submit()
    from_worker, tell = pipe()
    hear, to_worker = pipe()
    process = fork_context().Process(target=work_until_told, args=(url, tell, hear))
    process.start()
    assert process.pid is not None
    assert from_worker.recv() == "in the step"
    os.kill(process.pid, signal.SIGTERM)
    to_worker.send("finish the step")
    assert from_worker.recv() == "stopped cleanly"
    process.join(30)
    assert process.exitcode == 0
    assert site.snapshot().status is RunStatus.RUNNING
    assert site.types()[:4] == ["RunQueued", "RunStarted", "StepStarted", "StepCompleted"]
    assert site.drive() is RunStatus.COMPLETED
