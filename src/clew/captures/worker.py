"""The worker for what follows a run: points are frozen, captures written, postlude jobs done. The run never changes."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from clew.captures.freezing import Fitting, InFlight, Reason, Ticket, fit, fit_job, is_reached
from clew.captures.jobs import JobRunner, wants_failed_runs
from clew.captures.manifests import Places
from clew.captures.policy import CapturePolicy
from clew.captures.queue import (
    CaptureLease,
    CaptureOutcome,
    CaptureRecord,
    CaptureState,
    CaptureStatus,
    JobReport,
    Overtaken,
)
from clew.captures.removal import clear_attempts, collect_expired, drop_waiting
from clew.captures.tickets import timed_ticket
from clew.captures.writing import CaptureWriter, EndedRun
from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.captures import CAPTURE_ABANDONED
from clew.engine.blame import SPARK_ERRORS, of_unknown_cause, reads_restricted, translated
from clew.engine.session import leaving_active_session
from clew.engine.types import SparkSession
from clew.events.artifacts import parts_among
from clew.events.snapshot import RunStatus
from clew.events.values import Failure, failure_of, failure_of_unknown
from clew.plan.plan import Plan
from clew.plan.postlude import PostludeJob
from clew.runs.environment import RunEnvironment
from clew.runs.limits import LeasePolicy
from clew.runs.signals import Role
from clew.runs.view import RunFacts, RunFactsReader
from clew.runs.worker import worker_name
from clew.storage.committed import committed_parts

_log = logging.getLogger(__name__)
_POLL_S = 0.5


@dataclass(frozen=True)
class CaptureWorker:
    """Freezes, writes and does what follows runs, in this process."""

    environment: RunEnvironment
    state: CaptureState
    session: Callable[[], SparkSession]
    lease: LeasePolicy = field(default_factory=LeasePolicy)
    on_done: Callable[[CaptureRecord], None] = lambda _record: None

    @cached_property
    def policy(self) -> CapturePolicy:
        """The rules of the environment. What a role may was decided when the run was asked for."""
        return CapturePolicy.of(self.environment.name, self.environment.settings, Role.VIEWER.label)

    def after_run(self, run_id: str) -> None:
        """In dev all of it, one after the other; in prod the points are frozen, and a worker does the rest."""
        if self.policy.is_prod:
            self.settle(run_id)
            return
        unfrozen = self._unfrozen(run_id)
        tickets = dict[int, tuple[Ticket, int]]()
        for record in unfrozen:
            self._settle(record, self._view(run_id), tickets)
            self._work_off(run_id)
        self._work_off(run_id)

    def settle(self, run_id: str) -> None:
        """Freeze the points of a run that has ended. What is at the same point shares the ticket."""
        unfrozen = self._unfrozen(run_id)
        if not unfrozen:
            return
        try:
            view = self._view(run_id)
        except UserError:
            for record in drop_waiting(self.environment, self.state, run_id):
                self.on_done(record)
            return
        tickets = dict[int, tuple[Ticket, int]]()
        for record in unfrozen:
            self._settle(record, view, tickets)

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        while not stop.is_set():
            try:
                is_busy = self.work_once()
            except TransientFailure as away:
                _log.warning("captures wait for the state store: %s", away)
                is_busy = False
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever one capture does to it
                _log.warning("a round of captures failed: %s", self._safe(failure_of_unknown(error)).message)
                is_busy = False
            if not is_busy:
                stop.wait(_POLL_S)

    def work_once(self) -> bool:
        """Freeze what has ended, and do the capture or job that has waited longest; whether there was one.

        With nothing to do, what has expired is taken away.
        """
        for run_id in self.state.captures.unfrozen_runs():
            self.settle(run_id)
        lease = self.state.captures.claim(owner=worker_name(), ttl_s=self.lease.ttl_s)
        if lease is None:
            collect_expired(self.environment, self.state)
            return False
        self._perform(lease)
        return True

    def _work_off(self, run_id: str) -> None:
        while True:
            lease = self.state.captures.claim(owner=worker_name(), ttl_s=self.lease.ttl_s, run_id=run_id)
            if lease is None:
                return
            self._perform(lease)

    # Freezing

    def _unfrozen(self, run_id: str) -> list[CaptureRecord]:
        return [
            record
            for record in self.state.captures.of_run(run_id)
            if record.status is CaptureStatus.QUEUED and record.expires_at is None
        ]

    def _settle(self, record: CaptureRecord, view: RunFacts, tickets: dict[int, tuple[Ticket, int]]) -> None:
        if not view.snapshot.status.is_terminal or view.plan is None:
            return
        reason = self._obstacle(record, view, view.plan)
        if reason is not None:
            self.on_done(self.state.captures.drop(record.capture_id, CaptureOutcome(drop_reason=reason.value)))
            return
        if record.frozen is not None:
            tickets.setdefault(record.seq, (record.frozen.ticket, record.frozen.freeze_us))
        if record.seq not in tickets:
            parts = committed_parts(self.environment.storage_root, view.snapshot)
            tickets[record.seq] = timed_ticket(view.plan, record, view.snapshot, parts)
        ticket, freeze_us = tickets[record.seq]
        all_columns = len(view.plan.columns_after(record.seq)) + 2
        frozen = self.state.captures.freeze(
            record.capture_id,
            ticket,
            freeze_us,
            lambda in_flight: self._fitting(record, ticket, all_columns, in_flight),
            waits_for=timedelta(days=record.request.ttl_days if record.request is not None else self.policy.ttl_days),
        )
        if frozen.status.is_over:
            self.on_done(frozen)

    def _obstacle(self, record: CaptureRecord, view: RunFacts, plan: Plan) -> Reason | None:
        """Why nothing can be done at a point."""
        if record.kind == "job" and view.snapshot.status is not RunStatus.COMPLETED:
            job = job_of(plan, record)
            if job is None or not wants_failed_runs(job):
                return Reason.RUN_NOT_COMPLETED
        return None if is_reached(view.snapshot, record.seq) else Reason.NOT_REACHED

    def _fitting(self, record: CaptureRecord, ticket: Ticket, all_columns: int, in_flight: InFlight) -> Fitting:
        if record.request is None:
            return fit_job(min(ticket.estimated_bytes, self.policy.limits.max_bytes), self.policy, in_flight)
        return fit(record.request, ticket, all_columns=all_columns, policy=self.policy, in_flight=in_flight)

    # Doing

    def _perform(self, lease: CaptureLease) -> None:
        """Do one, and keep how it went. Whatever goes wrong stays with it."""
        store = self.state.captures
        try:
            with self._kept(lease), leaving_active_session():
                status, outcome = self._tried(lease)
        except Overtaken:
            _log.warning("%s was taken over by another worker", lease.record.capture_id)
            return
        if status is CaptureStatus.QUEUED:
            delay = self.environment.retry_policy().first_delay_s * 2 ** (lease.record.attempts - 1)
            store.postpone(lease, outcome, delay_s=delay)
            return
        written = Path(outcome.manifest.folder).name if outcome.manifest is not None else None
        if store.finish(lease, status, outcome):
            clear_attempts(Places(self.environment), lease.record, lambda name: name != written)
            done = store.find(lease.record.capture_id)
            if done is not None:
                self.on_done(done)
        else:
            _log.warning("%s was taken over by another worker", lease.record.capture_id)
            clear_attempts(Places(self.environment), lease.record, lambda name: name == written)

    def _tried(self, lease: CaptureLease) -> tuple[CaptureStatus, CaptureOutcome]:
        record = lease.record
        most = self.environment.retry_policy().engine_attempts
        last = record.outcome.error
        if record.attempts > most:
            because = f": {last.message}" if last is not None else ""
            error = UserError(CAPTURE_ABANDONED.anywhere(attempts=most, because=because))
            return CaptureStatus.FAILED, CaptureOutcome(error=self._safe(failure_of(error)), job=record.outcome.job)
        try:
            outcome = self._done(lease)
        except SPARK_ERRORS as error:
            failure = failure_of(translated(error, None, self._plan_of(record)))
        except ClewError as error:
            failure = failure_of(error)
        except OSError as error:
            unavailable = failure_of_unknown(error)
            failure = Failure(unavailable.code, unavailable.message, unavailable.category, retryable=True)
        except Overtaken:
            raise
        except Exception as error:  # noqa: BLE001 - a capture that fails must not take the run with it
            plan = self._plan_of(record)
            is_private = plan is None or reads_restricted(plan)
            failure = failure_of(of_unknown_cause(error)) if is_private else failure_of_unknown(error)
        else:
            return (CaptureStatus.DROPPED if outcome.drop_reason else CaptureStatus.READY), outcome
        safe = self._safe(failure)
        _log.warning("%s failed: %s: %s", record.capture_id, safe.code, safe.message)
        outcome = CaptureOutcome(error=safe, job=self._noted(record))
        return (CaptureStatus.QUEUED if failure.retryable else CaptureStatus.FAILED), outcome

    def _plan_of(self, record: CaptureRecord) -> Plan | None:
        """What a run executed, which says whose values an error may quote; None if that is not known any more."""
        try:
            return self._view(record.run_id).plan
        except ClewError:
            return None

    def _noted(self, record: CaptureRecord) -> JobReport | None:
        """What a job has sent so far."""
        noted = self.state.captures.find(record.capture_id)
        return noted.outcome.job if noted is not None else record.outcome.job

    def _done(self, lease: CaptureLease) -> CaptureOutcome:
        record = lease.record
        try:
            view = self._view(record.run_id)
        except UserError:
            return CaptureOutcome(drop_reason=Reason.RUN_REMOVED.value, job=record.outcome.job)
        assert view.plan is not None  # noqa: S101 - the run has run
        assert record.frozen is not None  # noqa: S101 - only frozen ones are claimed
        ended = self._ended(view, view.plan, record.frozen.ticket)
        over = view.snapshot.completed_at or record.created_at
        wait_ms = max(0, int((self._now() - over).total_seconds() * 1000))
        if record.request is not None:
            return CaptureWriter(
                places=Places(self.environment),
                run=view.record,
                ended=ended,
                record=record,
                request=record.request,
                frozen=record.frozen,
                attempt=record.attempts,
                wait_ms=wait_ms,
                is_prod=self.policy.is_prod,
                now=self._now,
            ).write()
        job = job_of(view.plan, record)
        assert job is not None  # noqa: S101 - the record was made from the plan
        return JobRunner(
            places=Places(self.environment),
            policy=self.policy,
            view=view,
            ended=ended,
            record=record,
            job=job,
            wait_ms=wait_ms,
            note=lambda outcome: self.state.captures.note(lease, outcome),
            publish=lambda new, manifest: self.state.captures.publish(new, manifest, lease),
            now=self._now,
        ).run()

    def _ended(self, view: RunFacts, plan: Plan, ticket: Ticket) -> EndedRun:
        started = view.snapshot.started_at or view.record.created_at
        by_address = dict(
            zip(
                (artifact.uri for artifact in parts_among(view.snapshot.artifacts)),
                committed_parts(self.environment.storage_root, view.snapshot),
                strict=True,
            )
        )
        return EndedRun(
            spark=self.session(),
            root=self.environment.storage_root,
            run_id=view.record.run_id,
            plan=plan,
            period=view.record.request.period,
            today=view.record.request.today(started),
            parts=tuple(by_address[address] for address in ticket.parts if address in by_address),
            skipped=frozenset(ticket.skipped),
        )

    def _now(self) -> datetime:
        return self.state.stores.reader.now()

    def _view(self, run_id: str) -> RunFacts:
        return RunFactsReader(self.state, self.environment).facts(run_id)

    def _safe(self, failure: Failure) -> Failure:
        redacted = self.state.secrets.redactor.text(failure.message)
        return Failure(failure.code, redacted, failure.category, failure.retryable)

    @contextmanager
    def _kept(self, lease: CaptureLease) -> Iterator[None]:
        """Prolong the lease while the work goes on."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self.lease.ttl_s / 3):
                try:
                    if not self.state.captures.keep(lease, ttl_s=self.lease.ttl_s):
                        return
                except ClewError as error:
                    _log.warning("could not keep %s: %s", lease.record.capture_id, error)

        thread = threading.Thread(target=beat, name=f"keep {lease.record.capture_id[:12]}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def job_of(plan: Plan, record: CaptureRecord) -> PostludeJob | None:
    """The job of a plan that a record stands for."""
    return next((job for job in plan.extensions.postlude_jobs if job.id == record.slot), None)


@contextmanager
def after_runs(
    environment: RunEnvironment,
    state: CaptureState,
    session: Callable[[], SparkSession],
    *,
    on_done: Callable[[CaptureRecord], None],
    stop: threading.Event,
) -> Iterator[None]:
    """Do what comes after runs in a thread beside them, until told to stop."""
    worker = CaptureWorker(environment, state, session, on_done=on_done)
    thread = threading.Thread(target=worker.run, args=(stop,), name="captures")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
