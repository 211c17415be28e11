import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.events.snapshot import RunStatus
from clew.runs.active_run import ActiveRun
from clew.runs.executor import CancelToken, Interruption, StepAttempt, StepContext, StepInterrupted, StepOutput
from clew.runs.limits import (
    Accepted,
    DeliveryPolicy,
    LeasePolicy,
    Load,
    Overload,
    QueuePolicy,
    Rejected,
    RetryPolicy,
    admit,
    delay_before,
)
from clew.runs.request import RunFilter
from clew.runs.stores import RunStores
from clew.runs.worker import RunQueueReconciler, StartReport
from tests.runs.runs_workers import FakeExecutors, SetClock, Site, succeed
from tests.store.store_fixtures import OpenStores

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def policy(overload: Overload, **changes: Any) -> QueuePolicy:
    return QueuePolicy(overload=overload, max_running=2, **changes)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll a condition that other threads bring about; for use where there is nothing to wait on."""
    deadline = monotonic() + seconds
    tick = threading.Event()
    while not condition():
        assert monotonic() < deadline, "it never happened"
        tick.wait(0.01)


@pytest.mark.parametrize("overload", list(Overload))
def test_a_free_environment_takes_every_run_at_once(overload: Overload) -> None:
    assert admit(policy(overload), Load(1, 0), NOW) == Accepted(None)


def test_reject_answers_overload_at_once_with_a_time_to_come_back() -> None:
    answer = admit(policy(Overload.REJECT, retry_after_s=17), Load(2, 0), NOW)
    assert isinstance(answer, Rejected)
    assert answer.retry_after_s == 17


def test_delay_accepts_with_a_start_in_the_future() -> None:
    assert admit(policy(Overload.DELAY), Load(2, 0), NOW) == Accepted(NOW + timedelta(seconds=60))
    wish = NOW + timedelta(hours=2)
    assert admit(policy(Overload.DELAY), Load(2, 0), NOW, wish) == Accepted(wish)


def test_queue_accepts_and_lets_wait() -> None:
    assert admit(policy(Overload.QUEUE), Load(2, 500), NOW) == Accepted(None)


@pytest.mark.parametrize("overload", list(Overload))
def test_no_queue_grows_without_end(overload: Overload) -> None:
    assert isinstance(admit(policy(overload, max_queued=10), Load(2, 10), NOW), Rejected)


def test_a_rejected_run_is_never_started_and_the_caller_is_told_when_to_come_back(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors(), policy=QueuePolicy(overload=Overload.REJECT, max_running=1, retry_after_s=9))
    assert site.submit("a").rejection is None
    submission = site.submit("b")
    assert submission.rejection == Rejected("0 runs are under way already", 9)
    with pytest.raises(TransientFailure) as overloaded:
        submission.raise_if_rejected()
    assert overloaded.value.code == "Overloaded"
    assert overloaded.value.diagnostic.params["retry_after_s"] == 9
    site.drive("run-1")
    again = site.submit("b")
    assert again.rejection is None
    assert again.run.run_id == submission.run.run_id
    assert site.drive(again.run.run_id) is RunStatus.COMPLETED


def test_a_queued_run_is_pending_and_starts_later(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors(), policy=policy(Overload.QUEUE))
    for name in ("a", "b", "c", "d"):
        assert site.submit(name).run.status is RunStatus.PENDING
    launched: list[ActiveRun] = []
    assert [r.status for r in reconcile(site, launched)] == ["STARTED", "STARTED"]
    assert len(stores.catalog.runs(RunFilter(status=RunStatus.PENDING))) == 2
    while launched:
        site.driver.drive(launched.pop(), site.heartbeat, threading.Event())
        reconcile(site, launched)
    assert len(stores.catalog.runs(RunFilter(status=RunStatus.COMPLETED))) == 4


def reconcile(site: Site, launched: list[ActiveRun], owner: str = "w1", limit: int = 10) -> Sequence[StartReport]:
    reconciler = RunQueueReconciler(
        site.stores.leases, site.driver, environment_id="dev", owner=owner, queue=site.policy, lease=site.lease
    )
    return reconciler.dequeue_and_start(launched.append, limit=limit)


def test_a_delay_is_counted_by_the_clock_of_the_store(url: str, open_stores: OpenStores) -> None:
    """The clock of the requester is an hour slow, so that by it the delay would be over at once."""
    clock, slow = SetClock(), SetClock()
    slow.forward(-3600)
    delay = QueuePolicy(overload=Overload.DELAY, max_running=1)
    site = Site(open_stores(url, clock=clock), FakeExecutors(), policy=delay, clock=slow)
    site.submit("a")
    assert site.submit("b").not_before == clock.now + timedelta(seconds=60)


def test_a_delayed_run_starts_when_its_time_has_come(url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    stores = open_stores(url, clock=clock)
    site = Site(stores, FakeExecutors(), policy=QueuePolicy(overload=Overload.DELAY, max_running=1), clock=clock)
    site.submit("a")
    delayed = site.submit("b")
    assert delayed.not_before == clock.now + timedelta(seconds=60)
    site.drive("run-1")
    assert reconcile(site, []) == ()
    clock.forward(60)
    assert [r.status for r in reconcile(site, [])] == ["STARTED"]


def test_the_same_request_gives_the_same_run_and_nothing_twice(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    first, again = site.submit("a"), site.submit("a")
    assert (first.run.run_id, again.run.run_id) == ("run-1", "run-1")
    assert (first.is_repeated, again.is_repeated) == (False, True)
    site.drive()
    assert site.submit("a").run.status is RunStatus.COMPLETED
    assert len(stores.catalog.runs(RunFilter())) == 1


def test_reconcilers_are_stateless_and_start_each_run_once(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    for number in range(6):
        site.submit(str(number))
    launched: list[ActiveRun] = []
    reports = [*reconcile(site, launched, "w1", 4), *reconcile(site, launched, "w2", 4), *reconcile(site, [], "w3")]
    assert [report.status for report in reports] == ["STARTED"] * 6
    assert len({active.live.run.run_id for active in launched}) == 6


def test_a_reconciler_passes_over_a_run_whose_surroundings_are_away(sqlite_url: str, open_stores: OpenStores) -> None:
    class Away(FakeExecutors):
        def open(self, run, snapshot):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="restarting"))

    clock = SetClock()
    site = Site(open_stores(sqlite_url, clock=clock), Away(), clock=clock)
    site.submit()
    launched: list[ActiveRun] = []
    assert [report.status for report in reconcile(site, launched, limit=1)] == ["SKIPPED"]
    assert (launched, site.snapshot().status) == ([], RunStatus.PENDING)
    well = Site(site.stores, FakeExecutors(), clock=clock)
    clock.forward(3600)
    assert [report.status for report in reconcile(well, launched)] == ["STARTED"]


def test_a_reconciler_reports_what_could_not_be_started(sqlite_stores: RunStores) -> None:
    class Refusing(FakeExecutors):
        def open(self, run, snapshot):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            raise ValueError("no such plan")

    site = Site(sqlite_stores, Refusing())
    site.submit()
    assert [report.status for report in reconcile(site, [])] == ["FAILED"]
    assert reconcile(site, []) == ()


def test_a_worker_drives_runs_until_it_is_told_to_stop(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    for number in range(8):
        site.submit(str(number))
    stop = threading.Event()
    thread = threading.Thread(target=site.worker().run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: len(stores.catalog.runs(RunFilter(status=RunStatus.COMPLETED))) == 8)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert len(site.executors.opened) == 8
    saved = [stores.snapshots.load(run.run_id) for run in stores.catalog.runs(RunFilter())]
    assert [snapshot.status for snapshot in saved if snapshot is not None] == [RunStatus.COMPLETED] * 8


def test_a_stopping_worker_gives_its_runs_back_at_the_next_step(sqlite_stores: RunStores) -> None:
    stop = threading.Event()

    def stops(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        stop.set()
        return succeed(attempts, context)

    site = Site(sqlite_stores, FakeExecutors(behaviour=stops))
    site.submit()
    site.worker().run(stop)
    assert site.executors.attempts == [("10",)]
    assert site.snapshot().status is RunStatus.RUNNING
    again = Site(sqlite_stores, FakeExecutors())
    assert again.drive() is RunStatus.COMPLETED
    assert again.executors.attempts == [("20",), ("30",)]


def test_a_stopping_worker_interrupts_a_step_that_takes_too_long(sqlite_stores: RunStores) -> None:
    stop = threading.Event()
    interrupted: list[Interruption | None] = []

    def endless(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        stop.set()
        assert context.cancel.wait(60)
        interrupted.append(context.cancel.reason)
        raise ConnectionError("the job was killed")

    from clew.runs.worker import Worker, WorkerSettings

    site = Site(sqlite_stores, FakeExecutors(behaviour=endless))
    site.submit()
    settings = WorkerSettings(poll_s=0.01, stop_grace_s=0.05, queue=site.policy, lease=site.lease)
    Worker(site.stores, site.driver, site.projector, site.dispatcher, settings=settings).run(stop)
    assert interrupted == [Interruption.STOPPING]
    assert site.types() == ["RunQueued", "RunStarted", "StepStarted"]
    again = Site(sqlite_stores, FakeExecutors())
    assert again.drive() is RunStatus.COMPLETED


def test_a_step_hears_that_its_run_was_taken_by_another_worker(url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    stores = open_stores(url, clock=clock)
    reasons: list[Interruption | None] = []

    def loses(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        other = None
        while other is None:  # the heartbeat may be quicker than we are
            clock.forward(100)
            other = stores.leases.claim("dev", owner="other", ttl_s=500_000, max_running=9)
        assert context.cancel.wait(60)
        reasons.append(context.cancel.reason)
        return succeed(attempts, context)

    site = Site(stores, FakeExecutors(behaviour=loses), clock=clock, lease=LeasePolicy(ttl_s=50, poll_s=0.01))
    site.submit()
    site.drive()
    assert reasons == [Interruption.LEASE_LOST]
    assert [name for name in site.types() if name != "AlertRaised"] == ["RunQueued", "RunStarted", "StepStarted"]


def test_a_heartbeat_keeps_the_lease_of_a_long_step(url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    stores = open_stores(url, clock=clock)
    taken: list[object] = []
    site: Site

    def long(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        for _ in range(5):
            clock.forward(40)
            site.heartbeat.beat()
            taken.append(stores.leases.claim("dev", owner="other", ttl_s=50, max_running=9))
        return succeed(attempts, context)

    site = Site(stores, FakeExecutors(1, long), clock=clock, lease=LeasePolicy(ttl_s=50, poll_s=1000))
    site.submit()
    claim = stores.leases.claim("dev", owner="w", ttl_s=50, max_running=9)
    assert claim is not None
    active = site.driver.begin(claim).active
    assert active is not None
    assert site.driver.drive(active, site.heartbeat, threading.Event()) is RunStatus.COMPLETED
    assert taken == [None] * 5


def test_a_run_of_another_worker_is_not_taken(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors())
    site.submit()
    assert sqlite_stores.leases.acquire("run-1", owner="other", ttl_s=60) is not None
    assert site.drive() is None


def test_waits_grow_are_bounded_and_partly_random() -> None:
    retry = RetryPolicy(first_delay_s=1, factor=2, longest_delay_s=10, jitter=0.5)
    assert [delay_before(n, retry, lambda: 0.0) for n in range(2, 8)] == [1, 2, 4, 8, 10, 10]
    assert delay_before(4, retry, lambda: 1.0) == 2.0
    assert delay_before(5000, retry, lambda: 0.0) == 10


def test_a_bus_that_is_down_for_an_hour_is_outlasted_by_the_defaults() -> None:
    delivery = DeliveryPolicy()
    shortest = sum(delay_before(n, delivery, lambda: 0.9999) for n in range(2, delivery.attempts + 1))
    assert shortest > 3600


def test_a_lost_lease_outranks_other_reasons_to_stop() -> None:
    token = CancelToken()
    token.check()
    called: list[int] = []
    token.on_cancel(lambda: called.append(1))
    token.cancel(Interruption.CANCELLED)
    token.cancel(Interruption.STOPPING)
    reasons = [token.reason]
    token.cancel(Interruption.LEASE_LOST)
    reasons.append(token.reason)
    assert reasons == [Interruption.CANCELLED, Interruption.LEASE_LOST]
    token.on_cancel(lambda: called.append(2))
    assert called == [1, 2]
    with pytest.raises(StepInterrupted):
        token.check()
