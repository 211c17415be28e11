"""The run loop: begins a run, drives it step by step, ends it or gives it back."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from enum import StrEnum
from random import random

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.events.bodies import EventBody, RunCompleted, RunFailed, RunStarted
from clew.events.envelope import RUN_STEP, NewEvent
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import Failure, failure_of, failure_of_unknown
from clew.runs.active_run import ActiveRun, Heartbeat, LiveRun
from clew.runs.budget import BudgetedWriter
from clew.runs.clock import Clock, utc_now
from clew.runs.executor import Concluding, ExecutorFactory, Interruption, StepExecutor, StepInterrupted
from clew.runs.leases import Claim, LateWrite, OutOfDate, PeriodBusy
from clew.runs.limits import RetryPolicy, StoreLimits, delay_before
from clew.runs.projector import Projector
from clew.runs.rotation import can_rotate, closing, remaining_steps
from clew.runs.run_log import RunLogs, note, note_error, this_driver
from clew.runs.secrets import SecretScope, SecretsResolver, StepSecrets
from clew.runs.signal_service import SignalEffects
from clew.runs.step_group import CommitListener, StepGroups
from clew.runs.stores import RunStores
from clew.runs.submission import RunQueue

_log = logging.getLogger(__name__)


class StartStatus(StrEnum):
    """The outcome of driving a run that was taken from the queue."""

    STARTED = "STARTED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that was begun, or why it was not."""

    status: StartStatus
    active: ActiveRun | None = None
    rests: bool = False
    """Whether the run is retried after a while; its lease is kept until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """How runs are driven."""

    limits: StoreLimits = field(default_factory=StoreLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class RunDriver:
    """Drives runs. Holds nothing of a run between calls, so one driver serves all threads of a worker."""

    def __init__(
        self,
        stores: RunStores,
        executors: ExecutorFactory,
        queue: RunQueue,
        secrets: SecretsResolver,
        *,
        settings: DriverSettings | None = None,
        on_commit: CommitListener = lambda _run, _snapshot: None,
        clock: Clock = utc_now,
        logs: RunLogs | None = None,
    ) -> None:
        self._stores = stores
        self._logs = logs
        self._executors = executors
        self._secrets = secrets
        self._settings = settings or DriverSettings()
        self._clock = clock
        self._signals = SignalEffects(queue, clock=clock)
        self._groups = StepGroups(stores.attempts, retry=self._settings.retry, on_commit=on_commit, clock=clock)
        self._projector = Projector(
            stores.reader, stores.writer, stores.snapshots, limits=self._settings.limits, clock=clock
        )

    def begin(self, claim: Claim) -> Begun:
        """Prepare a claimed run. A run that cannot be driven is returned to the queue."""
        with self._logged(claim.run.run_id):
            return self._prepare(claim)

    def _prepare(self, claim: Claim) -> Begun:
        live = self._live(claim)
        begun = Begun(StartStatus.SKIPPED)
        try:
            begun = self._begin(live)
        except (LateWrite, PeriodBusy) as refused:
            _log.info("run %s not started: %s", claim.run.run_id, refused)
        finally:
            if begun.active is None and not begun.rests:
                self._give_back(live)
        return begun

    def drive(self, active: ActiveRun, heartbeat: Heartbeat, stop: threading.Event) -> RunStatus:
        """Drive a run until it ends, is paused, or is returned because the worker stops or lost it."""
        with self._logged(active.live.run.run_id):
            note(f"driven by {this_driver()}")
            if active.executor.engine_run_ref:
                note(", ".join(f"{name} {value}" for name, value in active.executor.engine_run_ref.items()))
            status = self._drive(active, heartbeat, stop)
            note(f"the run is {status.value}")
            return status

    def _logged(self, run_id: str) -> AbstractContextManager[object]:
        return nullcontext() if self._logs is None else self._logs.of(run_id)

    def _drive(self, active: ActiveRun, heartbeat: Heartbeat, stop: threading.Event) -> RunStatus:
        run_id = active.live.run.run_id
        try:
            with heartbeat.watching(active):
                while self._one_group(active, stop):
                    pass
        except LateWrite as late:
            _log.warning("run %s given up: %s", run_id, late)
        except StepInterrupted as interrupted:
            _log.info("run %s given back: %s", run_id, interrupted)
        except TransientFailure as away:
            _log.warning("run %s given back: %s", run_id, away)
        except ClewError as error:
            note_error("the run failed", error)
            self._record_failure(active.live, failure_of(error))
        except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one run does to it
            _log.exception("run %s failed in its driver", run_id)
            self._record_failure(active.live, failure_of_unknown(error))
        finally:
            self._close(active.executor)
            self._give_back(active.live)
        return active.live.snapshot.status

    def _live(self, claim: Claim) -> LiveRun:
        limits = self._settings.limits
        writer = BudgetedWriter(
            self._stores.writer, claim.lease, limits=limits, redactor=self._secrets.redactor, clock=self._clock
        )
        check, patience_s = self._stores.leases.check, limits.outage_patience_s
        return LiveRun(claim, self._stores.reader, writer, patience_s=patience_s, check_lease=check)

    def _begin(self, live: LiveRun) -> Begun:
        status = live.run.status
        if not (status.is_startable or status is RunStatus.RUNNING) or live.run.approval_pending:
            live.start_from(self._projector.look(live.run.run_id).snapshot)
            self._signals.settle(live)
            return Begun(StartStatus.SKIPPED)
        live.load()
        executor = self._open(live)
        if isinstance(executor, Begun):
            return executor
        try:
            return self._start(live, executor)
        except BaseException:
            self._close(executor)
            raise

    def _start(self, live: LiveRun, executor: StepExecutor) -> Begun:
        live.know_steps(executor.steps)
        self._signals.settle(live)
        if live.snapshot.status.is_startable:
            event = self._run_event(RunStarted(tuple(executor.steps)))
            live.record(_with_ref(event, executor))
        if live.snapshot.status is not RunStatus.RUNNING:
            self._close(executor)
            return Begun(StartStatus.SKIPPED)
        request = live.run.request
        secrets = StepSecrets(self._secrets, SecretScope(request.tenant_id, request.environment_id))
        return Begun(StartStatus.STARTED, ActiveRun(live, executor, secrets, history=lambda: self._history(live)))

    def _open(self, live: LiveRun) -> StepExecutor | Begun:
        """The executor, or why it could not be opened. A transient failure is retried later."""
        try:
            return self._executors.open(live.run, live.snapshot)
        except TransientFailure as error:
            attempt = self._stores.attempts.next_engine_attempt(live.lease, RUN_STEP, live.snapshot.cycle)
            _log.warning("run %s not started: %s", live.run.run_id, error)
            if attempt <= self._settings.retry.engine_attempts:
                delay = delay_before(attempt, self._settings.retry, random)
                self._stores.leases.keep(live.lease, ttl_s=delay)
                return Begun(StartStatus.SKIPPED, rests=True)
            self._record_failure(live, failure_of(error))
        except ClewError as error:
            note_error("the run could not be opened", error)
            self._record_failure(live, failure_of(error))
        except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one run does to it
            _log.exception("run %s could not be opened", live.run.run_id)
            self._record_failure(live, failure_of_unknown(error))
        return Begun(StartStatus.FAILED)

    def _one_group(self, active: ActiveRun, stop: threading.Event) -> bool:
        """What happens between two steps, then the next steps. Returns whether there is more to do."""
        live = active.live
        live.patiently(live.refresh)
        live.patiently(lambda: self._signals.settle(live))
        if live.snapshot.status is not RunStatus.RUNNING:
            return False
        if active.cancel.reason is Interruption.LEASE_LOST:
            raise StepInterrupted(Interruption.LEASE_LOST)
        if stop.is_set():
            return False
        remaining = remaining_steps(live.snapshot, active.executor.steps)
        if not remaining:
            self._conclude(active)
            live.record(self._run_event(RunCompleted()))
            return False
        self._rotate_if_due(active)
        size = active.executor.group_size(remaining)
        self._groups.run(active, remaining[: max(1, min(size, len(remaining)))])
        return True

    def _conclude(self, active: ActiveRun) -> None:
        """Let the executor prove that nothing was lost. It needs all steps, also those of closed segments."""
        live = active.live
        if isinstance(active.executor, Concluding):
            alerts = active.executor.conclude(self._history(live))
            if alerts:
                live.record(*(alert.event(self._clock) for alert in alerts))

    def _history(self, live: LiveRun) -> RunSnapshot:
        return live.patiently(lambda: self._projector.look(live.run.run_id).snapshot)

    def _rotate_if_due(self, active: ActiveRun) -> None:
        live = active.live
        if not live.segment.is_full(self._settings.limits) or not can_rotate(live.snapshot):
            return
        bodies = closing(live.snapshot, live.run.request.plan, active.executor.steps)
        events = [self._run_event(body, attempt=body.counters.segments) for body in bodies]
        try:
            # A signal that came in this moment would be left behind in the closed segment: then the next time.
            live.record(*events, expected_seq=live.snapshot.last_event_seq)
        except OutOfDate:
            _log.debug("run %s has moved on; its history is rotated later", live.run.run_id)

    def _record_failure(self, live: LiveRun, failure: Failure) -> None:
        if live.snapshot.status.is_terminal:
            return
        event = self._run_event(RunFailed(failure), attempt=live.snapshot.cycle)
        self._carefully("record the failure of", live, lambda: live.record(event))

    def _give_back(self, live: LiveRun) -> None:
        run_id, seen = live.run.run_id, live.snapshot.last_event_seq
        self._carefully("project", live, lambda: self._projector.catch_up(run_id))
        self._carefully("release", live, lambda: self._stores.leases.release(live.lease, seen_seq=seen))

    def _carefully(self, what: str, live: LiveRun, action: Callable[[], object]) -> None:
        """If ending a run fails, the next worker repeats it, once the lease has expired."""
        try:
            action()
        except ClewError as error:
            _log.warning("could not %s run %s: %s", what, live.run.run_id, error)

    def _close(self, executor: StepExecutor) -> None:
        try:
            executor.close()
        except Exception:  # noqa: BLE001 -- the run has its outcome; this changes nothing about it
            _log.exception("an executor could not be closed")

    def _run_event(self, body: EventBody, attempt: int = 1) -> NewEvent:
        return NewEvent(body, emitted_at=self._clock(), logical_attempt_id=attempt)


def _with_ref(event: NewEvent, executor: StepExecutor) -> NewEvent:
    return NewEvent(
        event.body,
        event.emitted_at,
        logical_attempt_id=event.logical_attempt_id,
        engine_run_ref=executor.engine_run_ref,
    )
