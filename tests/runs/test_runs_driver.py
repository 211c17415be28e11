import errno
import os
import threading
from collections.abc import Sequence

import pytest

from clew.diagnostics import EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.runs import SECRET_NOT_FOUND, STORE_BROKEN_PROMISE, STORE_UNAVAILABLE
from clew.events import RunFailed, RunStarted, StepCompleted, StepFailed
from clew.events.snapshot import RunSnapshot, RunStatus, StepStatus
from clew.events.values import Failure, FailureCategory
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import RetryPolicy
from clew.runs.request import RunRecord
from clew.runs.signals import Actor, Role, Signal, SignalType
from clew.runs.stores import RunStores
from tests.runs.runs_histories import FAILURE
from tests.runs.runs_workers import FakeExecutors, Site, succeed

AWAY = TransientFailure(STORE_UNAVAILABLE.anywhere(reason="the cluster is away"))
OPERATOR = Actor("ada", Role.ADMIN)


class Moody:
    """An engine that fails as often as it was told, then succeeds."""

    def __init__(self, *errors: Exception | StepOutput | None) -> None:
        self.errors = list(errors)

    def __call__(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        error = self.errors.pop(0) if self.errors else None
        if isinstance(error, Exception):
            raise error
        if error is not None:
            return [*succeed(attempts[:-1], context), error]
        return succeed(attempts, context)


def site(stores: RunStores, behaviour: object = succeed, *, fuse: int = 1, count: int = 3, **rest: object) -> Site:
    executors = FakeExecutors(count, behaviour, fuse)  # type: ignore[arg-type]
    made = Site(stores, executors, **rest)  # type: ignore[arg-type]
    made.submit()
    return made


def test_a_run_goes_through_its_steps_in_order(stores: RunStores) -> None:
    here = site(stores)
    assert here.drive() is RunStatus.COMPLETED
    assert here.executors.attempts == [("10",), ("20",), ("30",)]
    assert here.types() == ["RunQueued", "RunStarted", *["StepStarted", "StepCompleted"] * 3, "RunCompleted"]
    snapshot = here.snapshot()
    assert [step.status for step in snapshot.steps] == [StepStatus.SUCCESS] * 3
    assert snapshot.steps[0].counts == {"rows_updated": 1}
    assert len(snapshot.artifacts) == 3
    assert snapshot.engine_run_ref == {"run": "run-1"}
    assert here.executors.opened[0].closed
    started = here.stores.reader.events("run-1")[1].body
    assert isinstance(started, RunStarted)
    assert [step.step_id for step in started.steps] == ["10", "20", "30"]


def test_fused_steps_commit_together_in_order(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, fuse=2)
    assert here.drive() is RunStatus.COMPLETED
    assert here.executors.attempts == [("10", "20"), ("30",)]
    pair = ["StepStarted", "StepStarted", "StepCompleted", "StepCompleted"]
    assert here.types() == ["RunQueued", "RunStarted", *pair, "StepStarted", "StepCompleted", "RunCompleted"]


def test_a_group_that_names_its_culprit_commits_what_came_before(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, Moody(StepOutput.failed(FAILURE)), fuse=3)
    assert here.drive() is RunStatus.FAILED
    snapshot = here.snapshot()
    assert [step.status for step in snapshot.steps] == [StepStatus.SUCCESS, StepStatus.SUCCESS, StepStatus.FAILED]
    assert snapshot.failed_step == "30"
    assert snapshot.error == FAILURE


def test_a_group_that_fails_as_a_whole_is_executed_step_by_step(sqlite_stores: RunStores) -> None:
    def fails_at_20(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if any(attempt.step.step_id == "20" for attempt in attempts):
            raise EngineBug(STORE_BROKEN_PROMISE.anywhere(reason="no idea"))
        return succeed(attempts, context)

    here = site(sqlite_stores, fails_at_20, fuse=3)
    assert here.drive() is RunStatus.FAILED
    assert here.executors.attempts == [("10", "20", "30"), ("10",), ("20",)]
    assert [step.status for step in here.snapshot().steps] == [
        StepStatus.SUCCESS,
        StepStatus.FAILED,
        StepStatus.PENDING,
    ]


def test_a_transient_failure_is_tried_again_as_another_attempt_of_the_engine(stores: RunStores) -> None:
    here = site(stores, Moody(AWAY, AWAY))
    assert here.drive() is RunStatus.COMPLETED
    first = here.snapshot().step("10")
    assert first is not None
    assert (first.logical_attempt_id, first.engine_attempt_id) == (1, 3)
    assert here.types().count("StepStarted") == 3


def test_attempts_of_the_engine_are_bounded(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, Moody(*[AWAY] * 9))
    assert here.drive() is RunStatus.FAILED
    assert len(here.executors.attempts) == 3
    failed = here.stores.reader.events("run-1")[-2]
    assert isinstance(failed.body, StepFailed)
    assert (failed.body.error.retryable, failed.engine_attempt_id, failed.logical_attempt_id) == (True, 3, 1)


def test_a_policy_may_make_further_logical_attempts(sqlite_stores: RunStores) -> None:
    policy = RetryPolicy(engine_attempts=2, logical_attempts=2, first_delay_s=0, longest_delay_s=0)
    here = site(sqlite_stores, Moody(*[AWAY] * 3), retry=policy)
    assert here.drive() is RunStatus.COMPLETED
    step = here.snapshot().step("10")
    assert step is not None
    assert (step.logical_attempt_id, step.engine_attempt_id) == (2, 2)
    assert here.types()[2:6] == ["StepStarted", "StepFailed", "StepStarted", "StepCompleted"]


def test_an_error_of_the_user_is_not_tried_again(sqlite_stores: RunStores) -> None:
    error = UserError(SECRET_NOT_FOUND.anywhere(reference="r", tenant="t", environment="e"))
    here = site(sqlite_stores, Moody(error))
    assert here.drive() is RunStatus.FAILED
    assert len(here.executors.attempts) == 1
    ended = here.stores.reader.events("run-1")[-1].body
    assert isinstance(ended, RunFailed)
    assert (ended.error.code, ended.error.category) == ("SecretNotFound", FailureCategory.USER)


def test_whatever_an_engine_raises_fails_the_step_and_not_the_worker(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, Moody(ZeroDivisionError("division by zero")))
    assert here.drive() is RunStatus.FAILED
    error = here.snapshot().error
    assert error is not None
    assert error.message == "ZeroDivisionError: division by zero"
    assert here.executors.opened[0].closed


def test_a_disk_that_is_full_fails_the_step_and_is_no_bug(sqlite_stores: RunStores) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/run-1/part.json")
    here = site(sqlite_stores, Moody(full))
    assert here.drive() is RunStatus.FAILED
    error = here.snapshot().error
    assert error is not None
    assert (error.code, error.category) == ("FileSystemFailed", FailureCategory.USER)
    assert error.message == "cannot use runs/run-1/part.json: No space left on device"


def test_an_engine_that_returns_too_little_is_found_out(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, lambda _attempts, _context: [], fuse=2)
    assert here.drive() is RunStatus.FAILED
    assert here.snapshot().failed_step == "10"


def test_an_engine_may_skip_a_step(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, Moody(StepOutput.skipped("no rows")))
    assert here.drive() is RunStatus.COMPLETED
    step = here.snapshot().step("10")
    assert step is not None
    assert (step.status, step.skip_reason) == (StepStatus.SKIPPED, "no rows")


def test_a_retry_of_a_failed_step_reopens_the_run_with_another_logical_attempt(stores: RunStores) -> None:
    here = site(stores, Moody(None, StepOutput.failed(FAILURE), StepOutput.failed(FAILURE)))
    assert here.drive() is RunStatus.FAILED
    for number in (1, 2):
        signal = Signal(signal_id=f"s{number}", run_id="run-1", type=SignalType.RETRY_STEP, step_id="20")
        assert here.signals.send(signal, OPERATOR).is_accepted
        assert here.snapshot().status is RunStatus.RUNNING
        here.drive()
    assert here.snapshot().status is RunStatus.COMPLETED
    step = here.snapshot().step("20")
    assert step is not None
    assert step.logical_attempt_id == 3
    assert here.executors.attempts == [("10",), ("20",), ("20",), ("20",), ("30",)]
    keys = [(e.step_id, e.logical_attempt_id, e.event_type) for e in here.stores.reader.events("run-1")]
    assert len(keys) == len(set(keys))


def test_a_skip_of_the_failed_step_reopens_the_run_behind_it(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores, Moody(None, StepOutput.failed(FAILURE)))
    here.drive()
    signal = Signal(signal_id="s", run_id="run-1", type=SignalType.SKIP_STEP, step_id="20", reason="known")
    here.signals.send(signal, OPERATOR)
    assert here.drive() is RunStatus.COMPLETED
    assert here.executors.attempts == [("10",), ("20",), ("30",)]
    step = here.snapshot().step("20")
    assert step is not None
    assert (step.status, step.skip_reason) == (StepStatus.SKIPPED, "known")


def test_a_run_that_lost_its_worker_resumes_at_the_first_step_without_an_outcome(stores: RunStores) -> None:
    class Death(BaseException):
        pass

    def dies_at_20(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id == "20":
            raise Death
        return succeed(attempts, context)

    here = site(stores, dies_at_20)
    claim = stores.leases.claim("dev", owner="dying", ttl_s=0.0, max_running=5)
    assert claim is not None
    begun = here.driver.begin(claim)
    assert begun.active is not None
    while not here.executors.opened[0].closed:
        with pytest.raises(Death):
            here.driver.drive(begun.active, here.heartbeat, threading.Event())

    again = Site(stores, FakeExecutors())
    assert again.drive() is RunStatus.COMPLETED
    assert again.executors.attempts == [("20",), ("30",)]
    step = again.snapshot().step("20")
    assert step is not None
    assert (step.logical_attempt_id, step.engine_attempt_id) == (1, 2)
    assert again.types() == ["RunQueued", "RunStarted", *["StepStarted", "StepCompleted"] * 3, "RunCompleted"]


def test_a_step_that_was_stored_before_its_worker_lost_touch_is_not_doubled(sqlite_stores: RunStores) -> None:
    here = site(sqlite_stores)
    here.drive()
    done = [e for e in here.stores.reader.events("run-1") if isinstance(e.body, StepCompleted)]
    assert len({event.step_id for event in done}) == len(done) == 3


class BrokenExecutors(FakeExecutors):
    """Cannot be opened as often as it was told."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    def open(self, run: RunRecord, snapshot: RunSnapshot):  # type: ignore[no-untyped-def]  # noqa: ANN201
        if self.errors:
            raise self.errors.pop(0)
        return super().open(run, snapshot)


@pytest.mark.parametrize(
    "error", [UserError(SECRET_NOT_FOUND.anywhere(reference="", tenant="", environment="")), KeyError("x")]
)
def test_a_run_whose_plan_cannot_be_opened_fails(sqlite_stores: RunStores, error: Exception) -> None:
    here = Site(sqlite_stores, BrokenExecutors(error))
    here.submit()
    assert here.drive() is RunStatus.FAILED
    assert here.types() == ["RunQueued", "RunFailed"]


def test_a_run_whose_engine_is_away_is_tried_again_later(sqlite_stores: RunStores) -> None:
    here = Site(sqlite_stores, BrokenExecutors(AWAY, AWAY))
    here.submit()
    for _ in range(2):
        assert here.drive() is RunStatus.PENDING
    assert here.drive() is RunStatus.COMPLETED


def test_a_run_whose_engine_stays_away_fails(sqlite_stores: RunStores) -> None:
    here = Site(sqlite_stores, BrokenExecutors(*[AWAY] * 9))
    here.submit()
    states = [here.drive() for _ in range(3)]
    assert states == [RunStatus.PENDING, RunStatus.PENDING, RunStatus.FAILED]


def test_a_failure_keeps_a_sentence_and_not_a_log() -> None:
    error = EngineBug(STORE_BROKEN_PROMISE.anywhere(reason="x" * 100_000))
    from clew.events.values import failure_of

    failure = failure_of(error)
    assert isinstance(failure, Failure)
    assert len(failure.message) <= 4000
