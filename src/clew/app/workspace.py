"""The workspace object: what `clew.open` gives."""

# ruff: noqa: PLC0415 - runs need databases and Spark, which a check should not wait for

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from clew.app.checking import Check, check_project, check_workspace
from clew.app.planning import plan_project
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.workspace import UNKNOWN_ENVIRONMENT
from clew.model import Environment, LoadedWorkspace, find_workspace, load_workspace
from clew.plan import Plan

if TYPE_CHECKING:
    from clew.app.running.environment import RunEnvironment
    from clew.app.scenarios.testing import ScenarioTests


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

    @property
    def run_environment(self) -> "RunEnvironment":
        """The environment as runs take it: paths, addresses, policies."""
        from clew.app.running.environment import RunEnvironment

        return RunEnvironment(self.environment_name, self.environment, self.root)

    def check(self, project: str | None = None) -> Check:
        """Everything that is wrong with the workspace, or with what has a say in one project."""
        return check_workspace(self.loaded) if project is None else check_project(self.loaded, project)

    def plan(self, project: str) -> Plan:
        """The plan of a project by id or name. UserError with everything that stands in its way."""
        return plan_project(self.loaded, project)

    def scenario_tests(self, paths: Sequence[Path] = ()) -> "ScenarioTests":
        """The scenarios of these files and folders, all of the workspace where none are given, ready to be run."""
        from clew.app.running.session import session_of
        from clew.app.scenarios.testing import ScenarioTests

        environment = self.run_environment
        return ScenarioTests(self.loaded, paths, lambda: session_of(environment))

    def source_of(self, file: str) -> str | None:
        """The text of a file of the workspace, for excerpts in messages."""
        return self.loaded.source_of(file)
