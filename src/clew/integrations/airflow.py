"""An operator for Airflow that runs a project of Clew, by the command `clew` or on a server, and waits for it."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from clew.api.remote import RemoteServer
from clew.definitions.capture_requests import capture_wishes_of_data
from clew.diagnostics import ClewError, TransientFailure
from clew.diagnostics.codes.runs import RUN_HELD
from clew.events.bodies import RunQueued
from clew.events.sentences import sentence
from clew.events.snapshot import RunStatus
from clew.integrations.airflow_server import ClewHook, ClewRunTrigger, cancel_run
from clew.integrations.clew_command import ClewCommand
from clew.integrations.run_documents import (
    RunData,
    error_text,
    failure_text,
    has_failed,
    passed_on,
    request_ids,
    status_of,
)
from clew.plan import Plan

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

RUN_ID_KEY = "run_id"
"""Under which the id of the run is pushed as soon as it is known."""
_LONGEST_ID = 200


class ClewRunLink(BaseOperatorLink):
    """The button of a task that leads to the page of its run."""

    name = "Clew run"

    def get_link(self, operator: object, *, ti_key: object) -> str:  # noqa: ARG002 - as Airflow calls it
        """The address, asked for when a task ends; empty if there is no server with pages."""
        return getattr(operator, "run_address", "")


class ClewRunOperator(BaseOperator):
    """Runs a project for a period.

    With `clew_conn_id` the run is requested from a server, and a worker of Clew does the work. With `workspace` the
    command `clew` of this machine does it. A task that Airflow repeats finds the run that it has started before, unless
    that failed; one that is cleared starts another. Returns the run's id, status, rows and outputs.
    """

    template_fields: Sequence[str] = ("project", "period", "workspace", "environment", "captures", "request_id")
    operator_extra_links = (ClewRunLink(),)
    ui_color = "#d9e8e3"

    def __init__(
        self,
        *,
        project: str,
        period: str,
        clew_conn_id: str | None = None,
        workspace: str | None = None,
        environment: str | None = None,
        captures: Sequence[str] = (),
        request_id: str | None = None,
        command: Sequence[str] = ("clew",),
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10.0,
        patience: float = 600.0,
        openlineage_namespace: str | None = None,
        **settings: Any,  # noqa: ANN401 - those that all operators have
    ) -> None:
        super().__init__(**settings)
        if (clew_conn_id is None) == (workspace is None):
            raise ValueError(f"{self.task_id}: give either clew_conn_id, for a server, or workspace, for the command")
        if clew_conn_id is not None and environment is not None:
            raise ValueError(f"{self.task_id}: a server has one environment; environment goes with workspace")
        self.project = project
        self.period = period
        self.clew_conn_id = clew_conn_id
        self.workspace = workspace
        self.environment = environment
        self.captures = captures
        self.request_id = request_id
        self.command = command
        self.deferrable = deferrable
        """Only runs on a server are deferred: the command has to stay where it was started."""
        self.poll_interval = poll_interval
        self.patience = patience
        """For how many seconds the server may be out of reach."""
        self.openlineage_namespace = openlineage_namespace
        self._command: ClewCommand | None = None
        self._run: RunData | None = None
        self.run_address = ""
        """Where the page of the run is, once there is a run on a server."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the project. Raises AirflowException with Clew's message if it has no result."""
        base = self.request_id or _request_id(context["ti"], self.retries or 0)
        try:
            if self.clew_conn_id is None:
                return self._finish(context, self._run_here(base))
            server = self._server()
            run = self._submit(server, base)
            self._keep(context, run, server)
            if status_of(run).is_terminal:
                return self._finish(context, run)
            if self.deferrable:
                trigger = ClewRunTrigger(self.clew_conn_id, run["run_id"], self.poll_interval, self.patience)
                self.defer(trigger=trigger, method_name=self.execute_complete.__name__, timeout=self.execution_timeout)
            self._follow(server, run["run_id"])
            return self._finish(context, server.run(run["run_id"]))
        except ClewError as error:
            raise _as_airflows(error) from error

    def execute_complete(self, context: Context, event: Mapping[str, str]) -> dict[str, Any]:
        """What follows when the trigger has fired."""
        if "problem" in event:
            raise AirflowException(event["problem"])
        try:
            server = self._server()
            run = server.run(event["run_id"])
            self._keep(context, run, server)
            return self._finish(context, run)
        except ClewError as error:
            raise _as_airflows(error) from error

    def on_kill(self) -> None:
        """Cancel the run cleanly."""
        if self._command is not None:
            self._command.cancel()
        elif self._run is not None and not status_of(self._run).is_terminal:
            cancel_run(self._server(), self._run["run_id"])

    def _server(self) -> RemoteServer:
        return ClewHook(self.clew_conn_id or ClewHook.default_conn_name).get_conn()

    def _submit(self, server: RemoteServer, base: str) -> RunData:
        wishes = capture_wishes_of_data(list(self.captures), "captures")
        for request_id in request_ids(base):
            run = server.submit(self.project, self.period, request_id, wishes)
            if not has_failed(run) or self.request_id is not None:
                break
            self.log.info("run %s has failed before; another one is requested", run["run_id"])
        return run

    def _run_here(self, base: str) -> RunData:
        begun = time.time()
        self._command = ClewCommand(tuple(self.command), self.workspace, self.environment)
        for request_id in request_ids(base):
            run = self._answered(self._command, request_id)
            if not has_failed(run) or self.request_id is not None or _ended_after(run, begun):
                break
            self.log.info("run %s has failed before; another one is requested", run["run_id"])
        return run

    def _answered(self, command: ClewCommand, request_id: str) -> RunData:
        """A run that has ended. If another process has it, as after a crash of Airflow, this waits for that."""
        while True:
            try:
                return command.run(self.project, self.period, request_id, self.captures)
            except ClewError as error:
                if error.code != RUN_HELD.name:
                    raise
                self.log.info("%s; asking again in %g s", error_text(error), self.poll_interval)
                time.sleep(self.poll_interval)

    def _follow(self, server: RemoteServer, run_id: str) -> None:
        """Log the events of a run until it has ended, across times in which the server cannot be reached."""
        seen = 0
        while True:
            try:
                for event in server.events(run_id, seen):
                    seen = event.run_seq
                    self.log.info("%s %s %s", event.body.NAME, event.step_id, sentence(event.body))
            except TransientFailure as error:
                self.log.warning("%s", error_text(error))
                self._wait_for(server, run_id)
            else:
                return

    def _wait_for(self, server: RemoteServer, run_id: str) -> None:
        until = time.monotonic() + self.patience
        while True:
            try:
                server.run(run_id)
            except TransientFailure:
                if time.monotonic() > until:
                    raise
                time.sleep(min(self.poll_interval, max(0.0, until - time.monotonic())))
            else:
                return

    def _keep(self, context: Context, run: RunData, server: RemoteServer | None) -> None:
        self._run = run
        context["ti"].xcom_push(RUN_ID_KEY, run["run_id"])
        if server is not None:
            self.run_address = f"{server.url}/runs/{run['run_id']}"
            context["ti"].xcom_push(ClewRunLink().xcom_key, self.run_address)

    def _finish(self, context: Context, run: RunData) -> dict[str, Any]:
        self._keep(context, run, None)
        match status_of(run):
            case RunStatus.COMPLETED:
                self.log.info("run %s is COMPLETED", run["run_id"])
                return passed_on(run)
            case RunStatus.CANCELLED:
                # Someone wanted it to end: another try would be against their will.
                raise AirflowFailException(failure_text(run))
            case _:
                raise AirflowException(failure_text(run))

    # OpenLineage: called by Airflow's provider, where that is installed.

    def get_openlineage_facets_on_start(self) -> "OperatorLineage":
        """What the project's file says that it reads and writes, if the operator names their namespace."""
        from clew.integrations.airflow_lineage import lineage_before  # noqa: PLC0415 - needs the provider

        namespace = self.openlineage_namespace
        if namespace is None:
            # Which namespace the datasets are in is known once there is a run.
            return lineage_before(None, "", self._tags())
        plan = self._server().project_plan(self.project) if self.clew_conn_id else self._here().plan(self.project)
        return lineage_before(plan, namespace, self._tags())

    def get_openlineage_facets_on_complete(self, task_instance: object) -> "OperatorLineage":  # noqa: ARG002
        """What the run has read and written, by its plan."""
        from clew.integrations.airflow_lineage import ToldRun, lineage_after, lineage_before  # noqa: PLC0415

        if self._run is None:
            return lineage_before(None, "", self._tags())
        run, (request, plan) = self._run, self._told(self._run["run_id"])
        namespace = self.openlineage_namespace or f"clew://{request.tenant_id}/{request.environment_id}"
        return lineage_after(ToldRun(namespace, plan, run), self._tags())

    def get_openlineage_facets_on_failure(self, task_instance: object) -> "OperatorLineage":
        """The same for a run that failed: what it has written until then."""
        return self.get_openlineage_facets_on_complete(task_instance)

    def _told(self, run_id: str) -> tuple[RunQueued, Plan | None]:
        """The request of a run and its plan; no plan if the command can only give that of a changed file."""
        if self.clew_conn_id is not None:
            server = self._server()
            first = next(iter(server.events(run_id))).body
            assert isinstance(first, RunQueued)  # noqa: S101 - a run begins with its request
            return first, server.plan(run_id)
        here = self._here()
        request, plan = here.request_of(run_id), here.plan(self.project)
        return request, plan if plan.digest == request.plan.digest else None

    def _here(self) -> ClewCommand:
        return ClewCommand(tuple(self.command), self.workspace, self.environment)

    def _tags(self) -> dict[str, str]:
        return {"clew.project": self.project, "clew.period": self.period}


def _request_id(task: Any, retries: int) -> str:  # noqa: ANN401 - Airflow has no public type for it
    """The same for all tries of a task between two times that someone clears it.

    Clearing raises the number of tries that a task may have by those that it had before.
    """
    cleared = max(0, task.max_tries - retries)
    which = "" if task.map_index in {None, -1} else f"[{task.map_index}]"
    again = f"/cleared-{cleared}" if cleared else ""
    full = f"airflow/{task.dag_id}/{task.run_id}/{task.task_id}{which}{again}"
    return full if len(full) <= _LONGEST_ID else f"airflow/{hashlib.sha256(full.encode()).hexdigest()}"


def _ended_after(run: RunData, moment: float) -> bool:
    """Whether a run has ended since a moment on the clock of this machine."""
    ended = run.get("completed_at")
    return ended is not None and datetime.fromisoformat(ended).timestamp() >= moment


def _as_airflows(error: ClewError) -> AirflowException:
    """An error of Clew as Airflow knows it: one that another try cannot change fails the task at once."""
    kind = AirflowException if isinstance(error, TransientFailure) else AirflowFailException
    return kind(error_text(error))
