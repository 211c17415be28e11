"""Fake engines and whole workers for tests. Importable from other processes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clew.bus import EventBus
from clew.bus.dispatcher import OutboxDispatcher
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import ArtifactRef, PlannedStep
from clew.runs.active_run import Heartbeat
from clew.runs.clock import Clock, utc_now
from clew.runs.driver import DriverSettings, RunDriver
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import DeliveryPolicy, LeasePolicy, QueuePolicy, RetryPolicy, StoreLimits
from clew.runs.projector import Projector
from clew.runs.request import RunRecord
from clew.runs.secrets import EnvironmentSecrets, SecretsResolver
from clew.runs.signal_service import SignalService
from clew.runs.stores import RunStores
from clew.runs.submission import RunQueue, Submission
from clew.runs.worker import Worker, WorkerSettings
from tests.runs.runs_histories import request, steps

Behaviour = Callable[[Sequence[StepAttempt], StepContext], Sequence[StepOutput]]

QUICK_RETRY = RetryPolicy(first_delay_s=0.0, longest_delay_s=0.0)
MANY = QueuePolicy(max_running=100, max_queued=10_000)


def succeed(attempts: Sequence[StepAttempt], _context: StepContext) -> list[StepOutput]:
    return [
        StepOutput.success(ArtifactRef(f"file:///{a.step.step_id}.{a.engine_attempt_id}", "trace"), rows_updated=1)
        for a in attempts
    ]


@dataclass
class FakeExecutor:
    """Does what it is told, and remembers what it was asked."""

    steps: Sequence[PlannedStep]
    behaviour: Behaviour = succeed
    fuse: int = 1
    engine_run_ref: Mapping[str, object] | None = None
    attempts: list[tuple[StepAttempt, ...]] = field(default_factory=list)
    closed: bool = False

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        return min(self.fuse, len(remaining))

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        self.attempts.append(tuple(attempts))
        return self.behaviour(attempts, context)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeExecutors:
    """Opens the same kind of executor for every run."""

    count: int = 3
    behaviour: Behaviour = succeed
    fuse: int = 1
    opened: list[FakeExecutor] = field(default_factory=list)

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> FakeExecutor:
        executor = FakeExecutor(steps(self.count), self.behaviour, self.fuse, {"run": run.run_id})
        self.opened.append(executor)
        return executor

    @property
    def attempts(self) -> list[tuple[str, ...]]:
        """The groups of step ids that were executed, in order."""
        return [tuple(a.step.step_id for a in group) for executor in self.opened for group in executor.attempts]


class SetClock:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Site:
    """Everything of one deployment, wired as an application would."""

    stores: RunStores
    executors: FakeExecutors
    policy: QueuePolicy = MANY
    limits: StoreLimits = field(default_factory=StoreLimits)
    retry: RetryPolicy = QUICK_RETRY
    lease: LeasePolicy = field(default_factory=lambda: LeasePolicy(poll_s=0.02))
    delivery: DeliveryPolicy = field(default_factory=DeliveryPolicy)
    buses: Mapping[str, EventBus] = field(default_factory=dict)
    clock: Clock = utc_now
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = iter(f"run-{number}" for number in range(1, 10_000))
        self.queue = RunQueue(self.stores.intake, lambda _: self.policy, clock=self.clock, new_id=lambda: next(names))
        self.secrets = SecretsResolver({"env": EnvironmentSecrets(self.variables)})
        self.driver = RunDriver(
            self.stores,
            self.executors,
            self.queue,
            self.secrets,
            settings=DriverSettings(limits=self.limits, retry=self.retry),
            clock=self.clock,
        )
        self.projector = Projector(
            self.stores.reader, self.stores.writer, self.stores.snapshots, limits=self.limits, clock=self.clock
        )
        self.signals = SignalService(self.stores, self.queue, limits=self.limits, clock=self.clock)
        self.dispatcher = OutboxDispatcher(
            self.stores.outbox, self.stores.writer, self.buses, policy=self.delivery, clock=self.clock
        )
        self.heartbeat = Heartbeat(self.stores.leases, self.stores.reader, self.lease)

    def worker(self, name: str = "w1", capacity: int = 4) -> Worker:
        settings = WorkerSettings(
            name=name, capacity=capacity, poll_s=0.02, stop_grace_s=20, queue=self.policy, lease=self.lease
        )
        return Worker(self.stores, self.driver, self.projector, self.dispatcher, settings=settings)

    def submit(self, request_id: str = "r-1", **changes: object) -> Submission:
        return self.queue.submit(request(**{"request_id": request_id, "period": request_id, **changes}))

    def drive(self, run_id: str = "run-1") -> RunStatus | None:
        """Drive one run in this thread until it ends or rests."""
        return self.worker().run_one(run_id, threading.Event())

    def types(self, run_id: str = "run-1") -> list[str]:
        return [event.event_type for event in self.stores.reader.events(run_id)]

    def snapshot(self, run_id: str = "run-1") -> RunSnapshot:
        return self.projector.look(run_id).snapshot


class FileLog:
    """Lines in a file that several processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: str) -> None:
        with self.path.open("a") as stream:
            stream.write(line + "\n")

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []
