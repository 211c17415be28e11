"""Starting runs: from a project and a period to a run that is driven to its end."""

import getpass
import threading
import uuid
from dataclasses import dataclass

from clew.app.running.engine import DRAFT, SparkExecutors, period_of
from clew.app.running.environment import RunEnvironment
from clew.app.running.plans import keep_plan
from clew.app.running.projects import plan_to_run
from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.plan import Plan
from clew.runs.driver import DriverSettings, RunDriver
from clew.runs.outbox import OutboxDispatcher
from clew.runs.plan_ref import PlanRef
from clew.runs.projector import Projector
from clew.runs.request import RunRecord, RunRequest
from clew.runs.run_queue import RunQueue
from clew.runs.status import RunStatus
from clew.runs.worker import Worker, WorkerSettings
from clew.spark.session import SessionSettings, spark_session
from clew.spark.types import SparkSession


@dataclass(frozen=True, slots=True)
class RunStarter:
    """Asks for runs, and drives them."""

    workspace: Workspace
    environment: RunEnvironment
    state: State

    def submit(self, project: str, period: str, request_id: str | None = None) -> RunRecord:
        """Ask for a run of a project for a period. The same request id gives the same run."""
        period_of(self.workspace.loaded.workspace, period)
        version, plan = plan_to_run(self.workspace, self.state, project)
        keep_plan(self.environment.storage_root, plan)
        request = RunRequest(
            project_id=plan.name,
            plan=PlanRef(plan.name, plan.digest[:16], plan.digest),
            period=period,
            request_id=request_id or str(uuid.uuid4()),
            environment_id=self.environment.name,
            tenant_id=self.environment.settings.tenant,
            project_version=DRAFT if version is None else str(version),
            requested_by=actor_name(),
        )
        submission = self.queue().submit(request)
        submission.raise_if_rejected()
        return submission.run

    def drive(self, run_id: str, stop: threading.Event) -> RunStatus | None:
        """Drive a run to its end in this thread, or until told to stop; None where a worker has it."""
        return self.worker().run_one(run_id, stop)

    def queue(self) -> RunQueue:
        """The queue of the environment."""
        return RunQueue(self.state.stores.intake, lambda _environment: self.environment.queue_policy())

    def worker(self) -> Worker:
        """A worker for the environment, in this process."""
        stores = self.state.stores
        executors = SparkExecutors(
            self.workspace.loaded.workspace,
            self.environment,
            self.state.datasets,
            self.state.secrets,
            self.session,
        )
        limits = self.environment.store_limits()
        driver = RunDriver(
            stores,
            executors,
            self.queue(),
            self.state.secrets,
            settings=DriverSettings(limits=limits, retry=self.environment.retry_policy()),
        )
        dispatcher = OutboxDispatcher(
            stores.outbox,
            stores.writer,
            self.environment.sinks(self.state.secrets),
            redactor=self.state.secrets.redactor,
        )
        settings = WorkerSettings(
            environment_id=self.environment.name, capacity=1, queue=self.environment.queue_policy()
        )
        projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=limits)
        return Worker(stores, driver, projector, dispatcher, settings=settings)

    def session(self) -> SparkSession:
        """The Spark session of this process, started by whoever asks first."""
        spark = self.environment.settings.spark
        config = {key: str(value) for key, value in spark.config.items()}
        jars = tuple(str(self.environment.root / jar) for jar in spark.jars)
        return spark_session(SessionSettings(master=spark.master, config=config, jars=jars))


def actor_name() -> str:
    """Who is at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def work(starter: RunStarter, stop: threading.Event) -> None:
    """Take runs from the queue until told to stop."""
    starter.worker().run(stop)


def plan_of(starter: RunStarter, project: str) -> Plan:
    """The plan that a run of a project would execute now."""
    return plan_to_run(starter.workspace, starter.state, project)[1]
