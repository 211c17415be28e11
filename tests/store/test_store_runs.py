from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clew.diagnostics import UserError
from clew.events import (
    NewEvent,
    RunApproved,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    SignalAccepted,
    StepStarted,
)
from clew.events.reducer import project_run
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.runs.leases import Claim, LateWrite, Lease, PeriodBusy, Wait, WaitReason
from clew.runs.limits import Accepted, Admission, Load, Rejected
from clew.runs.request import RunFilter
from clew.runs.stores import Intake, RunStores
from tests.runs.runs_histories import FAILURE, START, request, steps
from tests.store.store_fixtures import OpenStores


class SetClock:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def timed(url: str, open_stores: OpenStores, clock: SetClock) -> RunStores:
    return open_stores(url, clock=clock, buses=("hook", "log"))


def submit(stores: RunStores, run_id: str, *, admission: Admission | None = None, **changes: object) -> Intake:
    wanted = request(**{"request_id": run_id, "period": run_id, **changes})
    decision = admission or Accepted()
    return stores.intake.create(wanted, run_id=run_id, approval_required=False, decide=lambda _: decision)


def claim(stores: RunStores, owner: str = "w1", *, ttl_s: float = 30, max_running: int = 10) -> Claim | None:
    return stores.leases.claim("dev", owner=owner, ttl_s=ttl_s, max_running=max_running)


def start(stores: RunStores, lease: Lease) -> None:
    stores.writer.append(lease.run_id, [NewEvent(RunStarted(steps(1)), START)], token=lease.token)


def end(stores: RunStores, lease: Lease) -> None:
    stores.writer.append(lease.run_id, [NewEvent(RunCompleted(), START)], token=lease.token)
    stores.leases.release(lease, seen_seq=10)


def test_the_same_request_gives_the_same_run(stores: RunStores) -> None:
    first = submit(stores, "a", request_id="r")
    again = submit(stores, "b", request_id="r", period="a")
    assert again.run == first.run
    assert again.admission is None
    assert [event.event_type for event in stores.reader.events("a")] == ["RunQueued"]


@pytest.mark.parametrize(
    "difference",
    [
        {"tenant_id": "other"},
        {"project_id": "other"},
        {"environment_id": "other"},
        {"plan": replace(request().plan, plan_id="other")},
        {"plan": replace(request().plan, plan_version="8")},
        {"request_id": "other"},
    ],
)
def test_a_request_that_differs_in_any_part_gives_another_run(
    sqlite_stores: RunStores, difference: dict[str, Any]
) -> None:
    submit(sqlite_stores, "a", request_id="r")
    other = submit(sqlite_stores, "b", **{"request_id": "r", **difference})
    assert other.run.run_id == "b"


def test_a_rejected_request_is_recorded_and_decided_anew_when_it_comes_again(stores: RunStores) -> None:
    rejected = submit(stores, "a", admission=Rejected("busy", 30))
    assert rejected.admission == Rejected("busy", 30)
    assert rejected.run.status is RunStatus.FAILED
    assert claim(stores) is None
    assert submit(stores, "b", request_id="a", period="a", admission=Rejected("busy", 30)).run.run_id == "a"
    accepted = submit(stores, "c", request_id="a", period="a")
    assert (accepted.run.run_id, accepted.run.status) == ("a", RunStatus.PENDING)
    assert [event.event_type for event in stores.reader.events("a")] == ["RunRejected", "RunQueued"]
    assert claim(stores) is not None


def test_the_admission_sees_how_busy_the_environment_is(stores: RunStores) -> None:
    seen: list[Load] = []

    def decide(load: Load) -> Admission:
        seen.append(load)
        return Accepted()

    for name in ("a", "b", "c"):
        wanted = request(request_id=name, period=name)
        stores.intake.create(wanted, run_id=name, approval_required=False, decide=decide)
        if name == "a":
            taken = claim(stores)
            assert taken is not None
            start(stores, taken.lease)
    assert seen == [Load(0, 0), Load(1, 0), Load(1, 1)]
    assert stores.catalog.load("dev") == Load(1, 2)
    assert stores.catalog.load("prod") == Load(0, 0)


def test_runs_are_listed_newest_first_page_by_page_and_filtered(timed: RunStores, clock: SetClock) -> None:
    for number in range(5):
        submit(timed, f"run-{number}", project_id="odd" if number % 2 else "even")
        clock.forward(1)
    everything = timed.catalog.runs(RunFilter())
    assert [run.run_id for run in everything] == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    page = timed.catalog.runs(RunFilter(), limit=2)
    assert [run.run_id for run in timed.catalog.runs(RunFilter(), limit=2, before=page[-1])] == ["run-2", "run-1"]
    assert [run.run_id for run in timed.catalog.runs(RunFilter(project_id="odd"))] == ["run-3", "run-1"]
    assert [run.run_id for run in timed.catalog.runs(RunFilter(period="run-2"))] == ["run-2"]
    assert timed.catalog.runs(RunFilter(status=RunStatus.RUNNING)) == ()
    assert timed.catalog.runs(RunFilter(tenant_id="other")) == ()


def test_a_record_has_what_was_asked_for(timed: RunStores, clock: SetClock) -> None:
    wanted = request(request_id="a", parameters={"capture": ["x"]}, retry_of="z", project_version="3")
    later = clock.now + timedelta(hours=1)
    timed.intake.create(wanted, run_id="a", approval_required=True, decide=lambda _: Accepted(later))
    record = timed.catalog.run("a")
    assert record.request == replace(wanted, not_before=later)
    assert record.approval_pending
    with pytest.raises(UserError) as missing:
        timed.catalog.run("b")
    assert missing.value.code == "RunNotFound"


def test_a_run_is_taken_by_one_worker_only_and_in_the_order_of_requests(timed: RunStores, clock: SetClock) -> None:
    for name in ("b", "a"):
        submit(timed, name)
        clock.forward(1)
    taken = [claim(timed, "w1"), claim(timed, "w2"), claim(timed, "w3")]
    assert [one.lease.run_id if one else None for one in taken] == ["b", "a", None]
    assert timed.leases.acquire("a", owner="w3", ttl_s=30) is None


def test_a_lease_that_ran_out_is_taken_over_and_its_holder_fenced_off(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a")
    old = claim(timed, "w1")
    assert old is not None
    start(timed, old.lease)
    clock.forward(29)
    assert claim(timed, "w2") is None
    clock.forward(2)
    new = claim(timed, "w2")
    assert new is not None
    assert new.lease.token > old.lease.token
    with pytest.raises(LateWrite):
        timed.writer.append("a", [NewEvent(StepStarted(10, "x"), START, step_id="10")], token=old.lease.token)
    with pytest.raises(LateWrite):
        timed.leases.keep(old.lease, ttl_s=30)
    with pytest.raises(LateWrite):
        timed.attempts.next_engine_attempt(old.lease, "10", 1)
    timed.leases.release(old.lease, seen_seq=99)
    assert claim(timed, "w3") is None


def test_a_lease_that_is_kept_alive_stays(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a")
    held = claim(timed)
    assert held is not None
    for _ in range(5):
        clock.forward(20)
        news = timed.leases.keep(held.lease, ttl_s=30)
        assert news.last_seq == 1
    assert claim(timed, "w2") is None
    clock.forward(31)
    assert timed.leases.keep(held.lease, ttl_s=30).lease.expires_at == clock.now + timedelta(seconds=30)
    assert claim(timed, "w2") is None


def test_a_released_run_can_be_taken_at_once_and_its_former_holder_cannot_write(timed: RunStores) -> None:
    submit(timed, "a")
    first = claim(timed)
    assert first is not None
    start(timed, first.lease)
    timed.leases.release(first.lease, seen_seq=2)
    with pytest.raises(LateWrite):
        timed.writer.append("a", [NewEvent(RunCompleted(), START)], token=first.lease.token)
    assert claim(timed, "w2") is not None


def test_a_run_is_not_started_before_its_time(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a", admission=Accepted(clock.now + timedelta(minutes=5)))
    assert claim(timed) is None
    clock.forward(301)
    assert claim(timed) is not None


def test_a_run_that_wants_approval_waits_for_it(timed: RunStores) -> None:
    timed.intake.create(request(), run_id="a", approval_required=True, decide=lambda _: Accepted())
    assert claim(timed) is None
    held = timed.leases.acquire("a", owner="boss", ttl_s=30)
    assert held is not None
    timed.writer.append("a", [NewEvent(RunApproved("boss"), START)], token=held.lease.token)
    timed.leases.release(held.lease, seen_seq=2)
    taken = claim(timed)
    assert taken is not None
    assert taken.run.status is RunStatus.APPROVED


def test_two_runs_of_one_project_and_period_never_run_at_once(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a", period="2026-01")
    clock.forward(1)
    submit(timed, "b", period="2026-01")
    submit(timed, "c", period="2026-02")
    first = claim(timed)
    assert first is not None
    assert first.lease.run_id == "a"
    other = claim(timed)
    assert other is not None
    assert other.lease.run_id == "c"
    assert claim(timed) is None
    start(timed, first.lease)
    timed.writer.append("a", [NewEvent(RunPaused(), START)], token=first.lease.token)
    timed.leases.release(first.lease, seen_seq=9)
    assert claim(timed) is None
    blocked = timed.leases.acquire("b", owner="w", ttl_s=30)
    assert blocked is not None
    with pytest.raises(PeriodBusy):
        start(timed, blocked.lease)
    timed.leases.release(blocked.lease, seen_seq=9)
    again = timed.leases.acquire("a", owner="w", ttl_s=30)
    assert again is not None
    end(timed, again.lease)
    last = claim(timed)
    assert last is not None
    assert last.lease.run_id == "b"


def test_a_failed_run_cannot_be_reopened_while_another_runs_for_its_period(timed: RunStores) -> None:
    submit(timed, "a", period="2026-01")
    failed = claim(timed)
    assert failed is not None
    start(timed, failed.lease)
    timed.writer.append("a", [NewEvent(RunFailed(FAILURE), START)], token=failed.lease.token)
    submit(timed, "b", period="2026-01")
    other = claim(timed)
    assert other is not None
    with pytest.raises(PeriodBusy):
        timed.writer.append("a", [NewEvent(RunResumed(), START)], token=failed.lease.token)
    end(timed, other.lease)
    timed.writer.append("a", [NewEvent(RunResumed(), START)], token=failed.lease.token)


def test_no_more_runs_are_taken_than_the_environment_allows(timed: RunStores) -> None:
    for name in ("a", "b", "c"):
        submit(timed, name)
    taken = [claim(timed, max_running=2) for _ in range(3)]
    assert taken[2] is None
    first = taken[0]
    assert first is not None
    end(timed, first.lease)
    assert claim(timed, max_running=2) is not None


def test_a_run_that_lost_its_worker_is_taken_even_at_the_limit(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a")
    lost = claim(timed, max_running=1)
    assert lost is not None
    start(timed, lost.lease)
    clock.forward(60)
    assert claim(timed, "w2", max_running=1) is not None


def test_a_signal_makes_a_resting_run_want_a_worker_until_it_was_seen(timed: RunStores) -> None:
    submit(timed, "a")
    held = claim(timed)
    assert held is not None
    end(timed, held.lease)
    assert claim(timed) is None
    event = NewEvent(SignalAccepted("s", "RETRY_RUN", "ada", "operator"), START, step_id="SIGNAL:s")
    (stored,) = timed.writer.append("a", [event])
    assert stored.run_seq == 3
    woken = claim(timed)
    assert woken is not None
    timed.leases.release(woken.lease, seen_seq=2)
    woken = claim(timed)
    assert woken is not None
    timed.leases.release(woken.lease, seen_seq=3)
    assert claim(timed) is None


def test_a_saved_snapshot_is_never_replaced_by_an_older_one(timed: RunStores) -> None:
    submit(timed, "a")
    submit(timed, "b")
    assert set(timed.snapshots.behind(10)) == {"a", "b"}
    assert timed.snapshots.load("a") is None
    snapshot = project_run("a", timed.reader.events("a"))
    timed.snapshots.save(snapshot)
    assert timed.snapshots.load("a") == snapshot
    assert timed.snapshots.behind(10) == ("b",)
    timed.snapshots.save(replace(RunSnapshot("a"), last_event_seq=0))
    assert timed.snapshots.load("a") == snapshot
    timed.snapshots.save(replace(snapshot, last_event_seq=2))
    loaded = timed.snapshots.load("a")
    assert loaded is not None
    assert loaded.last_event_seq == 2


def test_attempts_of_the_platform_are_counted_per_logical_attempt(timed: RunStores) -> None:
    submit(timed, "a")
    held = claim(timed)
    assert held is not None
    count = timed.attempts.next_engine_attempt
    assert [count(held.lease, "10", 1), count(held.lease, "10", 1), count(held.lease, "10", 2)] == [2, 3, 2]
    assert count(held.lease, "20", 1) == 2


def test_every_event_waits_in_the_outbox_once_per_bus(timed: RunStores) -> None:
    submit(timed, "a")
    for bus in ("hook", "log"):
        (entry,) = timed.outbox.take(bus, limit=10, hold_s=60)
        assert (entry.bus, entry.attempts, entry.event) == (bus, 0, timed.reader.events("a")[0])
        assert entry.run == timed.catalog.run("a")
        assert timed.outbox.take(bus, limit=10, hold_s=60) == ()
    assert timed.outbox.take("other", limit=10, hold_s=60) == ()


def test_an_entry_that_its_taker_never_confirmed_is_given_out_again(timed: RunStores, clock: SetClock) -> None:
    submit(timed, "a")
    (entry,) = timed.outbox.take("hook", limit=10, hold_s=60)
    clock.forward(61)
    (again,) = timed.outbox.take("hook", limit=10, hold_s=60)
    assert again.entry_id == entry.entry_id
    timed.outbox.delivered([entry.entry_id])
    clock.forward(61)
    assert timed.outbox.take("hook", limit=10, hold_s=60) == ()


def test_a_postponed_entry_waits_and_a_buried_one_is_a_dead_letter_until_it_is_replayed(
    timed: RunStores, clock: SetClock
) -> None:
    submit(timed, "a")
    (entry,) = timed.outbox.take("hook", limit=10, hold_s=60)
    timed.outbox.postpone(entry.entry_id, error="503", delay_s=120)
    clock.forward(100)
    assert timed.outbox.take("hook", limit=10, hold_s=60) == ()
    clock.forward(21)
    (entry,) = timed.outbox.take("hook", limit=10, hold_s=60)
    assert entry.attempts == 1
    timed.outbox.bury(entry.entry_id, error="410")
    clock.forward(10_000)
    assert timed.outbox.take("hook", limit=10, hold_s=60) == ()
    (dead,) = timed.outbox.dead_letters()
    assert (dead.bus, dead.run_id, dead.run_seq, dead.event_type) == ("hook", "a", 1, "RunQueued")
    assert (dead.attempts, dead.error) == (2, "410")
    assert timed.outbox.dead_letters(bus="log") == ()
    assert timed.outbox.replay(bus="log") == 0
    assert timed.outbox.replay(entry_ids=[dead.entry_id]) == 1
    (entry,) = timed.outbox.take("hook", limit=10, hold_s=60)
    assert entry.attempts == 0


def test_deleting_a_run_takes_everything_of_it(timed: RunStores) -> None:
    submit(timed, "a")
    held = claim(timed)
    assert held is not None
    timed.attempts.next_engine_attempt(held.lease, "10", 1)
    timed.snapshots.save(project_run("a", timed.reader.events("a")))
    end(timed, held.lease)
    timed.intake.delete("a", deleted_by="ada", reason="tidy")
    assert timed.snapshots.load("a") is None
    assert timed.outbox.take("hook", limit=10, hold_s=60) == ()
    assert timed.catalog.runs(RunFilter()) == ()
    timed.snapshots.save(replace(RunSnapshot("a"), last_event_seq=5))
    assert timed.snapshots.load("a") is None


def test_a_run_that_is_asked_for_by_name_follows_the_rules_of_the_queue(timed: RunStores, clock: SetClock) -> None:
    def claim_run(name: str) -> Claim | Wait:
        return timed.leases.claim_run(name, owner="w", ttl_s=30, max_running=1)

    submit(timed, "a")
    submit(timed, "b")
    later = clock.now + timedelta(seconds=50)
    wanted = request(request_id="c", period="c")
    timed.intake.create(wanted, run_id="c", approval_required=False, decide=lambda _load: Accepted(later))
    first = claim_run("b")
    assert isinstance(first, Claim)
    assert timed.catalog.load("dev").running == 1
    assert claim_run("b") == Wait(WaitReason.HELD)
    assert claim_run("a") == Wait(WaitReason.NO_PLACE, running=1)
    assert claim_run("c") == Wait(WaitReason.NOT_BEFORE, not_before=later)
    timed.leases.release(first.lease, seen_seq=0)
    again = claim_run("a")
    assert isinstance(again, Claim)
    timed.leases.release(again.lease, seen_seq=0)
    clock.forward(50)
    assert isinstance(claim_run("c"), Claim)
    with pytest.raises(UserError) as unknown:
        claim_run("nobody")
    assert unknown.value.code == "RunNotFound"


def test_a_run_that_is_asked_for_by_name_waits_for_its_period(timed: RunStores) -> None:
    for name in ("a", "b"):
        wanted = request(request_id=name, period="2026-01")
        timed.intake.create(wanted, run_id=name, approval_required=False, decide=lambda _load: Accepted())
    assert isinstance(timed.leases.claim_run("a", owner="w", ttl_s=30, max_running=9), Claim)
    assert timed.leases.claim_run("b", owner="w", ttl_s=30, max_running=9) == Wait(WaitReason.PERIOD_BUSY)
