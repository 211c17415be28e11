"""The workspace object: what `clew.open` gives."""

# ruff: noqa: PLC0415 - runs need databases and Spark, which a check should not wait for

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.checking import Check, check_project, check_workspace, plan_definition, plan_project
from clew.api.recorded_state import Conflicts, conflicts_of
from clew.definitions import (
    CaptureData,
    Environment,
    LoadedWorkspace,
    capture_wishes_of_data,
    find_workspace,
    load_workspace,
)
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.workspace import UNKNOWN_ENVIRONMENT
from clew.plan import Plan

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from clew.api.fluent import ProjectBuilder
    from clew.api.lineage import Tracing
    from clew.api.run import Run
    from clew.captures.reading import Capture
    from clew.gc.collector import Garbage
    from clew.runs.environment import RunEnvironment
    from clew.scenarios.testing import ScenarioTests, TestReport
    from clew.tracelink import Expansion, Lineage


def open_workspace(path: str | Path = ".", environment: str | None = None) -> "Workspace":
    """The workspace that a folder belongs to: the nearest clew.yaml, in the folder itself or above it.

    Files are read when something is asked for, not before.
    """
    return Workspace(find_workspace(Path(path).absolute()), environment)


class Workspace:
    """A workspace as its files stand when it is first asked for something; later edits need it to be opened anew."""

    def __init__(self, root: Path, environment: str | None = None) -> None:
        self.root = root
        self._environment = environment
        self._plans: dict[str, Plan] = {}
        """Of projects that were asked for: the files do not change any more, and so does none of these."""

    def __repr__(self) -> str:
        return f"<Workspace {self.root}>"

    @cached_property
    def loaded(self) -> LoadedWorkspace:
        """The definitions of all files, with what is wrong with them."""
        return load_workspace(self.root)

    @property
    def name(self) -> str:
        """The name that clew.yaml gives."""
        return self.loaded.workspace.settings.name

    @property
    def environment_name(self) -> str:
        """The environment that was asked for, or the usual one of the workspace."""
        return self._environment or self.loaded.workspace.settings.usual_environment

    @property
    def environment(self) -> Environment:
        """The settings of the environment. UserError where clew.yaml has none of this name."""
        known = self.loaded.workspace.settings.environments
        if self.environment_name not in known:
            hint = did_you_mean(self.environment_name, known) or f"the environments are {', '.join(known)}"
            raise UserError(UNKNOWN_ENVIRONMENT.anywhere(name=self.environment_name, hint=hint))
        return known[self.environment_name]

    def require_environment(self) -> None:
        """UserError where an environment was asked for that does not exist. The usual one is a matter of checking."""
        if self._environment is not None:
            _ = self.environment

    @property
    def run_environment(self) -> "RunEnvironment":
        """The environment as runs take it: paths, addresses, policies."""
        from clew.runs.environment import RunEnvironment

        return RunEnvironment(self.environment_name, self.environment, self.root)

    def check(self, project: str | None = None) -> Check:
        """Everything that is wrong with the workspace, or with what has a say in one project.

        Where the environment has a state store, projects are compared with the versions of datasets in it.
        """
        compare = partial(conflicts_of, self)
        return (
            check_workspace(self.loaded, compare) if project is None else check_project(self.loaded, project, compare)
        )

    def conflicts(self, plan: Plan) -> Conflicts:
        """What versions of datasets and active projects have against the plan of a project of this workspace."""
        return conflicts_of(self, [(each, plan) for each in self.loaded.workspace.projects if each.id == plan.name])

    def plan(self, project: "str | ProjectBuilder") -> Plan:
        """The plan of a project by id or name, or of one written in Python. UserError with all that is in its way."""
        if isinstance(project, str):
            if project not in self._plans:
                self._plans[project] = plan_project(self.loaded, project)
            return self._plans[project]
        return plan_definition(self.loaded, project.build())

    def run(
        self,
        project: "str | ProjectBuilder",
        period: str,
        *,
        request_id: str | None = None,
        captures: "CaptureData | Sequence[CaptureData]" = (),
    ) -> "Run":
        """Run a project for a period and wait for it. A project written in Python runs as a draft, into the sandbox.

        `captures` are breakpoints at which rows are kept: "NAME", "NAME=MODE", or mappings with the keys of a file of
        captures. A run that fails is returned too, with its error. Ctrl-C cancels it in order.
        """
        from clew.api.starting import RunStarter, drive_in_foreground
        from clew.api.state import open_state
        from clew.captures.worker import CaptureWorker

        environment = self.run_environment
        wishes = capture_wishes_of_data(captures, "captures")
        with open_state(environment) as state:
            starter = RunStarter(self, environment, state)
            if isinstance(project, str):
                run_id = starter.submit(project, period, request_id, wishes).run_id
            else:
                plan = self.plan(project)
                run_id = starter.submit_plan(plan, period, request_id=request_id, captures=wishes).run_id
            if not state.stores.catalog.run(run_id).status.is_terminal:
                drive_in_foreground(starter, run_id, watch=lambda _event: None)
            CaptureWorker(environment, state, starter.session).after_run(run_id)
        return self.get_run(run_id)

    def runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        status: str | None = None,
        limit: int = 50,
    ) -> "list[Run]":
        """Runs of the environment, newest first."""
        from clew.api.run import Run
        from clew.api.run_view import RunReader
        from clew.api.state import open_state
        from clew.captures.manifests import Places
        from clew.events.snapshot import RunStatus
        from clew.runs.request import RunFilter

        environment = self.run_environment
        which = RunFilter(
            environment_id=environment.name,
            project_id=project,
            period=period,
            status=RunStatus(status.upper()) if status is not None else None,
        )
        with open_state(environment) as state:
            reader = RunReader(state, environment)
            places = Places(environment)
            return [Run(reader.view(run.run_id), places) for run in reader.runs(which, limit)]

    def get_run(self, run_id: str) -> "Run":
        """A run by its id, or the beginning of it. UserError RunNotFound where there is none."""
        from clew.api.run import Run
        from clew.api.run_view import RunReader
        from clew.api.state import open_state
        from clew.captures.manifests import Places

        environment = self.run_environment
        with open_state(environment) as state:
            return Run(RunReader(state, environment).view(run_id), Places(environment))

    def captures(self, *, run: str | None = None, request_id: str | None = None, limit: int = 50) -> "list[Capture]":
        """Captures of the environment, newest first, or those of one run or one request for a run."""
        from clew.api.run_view import RunReader
        from clew.api.state import open_state
        from clew.captures.reading import CaptureReader

        environment = self.run_environment
        with open_state(environment) as state:
            reader = CaptureReader(state, environment)
            run_id = reader.run_named(run, RunReader(state, environment)) if run is not None else None
            return reader.listed(run_id=run_id, request_id=request_id, limit=limit)

    def capture(self, capture_id: str) -> "Capture":
        """A capture by its id. UserError CaptureNotFound where there is none."""
        from clew.api.state import open_state
        from clew.captures.reading import CaptureReader

        environment = self.run_environment
        with open_state(environment) as state:
            return CaptureReader(state, environment).find(capture_id)

    def gc(
        self,
        *,
        keep_days: int | None = None,
        keep_runs: int | None = None,
        keep_lineage_days: int | None = None,
        dry_run: bool = False,
    ) -> "Garbage":
        """Remove old runs, versions of datasets that nobody needs, and what dead workers have left.

        Runs are kept that ended no more than `keep_days` ago, and the newest `keep_runs` of each project. Where neither
        is given the rules of the environment hold. Whatever is still needed stays. Frames, links and windows that
        programs have sent are kept for `keep_lineage_days`, or as the environment says. With `dry_run` nothing is
        removed.
        """
        from clew.api.state import open_state
        from clew.gc.removal import collector_of
        from clew.gc.retention import Retention, usual_retention

        environment = self.run_environment
        given = Retention(days=keep_days, runs=keep_runs)
        retention = usual_retention(environment.settings.retention) if given.keeps_all else given
        with open_state(environment) as state:
            collector = collector_of(self, environment, state, keep_lineage_days)
            return collector.find(retention) if dry_run else collector.collect(retention)

    def lineage(
        self, trace_id: int, direction: str = "up", *, depth: int | None = None, limit: int | None = None
    ) -> "Lineage":
        """Where a trace came from, or with "down" where it went, over at most `depth` links and to `limit` traces.

        UserError TraceNotFound where nothing is known of the trace.
        """
        from clew.api.lineage import lineage_reader
        from clew.api.state import open_state
        from clew.tracelink import Direction, ask_lineage
        from clew.tracelink.lineage import MAX_DEPTH, MAX_NODES

        environment = self.run_environment
        with open_state(environment) as state:
            return ask_lineage(
                lineage_reader(state, environment),
                trace_id,
                Direction(direction.lower()),
                max_depth=MAX_DEPTH if depth is None else depth,
                max_nodes=MAX_NODES if limit is None else limit,
            )

    def expand_lineage(self, *, since: "datetime | None" = None) -> "Expansion":
        """Write the links that windows in the state store stand for, all or those of traces minted since a moment."""
        from clew.api.state import open_state

        with open_state(self.run_environment) as state:
            return state.tracelink.expander.expand(since_ms=int(since.timestamp() * 1000) if since else 0)

    def tracing(self, *, node_id: int | None = None) -> "AbstractContextManager[Tracing]":
        """Take part in tracing from this process: trace ids under a leased node id, and a place for what it tells."""
        from clew.api.lineage import open_tracing

        return open_tracing(self.run_environment, node_id=node_id)

    def test(self, *paths: str | Path) -> "TestReport":
        """Run scenarios: those of these files and folders, all of the workspace where none are given."""
        from clew.engine.session import session_of
        from clew.scenarios.testing import ScenarioTests

        environment = self.run_environment
        files = [self.root / path for path in paths]
        return ScenarioTests(self.loaded, files, lambda: session_of(environment)).run()

    def scenario_tests(self, paths: Sequence[Path] = ()) -> "ScenarioTests":
        """The scenarios of these files and folders, all of the workspace where none are given, ready to be run.

        Spark is started as suits a process that ends with them.
        """
        from clew.engine.session import brief_session_of
        from clew.scenarios.testing import ScenarioTests

        environment = self.run_environment
        return ScenarioTests(self.loaded, paths, lambda: brief_session_of(environment))

    def source_of(self, file: str) -> str | None:
        """The text of a file of the workspace, for excerpts in messages."""
        return self.loaded.source_of(file)
