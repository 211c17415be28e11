"""The queue and the index of captures, on both databases."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clew.captures.freezing import Degradation, Fitting, InFlight, Reason, Ticket
from clew.captures.manifests import Manifest
from clew.captures.policy import Limits
from clew.captures.queue import (
    CaptureLease,
    CaptureOutcome,
    CaptureRecord,
    CaptureStatus,
    Emission,
    JobReport,
    Overtaken,
)
from clew.captures.requests import CaptureRequest, KeptColumn
from clew.definitions import CaptureMode
from clew.events import NewEvent, RunCompleted, RunStarted
from clew.events.values import Failure, FailureCategory
from clew.runs.limits import Accepted
from clew.store.captures import SqlCaptureStore
from clew.store.database import Database
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.state_store import StoreOptions, open_database, run_stores
from tests.runs.runs_histories import START, request

REQUEST = CaptureRequest(
    breakpoint="p::main::x",
    seq=3,
    mode=CaptureMode.FULL_RAW,
    limits=Limits(100, 100, 100),
    sample_rows=10,
    columns=(KeptColumn("a"),),
    ttl_days=7,
)
TICKET = Ticket(
    run_id="run",
    breakpoint="p::main::x",
    seq=3,
    plan_digest="d",
    parts=("storage:a",),
    skipped=(),
    rows=10,
    estimated_bytes=500,
    frozen_at=datetime(2026, 1, 1, tzinfo=UTC),
)
MANIFEST = Manifest(
    capture_id="cap_x",
    run_id="run",
    request_id="r",
    environment="dev",
    project="p",
    period="2026-01",
    breakpoint="p::main::x",
    seq=3,
    plan_digest="d",
    mode=CaptureMode.FULL_RAW,
    asked=CaptureMode.FULL_RAW,
    columns=(),
    rows=10,
    size=99,
    files=(),
    digest="",
    folder="f",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    expires_at=datetime(2026, 1, 8, tzinfo=UTC),
)


WEEK = timedelta(days=7)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(url: str, clock: Clock) -> Iterator[Database]:
    opened = open_database(url, StoreOptions(clock=clock))
    migrate(opened, MIGRATIONS)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> SqlCaptureStore:
    return SqlCaptureStore(database, "dev")


def new(slot: str = "capture:1", run_id: str = "run", **values: object) -> CaptureRecord:
    asked = {"kind": "capture", "tenant_id": "t", "request_id": "r", "breakpoint": "p::main::x", "seq": 3}
    return CaptureRecord(slot=slot, run_id=run_id, request=REQUEST, **{**asked, **values})  # type: ignore[arg-type]


def fits(size: int = 500) -> Fitting:
    return Fitting(CaptureMode.FULL_RAW, 10, size, ())


def frozen(store: SqlCaptureStore, slot: str = "capture:1") -> str:
    [record] = store.enlist([new(slot)])
    store.freeze(record.capture_id, TICKET, 12, lambda _in_flight: fits(), waits_for=WEEK)
    return record.capture_id


def claimed(store: SqlCaptureStore, owner: str = "w", ttl_s: float = 30) -> CaptureLease:
    lease = store.claim(owner=owner, ttl_s=ttl_s)
    assert lease is not None
    return lease


def test_a_slot_of_a_run_is_taken_once(store: SqlCaptureStore) -> None:
    first = store.enlist([new(), new("capture:2")])
    again = store.enlist([new(), new("capture:2"), new("capture:3")])
    assert [each.capture_id for each in again[:2]] == [each.capture_id for each in first]
    assert len(store.of_run("run")) == 3
    assert (first[0].status, first[0].request, first[0].attempts) == (CaptureStatus.QUEUED, REQUEST, 0)


def test_captures_are_found_by_their_whole_id_in_their_environment(store: SqlCaptureStore, database: Database) -> None:
    [record] = store.enlist([new()])
    assert store.find(record.capture_id) == record
    assert store.find(record.capture_id[:-1]) is None
    assert SqlCaptureStore(database, "prod").find(record.capture_id) is None


def test_captures_are_indexed_by_request_and_listed_newest_first(store: SqlCaptureStore, clock: Clock) -> None:
    for number in range(3):
        clock.forward(1)
        store.enlist([new(f"capture:{number}", request_id=f"r{number % 2}")])
    assert [each.slot for each in store.listed(request_id="r0")] == ["capture:2", "capture:0"]
    assert [each.slot for each in store.listed(limit=2)] == ["capture:2", "capture:1"]
    assert store.listed(status=CaptureStatus.READY) == ()
    store.enlist([new("job:0", kind="job")])
    assert [each.slot for each in store.listed(limit=1)] == ["capture:2"], "jobs take no place of captures"
    assert len(store.listed(run_id="ru")) == 3
    assert store.listed(run_id="%") == store.listed(tenant_id="somebody else") == ()


def test_what_is_not_frozen_is_not_claimed(store: SqlCaptureStore) -> None:
    store.enlist([new()])
    assert store.claim(owner="w", ttl_s=30) is None


def test_freezing_keeps_the_ticket_and_happens_once(store: SqlCaptureStore) -> None:
    capture_id = frozen(store)
    again = store.freeze(capture_id, replace(TICKET, seq=9), 1, lambda _in_flight: fits(1), waits_for=WEEK)
    assert again.frozen is not None
    assert (again.frozen.ticket, again.frozen.freeze_us) == (TICKET, 12)


def test_freezing_sees_what_is_under_way(store: SqlCaptureStore) -> None:
    frozen(store, "capture:1")
    frozen(store, "capture:2")
    claimed(store)
    [record] = store.enlist([new("capture:3")])
    seen = list[InFlight]()

    def decide(in_flight: InFlight) -> Fitting:
        seen.append(in_flight)
        return Fitting(None, 0, 0, (Degradation(CaptureMode.STATS, Reason.INFLIGHT_JOBS, 2, in_flight.jobs),))

    dropped = store.freeze(record.capture_id, TICKET, 1, decide, waits_for=WEEK)
    assert seen == [InFlight(bytes=1000, jobs=2)]
    assert (dropped.status, dropped.outcome.drop_reason) == (CaptureStatus.DROPPED, "INFLIGHT_JOBS")


def test_what_is_done_is_not_under_way_any_more(store: SqlCaptureStore) -> None:
    frozen(store)
    store.finish(claimed(store), CaptureStatus.READY, CaptureOutcome(manifest=MANIFEST))
    [record] = store.enlist([new("capture:2")])
    seen = list[InFlight]()

    def decide(in_flight: InFlight) -> Fitting:
        seen.append(in_flight)
        return fits()

    store.freeze(record.capture_id, TICKET, 1, decide, waits_for=WEEK)
    assert seen == [InFlight()]


def test_a_capture_is_claimed_by_one_worker_and_finished_by_it(store: SqlCaptureStore) -> None:
    capture_id = frozen(store)
    lease = claimed(store)
    assert (lease.record.capture_id, lease.record.status, lease.record.attempts) == (
        capture_id,
        CaptureStatus.RUNNING,
        1,
    )
    assert store.claim(owner="other", ttl_s=30) is None
    assert store.finish(lease, CaptureStatus.READY, CaptureOutcome(manifest=MANIFEST))
    done = store.find(capture_id)
    assert done is not None
    assert (done.status, done.outcome.manifest, done.expires_at) == (
        CaptureStatus.READY,
        MANIFEST,
        MANIFEST.expires_at,
    )
    assert store.claim(owner="w", ttl_s=30) is None


def test_a_capture_whose_worker_is_gone_is_taken_over_and_a_late_end_is_refused(
    store: SqlCaptureStore, clock: Clock
) -> None:
    frozen(store)
    lost = claimed(store, "first")
    clock.forward(31)
    taken = claimed(store, "second")
    assert (taken.record.attempts, taken.token > lost.token) == (2, True)
    assert not store.finish(lost, CaptureStatus.READY, CaptureOutcome(manifest=MANIFEST))
    assert not store.keep(lost, ttl_s=30)
    assert not store.postpone(lost, CaptureOutcome(), delay_s=1)
    found = store.find(taken.record.capture_id)
    assert found is not None
    assert found.status is CaptureStatus.RUNNING
    assert store.finish(taken, CaptureStatus.FAILED, CaptureOutcome())


def test_a_lease_that_is_kept_does_not_run_out(store: SqlCaptureStore, clock: Clock) -> None:
    frozen(store)
    lease = claimed(store)
    clock.forward(20)
    assert store.keep(lease, ttl_s=30)
    clock.forward(20)
    assert store.claim(owner="other", ttl_s=30) is None


def test_what_failed_for_now_is_tried_again_later(store: SqlCaptureStore, clock: Clock) -> None:
    frozen(store)
    failure = Failure("SparkUnavailable", "gone", FailureCategory.TRANSIENT, retryable=True)
    assert store.postpone(claimed(store), CaptureOutcome(error=failure), delay_s=5)
    assert store.claim(owner="w", ttl_s=30) is None
    clock.forward(6)
    again = claimed(store)
    assert (again.record.attempts, again.record.outcome.error) == (2, failure)


def test_threads_never_claim_the_same(store: SqlCaptureStore) -> None:
    wanted = {frozen(store, f"capture:{number}") for number in range(12)}
    found = list[str]()

    def work() -> None:
        while (lease := store.claim(owner=threading.current_thread().name, ttl_s=30)) is not None:
            found.append(lease.record.capture_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(wanted)


def test_runs_that_ended_are_to_be_frozen(store: SqlCaptureStore, database: Database) -> None:
    stores = run_stores(database, StoreOptions())
    run = stores.intake.create(request(), run_id="run", approval_required=False, decide=lambda _load: Accepted()).run
    assert run.run_id == "run"
    store.enlist([new()])
    assert store.unfrozen_runs() == ()
    claim = stores.leases.acquire("run", owner="w", ttl_s=30)
    assert claim is not None
    done = [NewEvent(RunStarted(()), START), NewEvent(RunCompleted(), START)]
    stores.writer.append("run", done, token=claim.lease.token)
    assert store.unfrozen_runs() == ("run",)
    frozen(store)
    assert store.unfrozen_runs() == ()


def test_runs_that_are_gone_are_to_be_settled(store: SqlCaptureStore, database: Database) -> None:
    stores = run_stores(database, StoreOptions())
    stores.intake.create(request(), run_id="run", approval_required=False, decide=lambda _load: Accepted())
    [record] = store.enlist([new()])
    claim = stores.leases.acquire("run", owner="w", ttl_s=30)
    assert claim is not None
    done = [NewEvent(RunStarted(()), START), NewEvent(RunCompleted(), START)]
    stores.writer.append("run", done, token=claim.lease.token)
    stores.intake.delete("run", deleted_by="somebody", reason="")
    assert store.unfrozen_runs() == ("run",)
    store.drop(record.capture_id, CaptureOutcome(drop_reason="RUN_REMOVED"))
    assert store.unfrozen_runs() == ()


def test_what_was_dropped_waits_again_once_its_reason_is_gone(store: SqlCaptureStore) -> None:
    [record] = store.enlist([new()])
    dropped = store.drop(record.capture_id, CaptureOutcome(drop_reason="NOT_REACHED"))
    assert (dropped.status, dropped.outcome.drop_reason) == (CaptureStatus.DROPPED, "NOT_REACHED")
    assert store.reopen("run", ["MAX_ROWS"]) == 0
    assert store.reopen("run", ["NOT_REACHED"]) == 1
    [again] = store.of_run("run")
    assert (again.status, again.outcome, again.completed_at) == (CaptureStatus.QUEUED, CaptureOutcome(), None)


def test_a_capture_that_a_job_made_is_published_once_for_its_slot(store: SqlCaptureStore) -> None:
    first = store.publish(new("job_1:0"), MANIFEST)
    again = store.publish(new("job_1:0"), replace(MANIFEST, rows=11))
    assert first.capture_id == again.capture_id
    assert first.outcome.manifest is not None
    assert again.outcome.manifest is not None
    assert again.outcome.manifest.capture_id == again.capture_id
    assert (first.outcome.manifest.rows, again.outcome.manifest.rows) == (10, 11)
    assert again.status is CaptureStatus.READY


def test_a_job_that_was_overtaken_publishes_no_capture_in_the_place_of_its_successors(
    store: SqlCaptureStore, clock: Clock
) -> None:
    frozen(store, "job_1")
    late = claimed(store, "late", ttl_s=30)
    clock.forward(31)
    owner = claimed(store, "owner", ttl_s=30)
    with pytest.raises(Overtaken):
        store.publish(new("job_1:0"), MANIFEST, late)
    assert [record.slot for record in store.of_run("run")] == ["job_1"]
    kept = store.publish(new("job_1:0"), replace(MANIFEST, rows=11), owner)
    assert store.finish(owner, CaptureStatus.READY, CaptureOutcome())
    for lease in (late, owner):  # the job is over
        with pytest.raises(Overtaken):
            store.publish(new("job_1:0"), MANIFEST, lease)
    assert store.find(kept.capture_id) == kept


def test_ready_captures_expire_and_can_be_forgotten(store: SqlCaptureStore, clock: Clock) -> None:
    record = store.publish(new(), MANIFEST)
    assert store.expired() == ()
    clock.forward(8 * 86400)
    assert [each.capture_id for each in store.expired()] == [record.capture_id]
    store.mark_expired(record.capture_id)
    gone = store.find(record.capture_id)
    assert gone is not None
    assert gone.status is CaptureStatus.EXPIRED
    assert store.expired() == ()
    store.delete(record.capture_id)
    assert store.find(record.capture_id) is None


def test_what_waits_too_long_expires_and_is_claimed_no_more(store: SqlCaptureStore, clock: Clock) -> None:
    capture_id = frozen(store)
    assert store.expired() == ()
    clock.forward(WEEK.total_seconds() + 1)
    assert store.claim(owner="w", ttl_s=30) is None
    assert [each.capture_id for each in store.expired()] == [capture_id]
    store.mark_expired(capture_id)
    gone = store.find(capture_id)
    assert gone is not None
    assert (gone.status, gone.completed_at) == (CaptureStatus.EXPIRED, clock.now)
    assert store.expired() == ()


def test_what_a_worker_is_doing_does_not_expire_until_the_worker_is_gone(store: SqlCaptureStore, clock: Clock) -> None:
    capture_id = frozen(store)
    clock.forward(WEEK.total_seconds() - 10)
    lease = claimed(store)
    clock.forward(20)
    store.mark_expired(capture_id)
    assert (store.expired(), store.keep(lease, ttl_s=30)) == ((), True)
    clock.forward(31)
    assert store.claim(owner="other", ttl_s=30) is None
    assert [each.capture_id for each in store.expired()] == [capture_id]
    store.mark_expired(capture_id)
    assert not store.finish(lease, CaptureStatus.READY, CaptureOutcome(manifest=MANIFEST))


def test_a_ticket_is_kept_while_the_run_goes_on_and_is_claimed_only_after_it(store: SqlCaptureStore) -> None:
    [record] = store.enlist([new()])
    store.keep_ticket(record.capture_id, TICKET, 5)
    store.keep_ticket(record.capture_id, replace(TICKET, seq=9), 6)
    assert store.claim(owner="w", ttl_s=30) is None
    settled = store.freeze(record.capture_id, replace(TICKET, seq=9), 7, lambda _in_flight: fits(), waits_for=WEEK)
    assert settled.frozen is not None
    assert (settled.frozen.ticket, settled.frozen.freeze_us, settled.frozen.mode) == (TICKET, 5, CaptureMode.FULL_RAW)
    assert claimed(store).record.capture_id == record.capture_id


def test_what_a_job_has_sent_stays_on_record_whatever_becomes_of_it(store: SqlCaptureStore, clock: Clock) -> None:
    first, second = (
        Emission("log", "training_log", f"out/{days}", 1, 1, 1, clock.now + timedelta(days=days)) for days in (2, 1)
    )
    report = JobReport("job", None, emissions=(first, second))
    [record] = store.enlist([new("job", kind="job")])
    store.freeze(record.capture_id, TICKET, 1, lambda _in_flight: fits(), waits_for=WEEK)
    lost = claimed(store)
    assert store.note(lost, CaptureOutcome(job=report))
    clock.forward(31)
    lease = claimed(store)
    assert lease.record.outcome.job == report
    assert not store.note(lost, CaptureOutcome())
    store.postpone(lease, CaptureOutcome(job=report), delay_s=1)
    dropped = store.drop(record.capture_id, CaptureOutcome(drop_reason="RUN_REMOVED"))
    assert (dropped.outcome.job, dropped.expires_at) == (report, second.expires_at)
    clock.forward(86400)
    assert [each.capture_id for each in store.expired()] == [record.capture_id]
