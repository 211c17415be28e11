"""The workspace: what `clew.open` returns, and the one entry point to everything that Clew can do with it.

Commands, the server and programs call its methods and those of the runs and captures that it returns.
"""

# ruff: noqa: PLC0415 - runs need databases and Spark, which a check should not load

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from clew.api.workspace_files import Captures, FilesSource, LiveFiles, WorkspaceFiles, capture_wishes
from clew.definitions import Environment, LoadedWorkspace, find_workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager
    from datetime import datetime
    from types import TracebackType

    from clew.api.asking import Question
    from clew.api.capture import Capture
    from clew.api.checking import Check, Conflicts
    from clew.api.contracts import WrittenDataset
    from clew.api.data_check import DataCheck
    from clew.api.datasets import Datasets
    from clew.api.dry_run import DryRun
    from clew.api.fluent import ProjectBuilder
    from clew.api.node_ids import Nodes
    from clew.api.opened_environment import EnvironmentAccess, Principal
    from clew.api.operations import Garbage, Operations, RemovalRecord
    from clew.api.overview import Overview
    from clew.api.pack_verification import PackVerification
    from clew.api.projects import Projects
    from clew.api.run import Run
    from clew.api.searching import Found
    from clew.api.single_sign_on import SingleSignOn
    from clew.api.tokens import Tokens
    from clew.api.trace_ids import Tracing
    from clew.api.verification import Verification
    from clew.api.window_expansion import Expanded
    from clew.api.working import Listening, WorkerListener
    from clew.auth.gathered_reads import GatheredReads
    from clew.definitions.openid_settings import OpenIdSettings
    from clew.definitions.settings import QuestionSettings
    from clew.engine.types import SparkSession
    from clew.plan import Plan
    from clew.runs.environment import RunEnvironment
    from clew.scenarios.testing import ScenarioTests, TestedOn, TestReport
    from clew.tracelink import CollectorCounts, Expansion, Lineage


def open_workspace(path: str | Path = ".", environment: str | None = None) -> "Workspace":
    """The workspace that a folder belongs to: the nearest clew.yaml, in the folder itself or above it.

    Files are read on first use.
    """
    return Workspace(find_workspace(Path(path).absolute()), environment)


class Workspace:
    """A workspace in one of its environments, with its files as they are on first use.

    Each call opens the state store and closes it again. In a `with` statement, the workspace opens it once and keeps it
    open until the end, together with the most recently used traces and plans.
    """

    def __init__(self, root: Path, environment: str | None = None) -> None:
        self._source: FilesSource = WorkspaceFiles(root, environment)
        self._principal: Principal | None = None

    def __repr__(self) -> str:
        return f"<Workspace {self.root}>"

    def __enter__(self) -> Self:
        self._access.keep_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        self._access.close()

    @cached_property
    def _access(self) -> "EnvironmentAccess":
        from clew.api.opened_environment import EnvironmentAccess

        return EnvironmentAccess(self._source)

    def following_files(self) -> "Workspace":
        """The workspace for a long-running process: edited files are read again within a second.

        It keeps its environment, even if the default in clew.yaml changes.
        """
        other = Workspace(self.root)
        other._source = LiveFiles(self.root, self.environment_name)
        return other

    def acting_as(self, principal: "Principal") -> "Workspace":
        """The same workspace, and the same open state store, for another person or program.

        They cannot see runs of other tenants; what belongs to the workspace is refused to other tenants.
        """
        other = Workspace(self.root)
        other._source, other._principal = self._source, principal
        other._access = self._access.acting_as(principal)
        return other

    def gathering_reads(self, reads: "GatheredReads") -> "Workspace":
        """The same workspace for the same principal. Which rows they read is noted, for `record_reads` to record."""
        other = Workspace(self.root)
        other._source, other._principal = self._source, self._principal
        other._access = self._access.acting_as(self.principal, reads=reads)
        return other

    def record_reads(self, reads: "GatheredReads") -> None:
        """Record which rows were asked for and returned. Call it before they are given to anyone."""
        from clew.api.reads import record_gathered

        record_gathered(self._access, reads)

    @property
    def principal(self) -> "Principal":
        """Who uses the workspace; by default the user of this process."""
        return self._access.principal

    @property
    def sees_values(self) -> bool:
        """Whether the principal may see values of rows at all; messages of failures may quote them."""
        with self._access.opened() as at:
            return at.policy.sees_clearly(None)

    # Files

    @property
    def root(self) -> Path:
        """The folder of clew.yaml."""
        return self._source.root

    @property
    def files(self) -> WorkspaceFiles:
        """The files with their definitions. Raises UserError Forbidden if the workspace belongs to another tenant."""
        if self._principal is not None:
            self._access.require_own_tenant()
        return self._source.current()

    @property
    def loaded(self) -> LoadedWorkspace:
        """The definitions of all files, with their errors."""
        return self.files.loaded

    @property
    def name(self) -> str:
        """The name in clew.yaml."""
        return self._source.current().name

    @property
    def environment_name(self) -> str:
        """The requested environment, or the default of the workspace."""
        return self._source.current().environment_name

    @property
    def is_default_environment(self) -> bool:
        """Whether this is the default environment."""
        files = self._source.current()
        return files.environment_name == files.settings.usual_environment

    @property
    def environment(self) -> Environment:
        """The settings of the environment. Raises UserError if clew.yaml does not define it."""
        return self._source.current().environment

    @property
    def run_environment(self) -> "RunEnvironment":
        """The environment as runs use it: paths, addresses, policies."""
        return self._source.current().run_environment

    @property
    def tenant(self) -> str:
        """The tenant that owns the workspace."""
        return self._access.environment.settings.tenant

    def require_environment(self) -> None:
        """Raise UserError if the requested environment does not exist. A missing default is left to the check."""
        self._source.current().require_environment()

    def check(self, project: str | None = None) -> "Check":
        """All errors in the workspace, or in what concerns one project.

        If the environment has a state store, projects are compared with the versions of datasets in it.
        """
        return self.files.check(project)

    def conflicts(self, plan: "Plan") -> "Conflicts":
        """How versions of datasets and active projects conflict with the plan of a project of this workspace."""
        return self.files.conflicts(plan)

    def plan(self, project: "str | ProjectBuilder", parameters: Mapping[str, object] | None = None) -> "Plan":
        """The plan of a project by id or name, or of one written in Python. Raises UserError with all errors.

        With `parameters`, the plan has those values in place, and defaults for the others.
        """
        from clew.api.projects import plan_of_files
        from clew.plan.binding import bound

        plan = plan_of_files(self.files, project) if isinstance(project, str) else self.files.plan_of(project.build())
        return plan if parameters is None else bound(plan, parameters, None)

    def source_of(self, file: str) -> str | None:
        """The text of a workspace file, for excerpts in messages."""
        return self.files.source_of(file)

    @property
    def projects(self) -> "Projects":
        """Its projects, with the version of each that runs."""
        from clew.api.projects import Projects

        return Projects(self._access)

    @property
    def datasets(self) -> "Datasets":
        """The datasets that files declare or runs registered."""
        from clew.api.datasets import Datasets

        return Datasets(self._access)

    def overview(
        self,
        *,
        level: str | None = None,
        until: str | None = None,
        periods: int = 12,
        project: str | None = None,
    ) -> "Overview":
        """Where each project stands in each period: which run counts, whether it is current, and what it proves.

        The periods are those of one level, the last one `until`; by default the level and the period of the newest
        results. It opens no trace. What was not looked at is said.
        """
        from clew.api.overview import OverviewQuestion, overview_of

        with self._access.opened() as at:
            return overview_of(at, OverviewQuestion(level=level, until=until, periods=periods, project=project))

    def search(self, text: str) -> "Found":
        """Everything that has this name or value: projects, datasets, columns, periods, runs, trace ids and rows.

        Rows are found in the newest results that count, by exactly this value. The answer says what was not looked at.
        """
        from clew.api.run import Run
        from clew.api.searching import search

        with self._access.opened() as at:
            limits = self._access.environment.question_limits()
            return search(at, text, lambda record: Run(record, self._access).open_trace(), limits)

    # Runs

    def submit(
        self,
        project: "str | ProjectBuilder",
        period: str,
        *,
        request_id: str | None = None,
        captures: Captures = (),
        parameters: Mapping[str, object] | None = None,
        with_current_definitions: bool = False,
        as_of: "str | datetime | None" = None,
    ) -> "Run":
        """Request a run of a project for a period, and leave it to `Run.drive` or a worker.

        The same request id returns the same run. A project written in Python runs as a draft, in the sandbox.
        `with_current_definitions` activates the files of an active project first, if they have changed. `as_of` is a
        time: the run has the version of the project and the data that were known then, and writes to the sandbox.
        """
        from clew.api.run import Run
        from clew.api.starting import starter_of
        from clew.auth.roles import Permission

        wishes = capture_wishes(captures)
        with self._access.opened() as at:
            at.principal.require(Permission.START_RUNS)
            starter = starter_of(at)
            if as_of is not None:
                from clew.api.going_back import request_as_of

                if with_current_definitions:
                    raise UserError(WRONG_USAGE.anywhere(problem="a run as of a time has the definitions of then"))
                record = request_as_of(
                    at,
                    project,
                    period,
                    as_of,
                    request_id=request_id,
                    captures=wishes,
                    parameters=parameters or {},
                )
            elif isinstance(project, str):
                activating = at.principal if with_current_definitions else None
                record = starter.submit(project, period, request_id, wishes, parameters, activating=activating)
            else:
                record = starter.submit_plan(
                    self.plan(project), period, request_id=request_id, captures=wishes, parameters=parameters
                )
        return Run(record, self._access)

    def run(
        self,
        project: "str | ProjectBuilder",
        period: str,
        *,
        request_id: str | None = None,
        captures: Captures = (),
        parameters: Mapping[str, object] | None = None,
        with_current_definitions: bool = False,
        as_of: "str | datetime | None" = None,
    ) -> "Run":
        """Run a project for a period and wait for it. A project written in Python runs as a draft, in the sandbox.

        `captures` lists breakpoints where rows are captured: "NAME", "NAME=MODE", or mappings with the keys of a
        captures file; `parameters` has values of the project's parameters; `with_current_definitions` activates the
        files of an active project first, if they have changed. `as_of` is a time: the run has the version of the
        project and the data that were known then, and writes to the sandbox. A failed run is returned too, with its
        error. Ctrl-C cancels it cleanly.
        """
        with self:
            run = self.submit(
                project,
                period,
                request_id=request_id,
                captures=captures,
                parameters=parameters,
                with_current_definitions=with_current_definitions,
                as_of=as_of,
            )
            if not self.find_run(run.id).record.status.is_terminal:
                run.drive(gives_way=request_id is None)
            run.take_captures()
            return run.refreshed()

    def dry_run(
        self,
        project: str,
        period: str,
        *,
        captures: Captures = (),
        parameters: Mapping[str, object] | None = None,
    ) -> "DryRun":
        """Do what a run does before its first step, and keep nothing. Raises UserError if the run would fail there."""
        from clew.api.dry_run import dry_run

        return dry_run(self.files, project, period, capture_wishes(captures), parameters or {})

    def export_contract(self, dataset: str) -> str:
        """A dataset of the workspace as a contract of the Open Data Contract Standard, in YAML."""
        from clew.api.contracts import exported_contract

        return exported_contract(self.files, dataset)

    def import_contract(self, contract: Path, *, replace: bool = False) -> "tuple[WrittenDataset, ...]":
        """Write the datasets of a contract of the Open Data Contract Standard into the workspace.

        Raises UserError, and writes nothing, if one of them would be wrong, or is defined and must not be replaced.
        """
        from clew.api.contracts import import_contract

        return import_contract(self.files, contract, replace=replace)

    def check_data(self, dataset: str, period: str) -> "DataCheck":
        """What the checks of a dataset find in its data for a period, without a run.

        Raises UserError if the data cannot be loaded.
        """
        from clew.api.data_check import check_data

        return check_data(self.files, dataset, period)

    def runs(
        self, *, project: str | None = None, period: str | None = None, status: str | None = None, limit: int = 50
    ) -> "list[Run]":
        """Runs of the environment, newest first, with everything known about them."""
        with self:
            found = self.find_runs(project=project, period=period, status=status, limit=limit)
            return [run.refreshed() for run in found]

    def get_run(self, run_id: str) -> "Run":
        """A run by its id or first characters, with everything known about it. Raises UserError RunNotFound."""
        from clew.api.run import Run

        with self._access.opened() as at:
            view = at.runs.view(run_id)
        return Run(view.record, self._access, view)

    def find_runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        status: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> "list[Run]":
        """Runs of the environment, newest first, whose details are read on first use.

        `before` is the last run of the previous page.
        """
        from clew.api.run import Run
        from clew.events.snapshot import RunStatus
        from clew.runs.request import RunFilter

        with self._access.opened() as at:
            which = RunFilter(
                environment_id=at.environment.name,
                project_id=project,
                period=period,
                status=RunStatus(status.upper()) if status is not None else None,
            )
            behind = at.runs.find(before) if before is not None else None
            return [Run(record, self._access) for record in at.runs.runs(which, limit, behind)]

    def find_run(self, run_id: str) -> "Run":
        """A run by its id or first characters, whose details are read on first use. Raises UserError RunNotFound.

        Several short calls are faster if the workspace is kept open.
        """
        from clew.api.run import Run

        with self._access.opened() as at:
            return Run(at.runs.find(run_id), self._access)

    def kept_plan(self, digest: str) -> "Plan | None":
        """A plan that a run of this environment executed, by its digest; None if there is none."""
        from clew.storage.plans import is_kept

        with self._access.opened() as at:
            at.require_own_tenant()
            root = at.environment.storage_root
            return at.store.plans(root, digest) if is_kept(root, digest) else None

    def captures(
        self,
        *,
        run: str | None = None,
        request_id: str | None = None,
        status: str | None = None,
        limit: int = 50,
    ) -> "list[Capture]":
        """Captures of the environment, newest first, optionally of one run or one request."""
        from clew.api.capture import capture_reader
        from clew.captures.queue import CaptureStatus

        with self._access.opened() as at:
            reader = capture_reader(self._access, at)
            run_id = reader.run_named(run, at.runs) if run is not None else None
            wanted = CaptureStatus(status) if status is not None else None
            return reader.listed(run_id=run_id, request_id=request_id, status=wanted, limit=limit)

    def capture(self, capture_id: str) -> "Capture":
        """A capture by its id. Raises UserError CaptureNotFound if there is none."""
        from clew.api.capture import capture_reader

        with self._access.opened() as at:
            return capture_reader(self._access, at).find(capture_id)

    # Lineage

    def lineage(
        self, trace_id: int, direction: str = "up", *, depth: int | None = None, limit: int | None = None
    ) -> "Lineage":
        """Where a trace came from, or with "down" where it went, at most `depth` links away and `limit` traces.

        Raises UserError TraceNotFound if the trace is unknown.
        """
        from clew.api.questions import followed_lineage
        from clew.api.reads import record_read
        from clew.auth.access_log import Subject
        from clew.budgets import asking
        from clew.tracelink import Direction
        from clew.tracelink.lineage_walk import MAX_DEPTH, MAX_NODES

        with asking(self._access.environment.question_limits()), self._access.opened() as at:
            found = followed_lineage(
                at,
                trace_id,
                Direction(direction.lower()),
                depth=MAX_DEPTH if depth is None else depth,
                limit=MAX_NODES if limit is None else limit,
            )
            record_read(self._access, Subject.LINEAGE, str(trace_id), direction.lower(), (), len(found.places))
            return found

    @property
    def question_settings(self) -> "QuestionSettings":
        """What questions about rows may cost in this environment."""
        return self._access.environment.settings.questions

    def question(self) -> "Question":
        """A question about rows that begins now, for a server that answers it for somebody else."""
        from clew.api.asking import Question

        return Question(self._access.environment.question_limits())

    def expand_lineage(self, *, since: "datetime | None" = None) -> "Expansion":
        """Write the links that windows in the state store represent, all or those of traces minted since a moment."""
        with self._access.opened() as at:
            return at.state.tracelink.expander.expand(since_ms=int(since.timestamp() * 1000) if since else 0)

    def expand_windows(self, run: str | None = None) -> "list[Expanded]":
        """Expand the windows of a run, or of all runs that have ended, on Spark. Repeating it adds nothing.

        With all runs, skips those whose files are gone.
        """
        from clew.api.window_expansion import expand_windows

        with self._access.opened() as at:
            return list(expand_windows(at, run))

    def tracing(self, *, node_id: int | None = None) -> "AbstractContextManager[Tracing]":
        """Trace from this process: trace ids under a leased node id, and a receiver for windows and artifacts."""
        from clew.api.trace_ids import open_tracing

        return open_tracing(self._access, node_id=node_id)

    def verify(self, *, deep: bool = False) -> "Verification":
        """Check the ledger, every record that it vouches for, and every run against what was written.

        With `deep`, also evaluate every expression of all runs again, for every row. The result is recorded.
        """
        from clew.api.verification import Verifier
        from clew.api.verification_records import record_verification

        with self._access.opened() as at:
            found = Verifier(at.state, at.environment, is_deep=deep).everything()
            record_verification(at, at.environment.name, found)
            return found

    def verify_pack(self, pack: "str | Path", *, key: str | None = None) -> "PackVerification":
        """Check an evidence pack, and the seals of its events if this environment made it.

        `key` is the fingerprint of the key that must have signed it.
        """
        from clew.api.pack_verification import verify_pack
        from clew.runs.seal_keys import seal_key

        return verify_pack(Path(pack), key=key, seal=seal_key(self._access.environment))

    # Maintenance

    def gc(
        self,
        *,
        keep_days: int | None = None,
        keep_runs: int | None = None,
        keep_lineage_days: int | None = None,
        dry_run: bool = False,
    ) -> "Garbage":
        """Delete old runs, versions of datasets that are no longer needed, and files left by dead workers.

        Keeps runs that ended no more than `keep_days` ago, and the newest `keep_runs` of each project. If neither is
        given, the rules of the environment apply. Whatever is still needed is kept. Frames, links and windows that
        programs sent are kept for `keep_lineage_days`, by default as set in the environment. With `dry_run`, nothing
        is deleted.
        """
        from clew.api.operations import collect_garbage

        with self._access.opened() as at:
            return collect_garbage(
                at, keep_days=keep_days, keep_runs=keep_runs, keep_lineage_days=keep_lineage_days, dry_run=dry_run
            )

    def removals(self) -> "list[RemovalRecord]":
        """Past deletions, newest first."""
        from clew.api.operations import past_removals

        return past_removals(self._access.environment)

    @property
    def nodes(self) -> "Nodes":
        """The node ids under which processes mint trace ids."""
        from clew.api.node_ids import Nodes

        return Nodes(self._access)

    @property
    def tokens(self) -> "Tokens":
        """Tokens for the server, and the browser sessions that use them."""
        from clew.api.tokens import Tokens

        return Tokens(self._access)

    @property
    def oidc(self) -> "OpenIdSettings | None":
        """The OpenID Connect provider at which people sign in to the server; None if they use tokens only."""
        return self._access.environment.settings.oidc

    @cached_property
    def single_sign_on(self) -> "SingleSignOn":
        """Signs people in at the OpenID Connect provider of the environment."""
        from clew.api.single_sign_on import SingleSignOn

        return SingleSignOn(self._access)

    @property
    def operations(self) -> "Operations":
        """The load of the environment, its dead letters, and its access records."""
        from clew.api.operations import Operations

        return Operations(self._access)

    def work(self, stop: "threading.Event", listener: "WorkerListener | None" = None) -> None:
        """Drive runs from the queue, and do their captures and jobs, until `stop` is set. Starts Spark."""
        from clew.api.working import WorkerListener, run_worker

        with self._access.opened() as at:
            run_worker(at, stop, listener or WorkerListener())

    def collect(
        self, where: "Listening", stop: "threading.Event", on_listening: "Callable[[tuple[str, int]], None]"
    ) -> "CollectorCounts":
        """Receive frames and links from programs and write them to the state store until `stop` is set."""
        from clew.api.working import run_collector

        with self._access.opened() as at:
            return run_collector(at, where, stop, on_listening)

    # Scenarios

    def test(self, *paths: str | Path, on: "TestedOn" = "spark") -> "TestReport":
        """Run the scenarios of these files and folders, by default all of the workspace.

        `on` is "spark", "quick" (without Spark), or "both", where the two must agree.
        """
        from clew.scenarios.testing import ScenarioTests

        environment = self.run_environment

        def spark() -> "SparkSession":
            from clew.engine.session import session_of

            return session_of(environment)

        files = [self.root / path for path in paths]
        return ScenarioTests(self.loaded, files, spark, on).run()

    def scenario_tests(self, paths: Sequence[Path] = (), on: "TestedOn" = "spark") -> "ScenarioTests":
        """The scenarios of these files and folders (by default all of the workspace), ready to run.

        Spark, where it is needed, starts with settings for a short-lived process.
        """
        from clew.scenarios.testing import ScenarioTests

        environment = self.run_environment

        def spark() -> "SparkSession":
            from clew.engine.session import brief_session_of

            return brief_session_of(environment)

        return ScenarioTests(self.loaded, paths, spark, on)
