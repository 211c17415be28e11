"""Starting runs: from a project and a period to a run that is driven to its end, in this process or by a worker.

A run that is driven in this process can be watched; Ctrl-C cancels it.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from importlib.metadata import version as installed_version

from clew.api.checkpoints import keep_checkpoint
from clew.api.little_work import has_little_to_read
from clew.api.opened_environment import OpenedEnvironment, Principal
from clew.api.projects import plan_of_current_definitions, plan_to_run
from clew.api.run_parameters import parameters_of_request, plan_for_run
from clew.api.sealed_starts import SealedExecutors
from clew.api.signalling import send_signal
from clew.api.state import State, queue_of
from clew.api.trace_ids import ProcessTraceIds
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.roles import AccessRole
from clew.bus.buses import buses_of
from clew.bus.dispatcher import OutboxDispatcher
from clew.captures.manifests import Places
from clew.captures.queue import EnlistingExecutors, capture_parameters, enlist
from clew.captures.tickets import TicketOffice
from clew.deferred import dataclass
from clew.definitions import CaptureWish
from clew.definitions.settings import BusSettings
from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.runs import PERIOD_BUSY, REQUEST_ID_TAKEN, RUN_NOT_FOUND
from clew.engine.opening import DRAFT, SparkExecutors
from clew.engine.session import brief_session_of, leaving_active_session, session_of
from clew.engine.types import SparkSession
from clew.events.bodies import StepCompleted
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import PlanRef
from clew.plan import Plan
from clew.privacy.messages import as_seen
from clew.privacy.policy import PrivacyPolicy
from clew.runs.driver import DriverSettings, RunDriver
from clew.runs.environment import RunEnvironment
from clew.runs.executor import ExecutorFactory, StepExecutor
from clew.runs.leases import Wait
from clew.runs.named_periods import period_of
from clew.runs.projector import Projector
from clew.runs.request import AS_OF, RERUN, AsOf, Rerun, RunFilter, RunRecord, RunRequest
from clew.runs.reuse import EarlierRun
from clew.runs.run_log import RunLogs
from clew.runs.signals import Role, SignalType, actor_name
from clew.runs.stores import EventWriter
from clew.runs.view import RunFactsReader
from clew.runs.worker import Worker, WorkerSettings
from clew.storage.committed import committed_parts
from clew.storage.plans import keep_plan
from clew.store.table_transfer import PostgresqlTables

_ANOTHER_REQUEST = (
    "request it again later; without a request id, that will be another run (--request-id ID makes it the same request)"
)


@dataclass(frozen=True, slots=True)
class ReportingWriter:
    """Writes events with another writer, and reports each of them once it is stored."""

    writer: EventWriter
    report: Callable[[StoredEvent], None]

    def append(
        self,
        run_id: str,
        events: Sequence[NewEvent],
        *,
        token: int | None = None,
        expected_seq: int | None = None,
    ) -> tuple[StoredEvent, ...]:
        """Store the events and report them, including events that were already stored."""
        stored = self.writer.append(run_id, events, token=token, expected_seq=expected_seq)
        for event in stored:
            self.report(event)
        return stored


@dataclass(frozen=True, slots=True)
class FreshExecutors:
    """Executors that see the workspace files as they are when a worker takes the run."""

    executors_of: Callable[[WorkspaceFiles], ExecutorFactory]
    current: Callable[[], WorkspaceFiles]

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run."""
        return self.executors_of(self.current()).open(run, snapshot)


@dataclass(frozen=True, slots=True)
class RunStarter:
    """Requests runs and drives them."""

    files: WorkspaceFiles
    environment: RunEnvironment
    state: State
    role: str = Role.ADMIN.label
    """The role that requests captures; the user of an embedded environment may do everything."""
    requested_by: str | None = None
    """Who requests the run, if not the user of this process."""
    current: Callable[[], WorkspaceFiles] | None = None
    """Returns the current files, for a worker that runs while they are edited."""
    ends_soon: bool = False
    """Whether this process ends with the run that it drives."""

    def submit(
        self,
        project: str,
        period: str,
        request_id: str | None = None,
        captures: Sequence[CaptureWish] = (),
        parameters: Mapping[str, object] | None = None,
        *,
        activating: Principal | None = None,
    ) -> RunRecord:
        """Request a run of a project for a period. The same request id returns the same run.

        If someone is `activating`, the definitions become the version that runs first, unless they are already.
        """
        period_of(self.files.loaded.workspace, period)
        if activating is None:
            choice = plan_to_run(self.files, self.state, project)
        else:
            choice = plan_of_current_definitions(self.files, self.state, project, activating)
        return self.submit_plan(
            choice.plan,
            period,
            version=choice.version,
            request_id=request_id,
            captures=captures,
            parameters=parameters,
        )

    def submit_plan(
        self,
        plan: Plan,
        period: str,
        *,
        version: int | None = None,
        request_id: str | None = None,
        captures: Sequence[CaptureWish] = (),
        parameters: Mapping[str, object] | None = None,
        rerun: Rerun | None = None,
        as_of: AsOf | None = None,
    ) -> RunRecord:
        """Request a run of a plan, as a version of its project or as a draft.

        The run keeps the plan with the values of its parameters and of its period in place. A request without an id
        cannot be retried, so it is refused immediately if the project and period are busy.
        """
        plan = plan_for_run(plan, self.files, period, self.environment.settings.parameters, parameters or {})
        carried = {
            **capture_parameters(plan, captures, self.environment, self.role),
            **parameters_of_request(plan),
            **({RERUN: rerun.to_json()} if rerun is not None else {}),
            **({AS_OF: as_of.to_json()} if as_of is not None else {}),
        }
        if request_id is None:
            self._refuse_if_busy(plan.name, period)
        keep_plan(self.environment.storage_root, plan)
        request = RunRequest(
            project_id=plan.name,
            plan=PlanRef(plan.name, plan.digest[:16], plan.digest),
            period=period,
            request_id=request_id or str(uuid.uuid4()),
            environment_id=self.environment.name,
            tenant_id=self.environment.settings.tenant,
            project_version=DRAFT if version is None else str(version),
            requested_by=self.requested_by or actor_name(),
            parameters=carried,
        )
        submission = queue_of(self.state, self.environment).submit(request)
        submission.raise_if_rejected(hint=_ANOTHER_REQUEST if request_id is None else None)
        _require_same_request(request, submission.run)
        enlist(self.state.captures, self.environment, submission.run)
        self._projector().catch_up(submission.run.run_id)
        return submission.run

    def drive(
        self, run_id: str, stop: threading.Event, on_wait: Callable[[Wait], None] = lambda _wait: None
    ) -> RunStatus | None:
        """Drive a run in this thread until it ends or `stop` is set. Returns None if a worker has the run.

        A run that may not start yet waits, and `on_wait` is told why.
        """
        with leaving_active_session():
            self.prepare()
            return self.worker().run_one(run_id, stop, on_wait)

    def prepare(self) -> None:
        """Start Spark before taking a run, because that can take longer than a lease.

        If Spark does not start, the next run that is taken records the reason in its events.
        """
        with suppress(ClewError):
            self.session()

    def withdraw(self, run_id: str) -> None:
        """Cancel a run that has not begun because another one of its project and period has. Raises PeriodBusy.

        Nobody could request it again, so it would wait until a worker came and did the same work twice.
        """
        run = self.state.stores.catalog.run(run_id)
        if not run.status.is_startable or run.approval_pending:
            return
        reason = "another run of the project and period started first"
        send_signal(self.state, self.environment, run_id, SignalType.CANCEL, reason=reason)
        project, period = run.request.project_id, run.request.period
        self._refuse_if_busy(project, period)
        hint = "another run of it started first, and has ended by now; run it again if need be"
        raise UserError(PERIOD_BUSY.anywhere(project=project, period=period, hint=hint))

    def _refuse_if_busy(self, project: str, period: str) -> None:
        for status in (RunStatus.RUNNING, RunStatus.PAUSED):
            which = RunFilter(
                tenant_id=self.environment.settings.tenant,
                environment_id=self.environment.name,
                project_id=project,
                period=period,
                status=status,
            )
            for run in self.state.stores.catalog.runs(which, limit=1):
                hint = self._who_is_busy(run.run_id, status)
                raise UserError(PERIOD_BUSY.anywhere(project=project, period=period, hint=hint))

    def _who_is_busy(self, run_id: str, status: RunStatus) -> str:
        """Whether a process drives the run, and what can be done."""
        short, tenant = run_id[:8], self.environment.settings.tenant
        cancel = f"`clew signal {short} CANCEL` ends it"
        if status is RunStatus.PAUSED:
            return f"run {short} is PAUSED; `clew signal {short} RESUME` continues it, {cancel}"
        held = self.state.stores.activity.leases(self.environment.name, tenant_id=tenant)
        lease = next((each for each in held if each.run_id == run_id), None)
        if lease is None or lease.is_expired:
            since = "" if lease is None else f" since {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC"
            return f"no process drives run {short}{since}; `clew worker` continues it, {cancel}"
        return f"run {short} is being driven by {lease.owner}; wait for it to end, or {cancel}"

    def worker(self, on_event: Callable[[StoredEvent], None] | None = None) -> Worker:
        """A worker for the environment, in this process. It passes its events to `on_event`, from its threads."""
        stores = self.state.stores

        def report(event: StoredEvent) -> None:
            keep_checkpoint(self.environment, self.state.ledger, event)
            if on_event is not None:
                on_event(event)

        stores = replace(stores, writer=ReportingWriter(stores.writer, report))
        trace_ids = ProcessTraceIds(self.state.tracelink, node_id=self.environment.settings.tracelink.node_id)
        executors = FreshExecutors(
            lambda files: SparkExecutors(
                files.loaded.workspace,
                self.environment,
                self.state.datasets,
                self.state.secrets,
                self.session,
                PostgresqlTables(),
                trace_ids,
                self._is_under_way,
                self.earlier,
                f"clew-{installed_version('clew')}",
            ),
            self.current or (lambda: self.files),
        )
        limits = self.environment.store_limits()
        driver = RunDriver(
            stores,
            SealedExecutors(
                EnlistingExecutors(executors, self.state.captures, self.environment), self.state, self.environment
            ),
            queue_of(self.state, self.environment),
            self.state.secrets,
            settings=DriverSettings(limits=limits, retry=self.environment.retry_policy()),
            on_commit=TicketOffice(self.environment, self.state.captures).freeze_reached,
            logs=RunLogs(self.environment.storage_root, self.state.secrets.redactor),
        )
        dispatcher = OutboxDispatcher(
            stores.outbox,
            stores.writer,
            buses_of(self.environment, self.state.secrets, self._seen_by_bus, stores.reader),
            policy=self.environment.delivery_policy(),
            redactor=self.state.secrets.redactor,
        )
        settings = WorkerSettings(
            environment_id=self.environment.name,
            capacity=1,
            queue=self.environment.queue_policy(),
            lease=self.environment.lease_policy(),
        )
        return Worker(stores, driver, self._projector(), dispatcher, settings=settings, beside=[trace_ids.run])

    def _seen_by_bus(self, bus: BusSettings, event: StoredEvent) -> StoredEvent:
        """An event as the receivers of a bus may see it."""
        policy = PrivacyPolicy.of(
            self.environment.name,
            self.environment.settings,
            AccessRole(bus.role),
            marks=(self.current() if self.current else self.files).privacy_marks,
            salt=Places(self.environment).salt,
        )
        return as_seen(policy, event)

    def _is_under_way(self, run_id: str) -> bool:
        """Whether a run may still publish. One that is unknown here may belong to another store, and counts as such."""
        try:
            return not self.state.stores.catalog.run(run_id).status.is_terminal
        except UserError:
            return True

    def earlier(self, run_id: str) -> EarlierRun:
        """A run that another one repeats. Raises UserError if it is gone, or its plan or a description of its parts."""
        facts = RunFactsReader(self.state, self.environment).facts(run_id)
        if facts.plan is None:
            raise UserError(facts.plan_problem or RUN_NOT_FOUND.anywhere(run_id=run_id))
        events, started = self.state.stores.reader.events(run_id), facts.snapshot.started_at
        return EarlierRun(
            run_id=run_id,
            snapshot=facts.snapshot,
            plan=facts.plan,
            parts=committed_parts(self.environment.storage_root, facts.snapshot),
            today=None if started is None else facts.record.request.today(started),
            versions=frozenset(each.raw.adapter_version for each in events if isinstance(each.body, StepCompleted)),
        )

    def _projector(self) -> Projector:
        stores = self.state.stores
        return Projector(stores.reader, stores.writer, stores.snapshots, limits=self.environment.store_limits())

    def session(self) -> SparkSession:
        """The Spark session of this process, started on first use."""
        datasources = self.files.loaded.workspace.datasources
        is_brief = self.ends_soon and has_little_to_read(self.environment, datasources)
        return (brief_session_of if is_brief else session_of)(self.environment, datasources, self.state.secrets)


def starter_of(at: OpenedEnvironment, *, ends_soon: bool = False) -> RunStarter:
    """Requests and drives runs for the principal. Raises UserError Forbidden for other tenants."""
    return RunStarter(
        at.files,
        at.environment,
        at.state,
        role=at.principal.role.value,
        requested_by=at.principal.name,
        current=at.source.current,
        ends_soon=ends_soon,
    )


def _require_same_request(request: RunRequest, run: RunRecord) -> None:
    """Raise UserError RequestIdTaken if the run with this request id is for another project or period."""
    known = run.request
    same_values = (known.values, known.rerun, known.as_of) == (request.values, request.rerun, request.as_of)
    if (known.project_id, known.period) != (request.project_id, request.period) or not same_values:
        raise UserError(
            REQUEST_ID_TAKEN.anywhere(
                request_id=request.request_id, run_id=run.run_id, project=known.project_id, period=known.period
            )
        )


_POLL_S = 0.1


@dataclass(slots=True)
class Drive:
    """The outcome of an attempt to drive a run."""

    status: RunStatus | None = None
    """None if another worker has the run."""
    was_interrupted: bool = False
    error: BaseException | None = None
    over: threading.Event = field(default_factory=threading.Event)


def drive_in_foreground(
    starter: RunStarter,
    run_id: str,
    watch: Callable[[StoredEvent], None],
    on_interrupt: Callable[[], None] = lambda: None,
    on_wait: Callable[[Wait], None] = lambda _wait: None,
    *,
    gives_way: bool = False,
) -> Drive:
    """Drive a run to its end and pass each event to `watch`, in this thread. `on_wait` is told why it does not start.

    If another run of its project and period has started first, the run waits for a worker; one that `gives_way` is
    cancelled, and PeriodBusy is raised.

    The first KeyboardInterrupt sends CANCEL and waits for the run to end cleanly; a second one is raised and leaves the
    run as it is: another worker continues it after its lease expires. Any other error in this thread, such as one of
    `watch`, returns the run to the queue at its next step, and is raised then.
    """
    drive, stop = Drive(), threading.Event()
    seen = starter.state.stores.catalog.run(run_id).last_seq
    thread = threading.Thread(
        target=_drive, args=(starter, run_id, drive, stop, on_wait), name=f"drive {run_id}", daemon=True
    )
    thread.start()
    looked_last = False
    while not looked_last:
        try:
            looked_last = drive.over.is_set()
            for event in _further_events(starter, run_id, seen, drive):
                seen = event.run_seq
                watch(event)
            # Not Thread.join: if interrupted, some versions of Python consider the thread finished.
            drive.over.wait(_POLL_S)
        except KeyboardInterrupt:
            if drive.was_interrupted:
                raise
            drive.was_interrupted = True
            looked_last = False
            on_interrupt()
            send_signal(starter.state, starter.environment, run_id, SignalType.CANCEL, reason="interrupted by Ctrl-C")
        except BaseException:
            stop.set()
            drive.over.wait()
            raise
    if drive.error is not None:
        raise drive.error
    if gives_way and drive.status is not None:
        starter.withdraw(run_id)
    return drive


def _further_events(starter: RunStarter, run_id: str, seen: int, drive: Drive) -> Sequence[StoredEvent]:
    """The events after those that were seen.

    Who drives the run has patience with a store that is away for a while, and so has who watches. Once the run is over,
    the last events are waited for, unless the store was the end of it.
    """
    ends = time.monotonic() + starter.environment.store_limits().outage_patience_s
    while True:
        is_over = drive.over.is_set()
        try:
            return starter.state.stores.reader.events(run_id, after=seen)
        except TransientFailure:
            if not is_over or drive.error is not None:
                return ()
            if time.monotonic() > ends:
                raise
            time.sleep(_POLL_S)


def _drive(
    starter: RunStarter, run_id: str, drive: Drive, stop: threading.Event, on_wait: Callable[[Wait], None]
) -> None:
    try:
        drive.status = starter.drive(run_id, stop, on_wait)
    except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
        drive.error = error
    finally:
        drive.over.set()
