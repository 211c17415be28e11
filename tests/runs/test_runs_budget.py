from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.events import AlertRaised, NewEvent, RunCompleted, StepCompleted, StepFailed, StepStarted, StoredEvent
from clew.events.snapshot import RunStatus
from clew.events.values import Failure, FailureCategory
from clew.runs.budget import BudgetedWriter
from clew.runs.deadline import extended_to
from clew.runs.leases import WriteBudgetExceeded
from clew.runs.limits import StoreLimits
from clew.runs.secrets import Redactor
from clew.runs.stores import RunStores
from tests.runs.runs_workers import QUICK_RETRY, FakeExecutors, Site


class SlowWriter:
    """A store whose writes take time or fail, by the clock of the test."""

    def __init__(self, inner: Any, fails: Callable[[Sequence[NewEvent]], bool] = lambda _: False) -> None:
        self.inner = inner
        self.fails = fails
        self.takes_s = 0.0
        self.now = 0.0

    def append(self, run_id: str, events: Sequence[NewEvent], **rest: Any) -> tuple[StoredEvent, ...]:
        self.now += self.takes_s
        if self.fails(events):
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="busy"))
        # The store underneath answers at once by the clock of the test, however long it really takes.
        with extended_to(60):
            stored: tuple[StoredEvent, ...] = self.inner.append(run_id, events, **rest)
        return stored

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def site(sqlite_stores: RunStores) -> Site:
    made = Site(sqlite_stores, FakeExecutors())
    made.submit()
    return made


def writer_for(site: Site, slow: SlowWriter) -> BudgetedWriter:
    claim = site.stores.leases.acquire("run-1", owner="w", ttl_s=600)
    assert claim is not None
    return BudgetedWriter(
        slow,
        claim.lease,
        limits=StoreLimits(),
        redactor=Redactor(),
        monotonic=slow.monotonic,
        sleep=slow.sleep,
    )


def event(site: Site, body: Any, step: str = "10") -> NewEvent:
    return NewEvent(body, site.clock(), step_id=step)


FAILED = StepFailed(Failure("X", "m", FailureCategory.USER))


def test_the_budget_and_its_classes_are_those_of_the_specification() -> None:
    limits = StoreLimits()
    assert limits.write_latency_budget_ms == 3000
    assert limits.fail_open_for == {"StepStarted"}
    assert limits.never_fail_open == {"StepCompleted", "StepFailed"}
    with pytest.raises(ValueError, match="fail open"):
        StoreLimits(fail_open_for=frozenset({"StepFailed"}))


def test_a_start_that_cannot_be_stored_in_time_waits_and_goes_before_the_next_write(site: Site) -> None:
    slow = SlowWriter(site.stores.writer, lambda _: True)
    writer = writer_for(site, slow)
    assert writer.append([event(site, StepStarted(10, "fx"))]) == ()
    assert slow.now >= 3.0
    assert [waiting.event_type for waiting in writer.waiting] == ["StepStarted", "AlertRaised"]
    assert site.types() == ["RunQueued"]
    slow.fails = lambda _: False
    writer.append([event(site, StepCompleted())])
    assert writer.waiting == ()
    assert site.types() == ["RunQueued", "StepStarted", "AlertRaised", "StepCompleted"]
    alert = site.stores.reader.events("run-1")[2].body
    assert isinstance(alert, AlertRaised)
    assert (alert.alert, alert.severity) == ("WRITE_BUDGET_EXCEEDED", "P2")


@pytest.mark.parametrize("body", [StepCompleted(), FAILED])
def test_an_outcome_that_cannot_be_stored_in_time_never_waits(site: Site, body: Any) -> None:
    slow = SlowWriter(site.stores.writer, lambda _: True)
    writer = writer_for(site, slow)
    with pytest.raises(WriteBudgetExceeded):
        writer.append([event(site, body)])
    assert 3.0 <= slow.now < 10.0
    assert [waiting.event_type for waiting in writer.waiting] == ["AlertRaised"]


def test_a_short_disturbance_within_the_budget_is_not_noticed(site: Site) -> None:
    failures = iter([True, True, False])
    slow = SlowWriter(site.stores.writer, lambda _: next(failures))
    writer = writer_for(site, slow)
    assert len(writer.append([event(site, StepCompleted())])) == 1
    assert writer.waiting == ()


def test_a_write_that_was_stored_late_is_recorded_as_a_breach(site: Site) -> None:
    slow = SlowWriter(site.stores.writer)
    slow.takes_s = 4.0
    writer = writer_for(site, slow)
    assert len(writer.append([event(site, StepCompleted())])) == 1
    slow.takes_s = 0.0
    writer.append([event(site, RunCompleted(), "RUN")])
    assert site.types() == ["RunQueued", "StepCompleted", "AlertRaised", "RunCompleted"]


def test_other_events_wait_for_the_store_to_come_back_but_not_for_ever(site: Site) -> None:
    slow = SlowWriter(site.stores.writer, lambda _: True)
    writer = writer_for(site, slow)
    with pytest.raises(TransientFailure) as away:
        writer.append([event(site, RunCompleted(), "RUN")])
    assert not isinstance(away.value, WriteBudgetExceeded)
    assert slow.now >= StoreLimits().outage_patience_s


class StubbornStores:
    """Stores whose writer refuses what it is told to refuse, as often as told."""

    def __init__(self, stores: RunStores, event_type: str, times: int) -> None:
        self.left = times
        self.event_type = event_type
        self.stores = replace(stores, writer=SlowWriter(stores.writer, self.fails))

    def fails(self, events: Sequence[NewEvent]) -> bool:
        if self.left and any(event.event_type == self.event_type for event in events):
            self.left -= 1
            return True
        return False


QUICK = StoreLimits(write_latency_budget_ms=0, outage_patience_s=5.0)


def test_a_step_whose_completion_is_over_the_budget_fails_and_is_attempted_again(sqlite_stores: RunStores) -> None:
    stubborn = StubbornStores(sqlite_stores, "StepCompleted", 1)
    site = Site(stubborn.stores, FakeExecutors(1), limits=QUICK)
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    assert site.executors.attempts == [("10",), ("10",)]
    assert site.types().count("StepCompleted") == 1
    step = site.snapshot().step("10")
    assert step is not None
    assert step.engine_attempt_id == 2


def test_a_step_whose_completion_stays_over_the_budget_fails_the_run(sqlite_stores: RunStores) -> None:
    stubborn = StubbornStores(sqlite_stores, "StepCompleted", 99)
    site = Site(stubborn.stores, FakeExecutors(1), limits=QUICK, retry=replace(QUICK_RETRY, engine_attempts=2))
    site.submit()
    assert site.drive() is RunStatus.FAILED
    error = site.snapshot().error
    assert error is not None
    assert error.code == "WriteBudgetExceeded"
    assert "StepCompleted" not in site.types()
    assert "AlertRaised" in site.types()


def test_a_run_goes_on_when_starts_cannot_be_stored(sqlite_stores: RunStores) -> None:
    stubborn = StubbornStores(sqlite_stores, "StepStarted", 1)
    site = Site(stubborn.stores, FakeExecutors(2), limits=QUICK)
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    types = [name for name in site.types() if name != "AlertRaised"]
    assert types == ["RunQueued", "RunStarted", *["StepStarted", "StepCompleted"] * 2, "RunCompleted"]
    assert site.executors.attempts == [("10",), ("20",)]


def test_a_completion_that_was_stored_though_nobody_heard_is_not_repeated(sqlite_stores: RunStores) -> None:
    class Deaf(SlowWriter):
        """Stores, and then says that it has not."""

        deaf = 1

        def append(self, run_id: str, events: Sequence[NewEvent], **rest: Any) -> tuple[StoredEvent, ...]:
            stored = super().append(run_id, events, **rest)
            if self.deaf and any(e.event_type == "StepCompleted" for e in events):
                self.deaf -= 1
                raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="the answer got lost"))
            return stored

    site = Site(replace(sqlite_stores, writer=Deaf(sqlite_stores.writer)), FakeExecutors(1), limits=QUICK)
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    assert site.executors.attempts == [("10",)]
    assert site.types().count("StepCompleted") == 1
