import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from clew.diagnostics import UserError
from clew.events import (
    NewEvent,
    RunApproved,
    RunCancelled,
    RunQueued,
    RunRetried,
    RunStarted,
    SignalAccepted,
    SignalRejected,
    StepFailed,
)
from clew.events.snapshot import RunStatus, StepStatus
from clew.events.values import FailureCategory
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import QueuePolicy, StoreLimits
from clew.runs.signal_service import SignalDecision
from clew.runs.signals import NEEDED_ROLE, Actor, Refusal, Role, Signal, SignalType
from clew.runs.stores import RunStores
from tests.runs.runs_histories import FAILURE, steps
from tests.runs.runs_workers import FakeExecutors, SetClock, Site, succeed
from tests.store.store_fixtures import OpenStores

ADMIN = Actor("eve", Role.ADMIN)
ALLOWED = {
    Role.VIEWER: set(),
    Role.OPERATOR: {"PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "RETRY_RUN"},
    Role.ENGINEER: {"PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "RETRY_RUN", "SKIP_STEP"},
    Role.ADMIN: {"PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "RETRY_RUN", "SKIP_STEP", "APPROVE"},
}


def tell(
    site: Site, type_: SignalType, *, by: Actor = ADMIN, id_: str | None = None, run: str = "run-1", **rest: object
) -> SignalDecision:
    signal = Signal(signal_id=id_ or f"{type_}-{rest}", run_id=run, type=type_, **rest)  # type: ignore[arg-type]
    return site.signals.send(signal, by)


def refusal(decision: SignalDecision) -> Refusal | None:
    return decision.refused.refusal if decision.refused is not None else None


class Talking:
    """An engine during whose steps things happen."""

    def __init__(self) -> None:
        self.site: Site | None = None
        self.told: dict[str, list[tuple[SignalType, str | None]]] = {}

    def __call__(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        assert self.site is not None
        for type_, step in self.told.pop(attempts[0].step.step_id, []):
            assert tell(self.site, type_, step_id=step, id_=str(uuid4())).is_accepted
        return succeed(attempts, context)


def talking(stores: RunStores, **told: list[tuple[SignalType, str | None]]) -> Site:
    behaviour = Talking()
    site = Site(stores, FakeExecutors(behaviour=behaviour))
    behaviour.site, behaviour.told = site, {step.removeprefix("at_"): what for step, what in told.items()}
    site.submit()
    return site


def test_a_pause_takes_effect_at_the_next_step_and_a_resume_goes_on(stores: RunStores) -> None:
    site = talking(stores, at_10=[(SignalType.PAUSE, None)])
    assert site.drive() is RunStatus.PAUSED
    assert site.executors.attempts == [("10",)]
    assert site.types()[-3:] == ["SignalAccepted", "StepCompleted", "RunPaused"]
    assert stores.leases.claim("dev", owner="w", ttl_s=1, max_running=9) is None
    assert tell(site, SignalType.RESUME).is_accepted
    assert site.drive() is RunStatus.COMPLETED
    assert site.executors.attempts == [("10",), ("20",), ("30",)]


def test_pauses_are_numbered_by_their_cycle(sqlite_stores: RunStores) -> None:
    site = talking(sqlite_stores, at_10=[(SignalType.PAUSE, None)], at_20=[(SignalType.PAUSE, None)])
    for number in (1, 2):
        assert site.drive() is RunStatus.PAUSED
        assert tell(site, SignalType.RESUME, id_=f"resume {number}").is_accepted
    assert site.drive() is RunStatus.COMPLETED
    cycles = [
        (event.event_type, event.logical_attempt_id)
        for event in sqlite_stores.reader.events("run-1")
        if event.event_type in {"RunPaused", "RunResumed"}
    ]
    assert cycles == [("RunPaused", 1), ("RunResumed", 1), ("RunPaused", 2), ("RunResumed", 2)]


def test_cancel_interrupts_a_running_step(stores: RunStores) -> None:
    site: Site

    def endless(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        assert tell(site, SignalType.CANCEL, reason="wrong month").is_accepted
        assert context.cancel.wait(30), "nobody cancelled the step"
        context.cancel.check()
        return []

    site = Site(stores, FakeExecutors(behaviour=endless))
    site.submit()
    assert site.drive() is RunStatus.CANCELLED
    ended = stores.reader.events("run-1")[-2:]
    assert isinstance(ended[0].body, StepFailed)
    assert ended[0].body.error.category is FailureCategory.CANCELLED
    assert ended[1].body == RunCancelled("wrong month")
    assert ended[1].caused_by_signal_id is not None


def test_a_callback_is_called_when_the_step_is_cancelled(sqlite_stores: RunStores) -> None:
    site: Site
    called = threading.Event()

    def endless(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        context.cancel.on_cancel(called.set)
        tell(site, SignalType.CANCEL)
        assert called.wait(30)
        raise ConnectionError("the job was cancelled")

    site = Site(sqlite_stores, FakeExecutors(behaviour=endless))
    site.submit()
    assert site.drive() is RunStatus.CANCELLED


def test_a_run_that_nobody_drives_is_cancelled_at_once(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    assert tell(site, SignalType.CANCEL).is_accepted
    assert site.types() == ["RunQueued", "SignalAccepted", "RunCancelled"]
    assert site.drive() is RunStatus.CANCELLED
    assert site.executors.attempts == []


def test_a_run_that_wants_approval_starts_when_an_admin_approves_it(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors(), policy=QueuePolicy(approval_required=True))
    site.submit()
    assert site.worker().tick() == ()
    assert refusal(tell(site, SignalType.APPROVE, by=Actor("bob", Role.ENGINEER), id_="b")) is Refusal.NOT_AUTHORIZED
    assert tell(site, SignalType.APPROVE).is_accepted
    approved = stores.reader.events("run-1")[-1]
    assert approved.body == RunApproved("eve")
    assert site.snapshot().status is RunStatus.APPROVED
    assert refusal(tell(site, SignalType.APPROVE, id_="again")) is Refusal.APPROVAL_NOT_PENDING
    assert site.drive() is RunStatus.COMPLETED


def test_a_pending_step_can_be_skipped(sqlite_stores: RunStores) -> None:
    site = talking(sqlite_stores, at_10=[(SignalType.SKIP_STEP, "30")])
    assert site.drive() is RunStatus.COMPLETED
    assert site.executors.attempts == [("10",), ("20",)]


def test_signals_take_effect_in_their_order(sqlite_stores: RunStores) -> None:
    site = talking(
        sqlite_stores,
        at_10=[(SignalType.PAUSE, None), (SignalType.SKIP_STEP, "20"), (SignalType.RESUME, None)],
    )
    assert site.drive() is RunStatus.COMPLETED
    effects = [e.event_type for e in sqlite_stores.reader.events("run-1") if e.caused_by_signal_id is not None]
    assert effects == ["RunPaused", "StepSkipped", "RunResumed"]
    assert site.snapshot().pending_signals == ()


def test_a_second_pause_for_the_same_boundary_does_not_pause_again(sqlite_stores: RunStores) -> None:
    site = talking(sqlite_stores)
    behaviour = site.executors.behaviour
    assert isinstance(behaviour, Talking)

    def pauses_twice(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id == "10":
            assert tell(site, SignalType.PAUSE, id_="one").is_accepted
            assert tell(site, SignalType.PAUSE, id_="two").is_accepted
        return succeed(attempts, context)

    site.executors.behaviour = pauses_twice
    assert site.drive() is RunStatus.PAUSED
    tell(site, SignalType.RESUME)
    assert site.drive() is RunStatus.COMPLETED


def test_retry_run_makes_a_new_run_that_names_the_original(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    assert refusal(tell(site, SignalType.RETRY_RUN)) is Refusal.RUN_NOT_TERMINAL
    site.drive()
    assert tell(site, SignalType.RETRY_RUN, id_="again").is_accepted
    retried = stores.reader.events("run-1")[-1].body
    assert isinstance(retried, RunRetried)
    new_run = stores.catalog.run(retried.new_run_id)
    assert new_run.request.retry_of == "run-1"
    queued = stores.reader.events(new_run.run_id)[0].body
    assert isinstance(queued, RunQueued)
    assert queued.retry_of == "run-1"
    assert site.drive(new_run.run_id) is RunStatus.COMPLETED
    assert tell(site, SignalType.RETRY_RUN, id_="again").is_accepted
    assert len(site.types()) == len(stores.reader.events("run-1"))
    assert [e for e in site.types() if e == "RunRetried"] == ["RunRetried"]


def test_a_decision_is_recorded_before_it_is_applied_and_the_effect_names_the_signal(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    decision = tell(site, SignalType.CANCEL, id_="c-1", reason="enough", payload={"ticket": 7})
    assert decision.event is not None
    events = stores.reader.events("run-1")
    accepted, cancelled = events[1:]
    assert accepted == decision.event
    assert isinstance(accepted.body, SignalAccepted)
    told = SignalAccepted("c-1", "CANCEL", "eve", "admin", None, "enough", {"ticket": 7}, accepted.body.digest)
    assert accepted.body == told
    assert accepted.step_id == "SIGNAL:c-1"
    assert (cancelled.event_type, cancelled.caused_by_signal_id) == ("RunCancelled", "c-1")


def test_the_same_signal_again_changes_nothing_and_gives_the_same_answer(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    viewer = Actor("vic", Role.VIEWER)
    refused = tell(site, SignalType.CANCEL, by=viewer, id_="x")
    assert tell(site, SignalType.CANCEL, by=ADMIN, id_="x") == refused
    accepted = tell(site, SignalType.CANCEL, id_="y")
    count = len(site.types())
    assert tell(site, SignalType.CANCEL, id_="y") == accepted
    assert len(site.types()) == count


def test_a_sender_that_died_after_the_decision_leaves_the_rest_to_a_worker(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    holder = stores.leases.acquire("run-1", owner="somebody", ttl_s=60)
    assert holder is not None
    tell(site, SignalType.CANCEL)
    assert site.types()[-1] == "SignalAccepted"
    stores.leases.release(holder.lease, seen_seq=1)
    reports = site.worker().tick()
    assert [report.status for report in reports] == ["SKIPPED"]
    assert site.snapshot().status is RunStatus.CANCELLED
    assert site.worker().tick() == ()


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("type_", list(SignalType))
def test_who_may_send_what(sqlite_stores: RunStores, role: Role, type_: SignalType) -> None:
    site = Site(sqlite_stores, FakeExecutors())
    site.submit()
    decision = tell(site, type_, by=Actor("x", role), step_id="10")
    assert (refusal(decision) is not Refusal.NOT_AUTHORIZED) == (type_.value in ALLOWED[role])
    assert set(NEEDED_ROLE) == set(SignalType)


def test_nobody_reaches_into_another_tenant(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit(tenant_id="acme")
    decision = tell(site, SignalType.CANCEL, by=Actor("eve", Role.ADMIN, "other"))
    assert refusal(decision) is Refusal.WRONG_TENANT
    assert decision.event is not None
    assert isinstance(decision.event.body, SignalRejected)
    assert site.snapshot().status is RunStatus.PENDING
    assert tell(site, SignalType.CANCEL, by=Actor("eve", Role.ADMIN, "acme"), id_="z").is_accepted


def test_signals_that_make_no_sense_are_refused_with_a_reason(sqlite_stores: RunStores) -> None:
    fails = FakeExecutors(behaviour=lambda a, c: [StepOutput.failed(FAILURE)] if a[0].step.seq == 20 else succeed(a, c))
    site = Site(sqlite_stores, fails)
    site.submit()
    assert refusal(tell(site, SignalType.PAUSE)) is Refusal.RUN_NOT_RUNNING
    assert refusal(tell(site, SignalType.RESUME)) is Refusal.RUN_NOT_PAUSED
    site.drive()
    for number, (type_, step, expected) in enumerate(
        [
            (SignalType.PAUSE, None, Refusal.RUN_TERMINAL),
            (SignalType.CANCEL, None, Refusal.RUN_TERMINAL),
            (SignalType.APPROVE, None, Refusal.RUN_TERMINAL),
            (SignalType.RETRY_STEP, "10", Refusal.STEP_NOT_FAILED),
            (SignalType.RETRY_STEP, "30", Refusal.STEP_NOT_TERMINAL),
            (SignalType.RETRY_STEP, "99", Refusal.STEP_NOT_FOUND),
            (SignalType.RETRY_STEP, None, Refusal.STEP_NOT_FOUND),
            (SignalType.SKIP_STEP, "10", Refusal.STEP_TERMINAL),
            (SignalType.SKIP_STEP, "30", Refusal.STEP_NOT_FAILED),
        ]
    ):
        decision = tell(site, type_, id_=str(number), step_id=step)
        assert refusal(decision) is expected
        assert decision.event is not None
        assert isinstance(decision.event.body, SignalRejected)
    with pytest.raises(UserError):
        tell(site, SignalType.CANCEL, run="nothing")


def test_a_completed_run_takes_neither_retry_nor_skip_of_a_step(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors())
    site.submit()
    site.drive()
    for type_ in (SignalType.RETRY_STEP, SignalType.SKIP_STEP):
        assert refusal(tell(site, type_, step_id="10")) is Refusal.RUN_TERMINAL


def test_a_running_step_can_be_neither_retried_nor_skipped(sqlite_stores: RunStores) -> None:
    seen: list[Refusal | None] = []
    site: Site

    def asks(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        step = attempts[0].step.step_id
        seen.extend(refusal(tell(site, t, step_id=step)) for t in (SignalType.RETRY_STEP, SignalType.SKIP_STEP))
        return succeed(attempts, context)

    site = Site(sqlite_stores, FakeExecutors(1, asks))
    site.submit()
    site.drive()
    assert seen == [Refusal.STEP_NOT_TERMINAL, Refusal.STEP_RUNNING]


def test_a_failed_run_is_not_reopened_while_another_runs_for_its_period(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors(behaviour=lambda a, c: [StepOutput.failed(FAILURE)]))
    site.submit("one", period="2026-01")
    site.drive()
    site.submit("two", period="2026-01")
    other = sqlite_stores.leases.claim("dev", owner="w", ttl_s=60, max_running=9)
    assert other is not None
    begun = site.driver.begin(other)
    assert begun.active is not None
    assert refusal(tell(site, SignalType.RETRY_STEP, step_id="10")) is Refusal.PERIOD_BUSY


def test_a_signal_of_more_than_64_kb_is_refused_and_its_payload_not_kept(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    decision = tell(site, SignalType.CANCEL, id_="big", payload={"x": "y" * 65_536})
    assert refusal(decision) is Refusal.TOO_LARGE
    assert decision.event is not None
    assert len(str(decision.event.to_json())) < 2000
    assert tell(site, SignalType.CANCEL, id_="fits", payload={"x": "y" * 60_000}).is_accepted


def test_more_than_60_signals_per_run_and_minute_are_refused(sqlite_url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    stores = open_stores(sqlite_url, clock=clock)
    site = Site(stores, FakeExecutors(), clock=clock)
    site.submit()
    site.submit("r-2")
    for number in range(60):
        assert refusal(tell(site, SignalType.RESUME, id_=str(number))) is Refusal.RUN_NOT_PAUSED
    assert refusal(tell(site, SignalType.CANCEL, id_="61")) is Refusal.RATE_LIMITED
    length = len(site.types())
    for number in range(62, 80):
        assert refusal(tell(site, SignalType.CANCEL, id_=str(number))) is Refusal.RATE_LIMITED
    assert len(site.types()) == length
    assert tell(site, SignalType.CANCEL, run="run-2", id_="other run").is_accepted
    clock.forward(61)
    assert tell(site, SignalType.CANCEL, id_="later").is_accepted


def test_refused_signals_of_others_do_not_keep_an_operator_from_cancelling(url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    site = Site(open_stores(url, clock=clock), FakeExecutors(), clock=clock)
    site.submit()
    viewer = Actor("vic", Role.VIEWER)
    for number in range(61):
        tell(site, SignalType.CANCEL, by=viewer, id_=f"v{number}")
    assert refusal(tell(site, SignalType.CANCEL, by=viewer, id_="too many")) is Refusal.RATE_LIMITED
    assert tell(site, SignalType.CANCEL, by=Actor("olga", Role.OPERATOR), id_="stop").is_accepted


def test_accepted_signals_of_all_senders_are_limited_per_run(url: str, open_stores: OpenStores) -> None:
    clock = SetClock()
    site = Site(
        open_stores(url, clock=clock), FakeExecutors(), clock=clock, limits=StoreLimits(max_signals_per_minute=4)
    )
    site.submit()
    claim = site.stores.leases.acquire("run-1", owner="w", ttl_s=600)
    assert claim is not None
    site.stores.writer.append("run-1", [NewEvent(RunStarted(steps(3)), clock())], token=claim.lease.token)
    for number in range(4):
        assert tell(site, SignalType.PAUSE, by=Actor(f"a{number % 2}", Role.ADMIN), id_=f"s{number}").is_accepted
    assert refusal(tell(site, SignalType.PAUSE, by=Actor("a2", Role.ADMIN), id_="s4")) is Refusal.RATE_LIMITED


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_minute_of_the_limit_is_measured_by_the_clock_of_the_store(
    url: str, open_stores: OpenStores, hours: int
) -> None:
    """The clock of the sender is wrong by an hour."""
    clock, wrong = SetClock(), SetClock()
    wrong.forward(3600 * hours)
    limits = StoreLimits(max_signals_per_minute=2)
    site = Site(open_stores(url, clock=clock), FakeExecutors(), clock=wrong, limits=limits)
    site.submit()
    for number in range(2):
        assert refusal(tell(site, SignalType.RESUME, id_=str(number))) is Refusal.RUN_NOT_PAUSED
    assert refusal(tell(site, SignalType.RESUME, id_="3")) is Refusal.RATE_LIMITED
    clock.forward(61)
    assert refusal(tell(site, SignalType.RESUME, id_="4")) is Refusal.RUN_NOT_PAUSED


def test_the_same_id_with_another_content_is_refused_and_recorded(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    first = tell(site, SignalType.APPROVE, id_="x", reason="looks fine")
    assert refusal(first) is Refusal.APPROVAL_NOT_PENDING
    others: list[dict[str, Any]] = [{"reason": "looks bad"}, {"step_id": "10"}, {"payload": {"a": 1}}]
    for count, other in enumerate(others, start=1):
        taken = tell(site, SignalType.APPROVE, id_="x", **{"reason": "looks fine", **other})
        assert refusal(taken) is Refusal.SIGNAL_ID_TAKEN
        assert taken.event is not None
        assert site.types() == ["RunQueued", *["SignalRejected"] * (1 + count)]
        assert tell(site, SignalType.APPROVE, id_="x", **{"reason": "looks fine", **other}) == taken
        assert site.types() == ["RunQueued", *["SignalRejected"] * (1 + count)]
    assert tell(site, SignalType.APPROVE, id_="x", reason="looks fine") == first
    accepted = tell(site, SignalType.CANCEL, id_="y")
    assert accepted.is_accepted
    assert refusal(tell(site, SignalType.PAUSE, id_="y")) is Refusal.SIGNAL_ID_TAKEN
    assert tell(site, SignalType.CANCEL, id_="y") == accepted


@pytest.mark.parametrize("length", [0, 201, 100_000])
def test_an_id_of_the_wrong_length_is_refused_before_anything_is_recorded(stores: RunStores, length: int) -> None:
    site = Site(stores, FakeExecutors())
    site.submit()
    signal = Signal(signal_id="x" * length, run_id="run-1", type=SignalType.CANCEL)
    decision = site.signals.send(signal, ADMIN)
    assert (refusal(decision), decision.event) == (Refusal.TOO_LARGE, None)
    assert site.types() == ["RunQueued"]


def test_the_step_that_was_interrupted_is_failed_and_the_rest_pending(sqlite_stores: RunStores) -> None:
    site: Site

    def waits(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        tell(site, SignalType.CANCEL)
        context.cancel.wait(30)
        raise TimeoutError

    site = Site(sqlite_stores, FakeExecutors(behaviour=waits, fuse=2))
    site.submit()
    site.drive()
    statuses = [step.status for step in site.snapshot().steps]
    assert statuses == [StepStatus.FAILED, StepStatus.PENDING, StepStatus.PENDING]


def test_a_decision_on_a_state_that_has_changed_meanwhile_is_taken_anew(stores: RunStores) -> None:
    quick = Site(stores, FakeExecutors())
    quick.submit()

    class Interrupting:
        """A reader that another writer overtakes, once."""

        left = 1

        def __getattr__(self, name: str) -> Any:
            if name == "recent_signals" and self.left:
                self.left -= 1
                assert tell(quick, SignalType.CANCEL, id_="quicker").is_accepted
            return getattr(stores.reader, name)

    reader: Any = Interrupting()
    slow = Site(replace(stores, reader=reader), FakeExecutors())
    assert refusal(tell(slow, SignalType.CANCEL, id_="slower")) is Refusal.RUN_TERMINAL
    assert quick.types() == ["RunQueued", "SignalAccepted", "RunCancelled", "SignalRejected"]
