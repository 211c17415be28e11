"""What a process of Clew has wired up, as `clew.api` does it; and the receiver of its events."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, Protocol, cast

from clew.bus.dispatcher import OutboxDispatcher
from clew.captures.freezing import Fitting, Ticket
from clew.captures.queue import CaptureLease, CaptureOutcome, CaptureRecord, JobReport, Overtaken
from clew.captures.removal import ExpiredCaptures, drop_waiting
from clew.captures.worker import CaptureWorker
from clew.definitions import CaptureMode
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.events.snapshot import RunSnapshot
from clew.gc.garbage import GarbageCollector
from clew.gc.survey import CollectedState, PlannedProjects
from clew.runs.driver import DriverSettings, RunDriver
from clew.runs.environment import RunEnvironment
from clew.runs.executor import ExecutorFactory, StepExecutor
from clew.runs.limits import DeliveryPolicy, LeasePolicy, QueuePolicy, RetryPolicy, StoreLimits
from clew.runs.projector import Projector, RunFollower
from clew.runs.request import RunRecord
from clew.runs.secrets import SecretsResolver
from clew.runs.signal_service import SignalService
from clew.runs.stores import OutboxEntry, RunReading, RunStores, SnapshotStore
from clew.runs.submission import RunQueue
from clew.runs.worker import Worker, WorkerSettings
from clew.storage.drafts import attempt_name
from clew.storage.layout import CAPTURES
from clew.store.captures import SqlCaptureStore
from clew.store.database import Database
from clew.store.ledger import Ledger
from clew.store.owner import Owner
from clew.store.reading import SqlHistory, SqlRow, SqlRunList, SqlSavedSnapshots
from clew.store.registry import SqlDatasetRegistry, SqlProjectRegistry
from clew.store.state_store import StoreOptions, run_stores
from tests.simulation.engine import SimulatedExecutors
from tests.simulation.kernel import Kernel, Process
from tests.simulation.memory_storage import MemoryFiles, MemoryStorage
from tests.simulation.simulated_store import DatabaseFile, FailingTransactions
from tests.simulation.watching import BUSES, Watch
from tests.store.seals import the_key

QUEUE = QueuePolicy(max_running=3, max_queued=50)
LEASE = LeasePolicy(ttl_s=8.0, poll_s=3.0)
RETRY = RetryPolicy(engine_attempts=3, first_delay_s=0.5, longest_delay_s=5.0)
LIMITS = StoreLimits(outage_patience_s=20.0, continue_steps=3)
DELIVERY = DeliveryPolicy(attempts=8, first_delay_s=0.5, longest_delay_s=20.0, hold_s=10.0, batch=10)
POLL_S = 4.0


class Surroundings(Protocol):
    """What a process finds around it."""

    kernel: Kernel
    file: DatabaseFile
    files: MemoryFiles
    watch: Watch
    queue_policy: QueuePolicy
    outside: Process
    followers: dict[str, RunFollower]

    def store_clock(self) -> datetime:
        """The clock that dates events."""
        ...


class Receiver:
    """A bus whose receiver may refuse, answer late, get things twice, or take them without saying so."""

    def __init__(self, world: Surroundings, name: str) -> None:
        self._world = world
        self._name = name

    def deliver(self, entry: OutboxEntry) -> None:
        """Take the event, or not."""
        kernel = self._world.kernel
        process = kernel.process
        assert process is not None
        kernel.call("bus", f"deliver {entry.event.run_seq} of {entry.run.run_id} to {self._name}")
        if process.is_cut_off("bus") or kernel.strikes("bus refuses"):
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus=self._name, reason="503"))
        if kernel.strikes("bus slow"):
            kernel.sleep(kernel.random.uniform(0.5, 15.0))
        self._arrives(entry)
        if kernel.strikes("bus duplicates"):
            self._arrives(entry)
        kernel.may_crash()
        if kernel.strikes("bus unknown"):
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus=self._name, reason="the connection was cut"))

    def _arrives(self, entry: OutboxEntry) -> None:
        """The receiver has accepted it; those behind it may see it later."""
        world, kernel = self._world, self._world.kernel
        world.watch.arrived(self._name, entry)
        if self._name != "follower":
            return
        delay = kernel.random.uniform(0.5, 20.0) if kernel.strikes("bus delays") else 0.0
        run_id = entry.run.run_id

        def feed() -> None:
            kernel.sleep(delay)
            world.followers.setdefault(run_id, RunFollower(run_id)).feed(entry.event)

        kernel.start(world.outside, f"network {kernel.steps}", feed)


class PlainReads(Database):
    """A database that gives statements in plain SQL to the driver itself, as commands that only read do."""

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of one statement."""
        with self.read() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            found = driver.execute(statement, dict(parameters))
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]


@dataclass(frozen=True)
class LookedAtSnapshots:
    """Saved snapshots; the watch sees what is read of them."""

    inner: SnapshotStore
    watch: Watch

    def load(self, run_id: str) -> RunSnapshot | None:
        """The saved snapshot."""
        found = self.inner.load(run_id)
        if found is not None:
            self.watch.has_read(found)
        return found

    def save(self, snapshot: RunSnapshot) -> None:
        """Save a snapshot."""
        self.inner.save(snapshot)

    def behind(self, limit: int, *, after: str = "") -> tuple[str, ...]:
        """Runs with events that their snapshot does not know."""
        return self.inner.behind(limit, after=after)


class State:
    """The state store as one process has it open."""

    def __init__(self, database: Database, watch: Watch, key: Callable[[], Any] = the_key) -> None:
        options = StoreOptions(owner=Owner(), buses=BUSES, key=key)
        stores = run_stores(database, options)
        self.stores: RunStores = replace(stores, snapshots=LookedAtSnapshots(stores.snapshots, watch))
        self.ledger_writer = Ledger(database, Owner(), key)
        self.datasets = SqlDatasetRegistry(database, "dev", self.ledger_writer)
        self.projects = SqlProjectRegistry(database, "dev", self.ledger_writer)
        self.captures = SqlCaptureStore(database, "dev", self.ledger_writer)
        self.reading = RunReading(SqlHistory(database), SqlRunList(database), SqlSavedSnapshots(database))
        self.secrets = SecretsResolver({})


@dataclass(frozen=True)
class Jobs(CaptureWorker):
    """The worker for what follows runs, without Spark: what a job writes lies in a folder of its own."""

    root: MemoryStorage = field(default_factory=lambda: MemoryStorage(MemoryFiles()))
    kernel: Kernel = field(default_factory=lambda: Kernel(0))

    def settle(self, run_id: str) -> None:
        for record in self._unfrozen(run_id):
            try:
                view = self._view(run_id)
            except UserError:
                drop_waiting(self.environment, self.state, run_id)
                return
            addresses = tuple(artifact.uri for artifact in view.snapshot.artifacts)
            ticket = Ticket(
                run_id=run_id,
                breakpoint=record.breakpoint,
                seq=record.seq,
                plan_digest="",
                parts=addresses,
                skipped=(),
                rows=1,
                estimated_bytes=10,
                frozen_at=None,
            )
            self.state.captures.freeze(
                record.capture_id,
                ticket,
                1,
                lambda _in_flight: Fitting(CaptureMode.STATS, 0, 10, ()),
                waits_for=timedelta(days=1),
            )

    def _done(self, lease: CaptureLease) -> CaptureOutcome:
        record, kernel = lease.record, self.kernel
        kernel.call("engine", f"job {record.capture_id} under {lease.token}")
        name = f"token {lease.token}"
        outcome = CaptureOutcome(job=JobReport(job_id=record.slot, name=name))
        if not self.state.captures.note(lease, outcome):
            raise Overtaken
        kernel.sleep(kernel.random.uniform(0.1, 20.0 if kernel.strikes("engine slow") else 2.0))
        if kernel.strikes("engine fails"):
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus="job", reason="the cluster is gone"))
        self.root.upload(f"{CAPTURES}/{record.capture_id}/{attempt_name()}/rows", [name.encode()])
        return outcome


@dataclass(frozen=True)
class Enlisting:
    """Opens executors, and enlists a job for each run, as `EnlistingExecutors` does from the plan."""

    executors: ExecutorFactory
    captures: SqlCaptureStore

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        self.captures.enlist(
            [
                CaptureRecord(
                    kind="job",
                    slot="job-1",
                    tenant_id=run.request.tenant_id,
                    run_id=run.run_id,
                    request_id=run.request.request_id,
                    breakpoint="end",
                    seq=10,
                )
            ]
        )
        return self.executors.open(run, snapshot)


class Site:
    """What a process of Clew has wired up."""

    def __init__(self, world: Surroundings) -> None:
        kernel = world.kernel
        database = PlainReads(
            FailingTransactions(world.file.transactions, world.file.kept, kernel, world.watch.committed_by),
            now=world.store_clock,
        )
        self.state = State(database, world.watch)
        self.root = MemoryStorage(world.files)
        stores = self.state.stores
        self.queue = RunQueue(stores.intake, lambda _: world.queue_policy)
        engine = SimulatedExecutors(kernel, self.root, self.state.datasets)
        executors = Enlisting(engine, self.state.captures)
        settings = DriverSettings(limits=LIMITS, retry=RETRY)
        self.driver = RunDriver(stores, executors, self.queue, self.state.secrets, settings=settings)
        self.projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=LIMITS)
        self.dispatcher = OutboxDispatcher(
            stores.outbox, stores.writer, {name: Receiver(world, name) for name in BUSES}, policy=DELIVERY
        )
        self.signals = SignalService(stores, self.queue, limits=LIMITS, lease=LEASE)
        self.environment = cast(
            "RunEnvironment",
            SimpleNamespace(
                name="dev", storage_root=self.root, store_limits=lambda: LIMITS, retry_policy=lambda: RETRY
            ),
        )
        self._kernel = kernel

    def worker(self, name: str, *, with_jobs: bool = True) -> Worker:
        jobs = Jobs(
            self.environment,
            cast("Any", self.state),
            cast("Any", lambda: None),
            lease=LEASE,
            root=self.root,
            kernel=self._kernel,
        )
        settings = WorkerSettings(name=name, capacity=2, poll_s=POLL_S, stop_grace_s=20.0, queue=QUEUE, lease=LEASE)
        beside = [jobs.run] if with_jobs else []
        return Worker(self.state.stores, self.driver, self.projector, self.dispatcher, settings=settings, beside=beside)

    def collector(self) -> GarbageCollector:
        loaded = SimpleNamespace(diagnostics=(), workspace=SimpleNamespace(projects=()))
        state = cast("CollectedState", self.state)
        return GarbageCollector(
            cast("PlannedProjects", SimpleNamespace(loaded=loaded)),
            self.environment,
            state,
            others=[ExpiredCaptures(self.environment, state)],
            clock=self.state.stores.reader.now,
        )
