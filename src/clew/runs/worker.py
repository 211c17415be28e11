"""A worker: takes runs from the queue, drives them, keeps snapshots current and delivers the outbox.

It keeps no state: everything it knows is in the store.
"""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import FrameType
from typing import Protocol

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.events.snapshot import RunStatus
from clew.runs.active_run import ActiveRun, Heartbeat
from clew.runs.driver import RunDriver, StartStatus
from clew.runs.executor import Interruption
from clew.runs.leases import Claim, Wait, WaitReason
from clew.runs.limits import LeasePolicy, QueuePolicy
from clew.runs.projector import Projector
from clew.runs.stores import LeaseStore, RunStores


@dataclass(frozen=True, slots=True)
class StartReport:
    """The outcome of one run."""

    run_id: str
    status: StartStatus


class RunQueueReconciler:
    """May be called at any time, by any number of workers: a run is leased before it is started."""

    def __init__(
        self,
        leases: LeaseStore,
        driver: RunDriver,
        *,
        environment_id: str,
        owner: str,
        queue: QueuePolicy,
        lease: LeasePolicy,
    ) -> None:
        self._leases = leases
        self._driver = driver
        self._environment_id = environment_id
        self._owner = owner
        self._queue = queue
        self._lease = lease

    def dequeue_and_start(self, launch: Callable[[ActiveRun], None], *, limit: int = 1) -> tuple[StartReport, ...]:
        """Start up to `limit` runs that wait, by giving them to `launch`."""
        reports: list[StartReport] = []
        while len(reports) < limit:
            claim = self._leases.claim(
                self._environment_id,
                owner=self._owner,
                ttl_s=self._lease.ttl_s,
                max_running=self._queue.max_running,
            )
            if claim is None:
                break
            begun = self._driver.begin(claim)
            if begun.active is not None:
                launch(begun.active)
            reports.append(StartReport(claim.run.run_id, begun.status))
        return tuple(reports)


_log = logging.getLogger(__name__)


def worker_name() -> str:
    """A name that shows operators where a worker runs."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works."""

    environment_id: str = "dev"
    name: str = field(default_factory=worker_name)
    capacity: int = 4
    """How many runs it drives at once."""
    poll_s: float = 0.5
    stop_grace_s: float = 30.0
    """How long a stopping worker lets running steps continue before it interrupts them."""
    queue: QueuePolicy = field(default_factory=QueuePolicy)
    lease: LeasePolicy = field(default_factory=LeasePolicy)


class Dispatcher(Protocol):
    """Delivers events to the event buses until stopped."""

    def run(self, stop: threading.Event) -> None:
        """Work until the event is set."""
        ...


class Worker:
    """One process. It may die at any moment: another worker continues from the store."""

    def __init__(
        self,
        stores: RunStores,
        driver: RunDriver,
        projector: Projector,
        dispatcher: Dispatcher,
        *,
        settings: WorkerSettings | None = None,
        beside: Sequence[Callable[[threading.Event], None]] = (),
    ) -> None:
        """`beside` runs in threads beside the runs, until the event is set."""
        self._settings = settings or WorkerSettings()
        self._stores = stores
        self._driver = driver
        self._projector = projector
        self._dispatcher = dispatcher
        self._beside = beside
        self._heartbeat = Heartbeat(stores.leases, stores.reader, self._settings.lease)
        self._reconciler = RunQueueReconciler(
            stores.leases,
            driver,
            environment_id=self._settings.environment_id,
            owner=self._settings.name,
            queue=self._settings.queue,
            lease=self._settings.lease,
        )
        self._lock = threading.Lock()
        self._threads: dict[ActiveRun, threading.Thread] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop, then end cleanly: runs are returned to the queue at their next step."""
        self._stop = stop
        with self._background():
            while not stop.is_set():
                if not self._tick():
                    self._wake.wait(self._settings.poll_s)
                self._wake.clear()
            self._wind_down()

    def run_one(
        self, run_id: str, stop: threading.Event, on_wait: Callable[[Wait], None] = lambda _wait: None
    ) -> RunStatus | None:
        """Drive a specific run to its end in this thread; None if another worker has it.

        While the environment has no free place, or the start time has not come, the run waits, and `on_wait` is told
        why. A run that another worker takes in the meantime is waited for.
        """
        with self._background():
            claim = self._turn_of(run_id, stop, on_wait)
            if claim is None:
                return None
            if isinstance(claim, RunStatus):
                return claim
            begun = self._driver.begin(claim)
            if begun.active is None:
                return self._stores.catalog.run(run_id).status
            return self._driver.drive(begun.active, self._heartbeat, stop)

    def _turn_of(self, run_id: str, stop: threading.Event, on_wait: Callable[[Wait], None]) -> Claim | RunStatus | None:
        """The run once it may be driven here; its status where it ends or rests before; None if a worker has it."""
        told: Wait | None = None
        while True:
            found = self._claim_run(run_id, told)
            if isinstance(found, Claim):
                return found
            if found.reason is WaitReason.HELD and told is None:
                return None
            status = self._stores.catalog.run(run_id).status
            if status.is_terminal or found.reason is WaitReason.PERIOD_BUSY or stop.is_set():
                return status
            if told is None or told.reason is not found.reason:
                on_wait(found)
            told = found
            stop.wait(self._settings.poll_s)

    def _claim_run(self, run_id: str, so_far: Wait | None) -> Claim | Wait:
        """One look. A store that is away for a moment does not end a wait that has begun."""
        settings = self._settings
        try:
            return self._stores.leases.claim_run(
                run_id, owner=settings.name, ttl_s=settings.lease.ttl_s, max_running=settings.queue.max_running
            )
        except TransientFailure as away:
            if so_far is None:
                raise
            _log.warning("waiting for the state store: %s", away)
            return so_far

    def tick(self) -> tuple[StartReport, ...]:
        """One round: start runs that may start."""
        free = self._settings.capacity - len(self._threads)
        return self._reconciler.dequeue_and_start(self._launch, limit=free) if free > 0 else ()

    def _tick(self) -> bool:
        """Whether there may be more to do at once. Not while the store is unavailable."""
        try:
            return bool(self.tick())
        except TransientFailure as away:
            _log.warning("waiting for the state store: %s", away)
        except ClewError:
            _log.exception("a round of the worker failed")
        return False

    def _launch(self, active: ActiveRun) -> None:
        thread = threading.Thread(target=self._drive, args=(active,), name=f"run {active.live.run.run_id}")
        with self._lock:
            self._threads[active] = thread
        thread.start()

    def _drive(self, active: ActiveRun) -> None:
        try:
            self._driver.drive(active, self._heartbeat, self._stop)
        finally:
            with self._lock:
                del self._threads[active]
            self._wake.set()

    @contextmanager
    def _background(self) -> Iterator[None]:
        """The threads that go beside the runs, ended when the runs have ended."""
        done = threading.Event()
        threads = [
            threading.Thread(target=self._heartbeat.run, args=(done,), name="heartbeat"),
            threading.Thread(target=self._dispatcher.run, args=(done,), name="outbox"),
            threading.Thread(target=self._projector.run, args=(done,), name="projector"),
            *(threading.Thread(target=each, args=(done,), name="beside runs") for each in self._beside),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.set()
            for thread in threads:
                thread.join()

    def _wind_down(self) -> None:
        """Let running steps finish for a while, then interrupt them."""
        with self._lock:
            left = dict(self._threads)
        deadline = time.monotonic() + self._settings.stop_grace_s
        for thread in left.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        for active, thread in left.items():
            active.cancel.cancel(Interruption.STOPPING)
            thread.join()


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, for the main thread of a worker's process."""
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
