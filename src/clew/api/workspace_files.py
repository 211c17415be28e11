"""The files of a workspace in one of its environments: their definitions, checks and plans.

A long-running process reads files again when they have changed.
"""

# ruff: noqa: PLC0415 - reading a run should not load what checks and compiles a workspace, nor a check what runs need

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from clew.definitions import (
    CaptureData,
    CaptureWish,
    Environment,
    LoadedWorkspace,
    Project,
    Settings,
    capture_wishes_of_data,
    capture_wishes_of_file,
    load_workspace,
)
from clew.definitions.kinds import FILE_KINDS, WORKSPACE_FILE, read_source
from clew.definitions.loading import load_datasets, load_settings
from clew.diagnostics import Diagnostic, UserError, did_you_mean
from clew.diagnostics.codes.workspace import UNKNOWN_ENVIRONMENT

if TYPE_CHECKING:
    from clew.api.checking import Check, Conflicts, StatePlace
    from clew.plan import Plan
    from clew.plan.privacy import Marks
    from clew.runs.environment import RunEnvironment

_LOOK_EVERY_S = 1.0

Fingerprint = frozenset[tuple[str, int, int]]


class WorkspaceFiles:
    """The files as they were on first use; later edits are not seen."""

    def __init__(self, root: Path, environment: str | None = None) -> None:
        self.root = root
        self.asked_environment = environment
        """The name of the requested environment, if any."""
        self._plans = dict[str, "Plan"]()
        self._kept = dict[str, "Plan"]()
        """The plans of projects requested so far; they cannot change, because the files do not."""

    @cached_property
    def loaded(self) -> LoadedWorkspace:
        """The definitions of all files, with their errors."""
        return load_workspace(self.root)

    @cached_property
    def settings(self) -> Settings:
        """What clew.yaml says. Where the definitions have not been loaded, no other file is read for it."""
        return self.loaded.workspace.settings if "loaded" in self.__dict__ else self._settings_alone[0]

    @cached_property
    def _settings_alone(self) -> tuple[Settings, tuple[Diagnostic, ...]]:
        return load_settings(self.root)

    @property
    def _settings_problems(self) -> tuple[Diagnostic, ...]:
        """What is wrong with clew.yaml."""
        if "loaded" in self.__dict__ and all(kind != "workspace" for kind, _ in self.loaded.workspace.broken):
            return ()
        return self._settings_alone[1]

    @property
    def name(self) -> str:
        """The name in clew.yaml."""
        return self.settings.name

    @property
    def environment_name(self) -> str:
        """The requested environment, or the default of the workspace."""
        return self.asked_environment or self.settings.usual_environment

    @property
    def environment(self) -> Environment:
        """The settings of the environment. Raises UserError if clew.yaml has errors, or does not define it.

        In place of settings with errors there are the defaults: other stores, and other rules of who may see what.
        """
        if self._settings_problems:
            raise UserError(*self._settings_problems)
        known = self.settings.environments
        if self.environment_name not in known:
            hint = did_you_mean(self.environment_name, known) or f"the environments are {', '.join(known)}"
            raise UserError(UNKNOWN_ENVIRONMENT.anywhere(name=self.environment_name, hint=hint))
        return known[self.environment_name]

    def require_environment(self) -> None:
        """Raise UserError if the requested environment does not exist.

        A missing default is left to the check, and so are errors in clew.yaml.
        """
        if self.asked_environment is not None and not self._settings_problems:
            _ = self.environment

    @property
    def run_environment(self) -> "RunEnvironment":
        """The environment as runs use it: paths, addresses, policies."""
        from clew.runs.environment import RunEnvironment

        return RunEnvironment(self.environment_name, self.environment, self.root)

    @cached_property
    def privacy_marks(self) -> "Marks":
        """The classes that dataset files give to columns now. Runs that are older keep to them, too."""
        datasets = self.loaded.workspace.datasets if "loaded" in self.__dict__ else load_datasets(self.root)
        return {
            (dataset.id, column.name): column.privacy.value
            for dataset in datasets
            for column in dataset.main_table.all_columns
            if column.privacy is not None
        }

    def check(self, project: str | None = None) -> "Check":
        """All errors in the workspace, or in what concerns one project.

        If the environment has a state store, projects are compared with the versions of datasets in it.
        """
        from clew.api.checking import check_project, check_workspace

        if project is None:
            return check_workspace(self.loaded, self._compare)
        return check_project(self.loaded, project, self._compare)

    def conflicts(self, plan: "Plan") -> "Conflicts":
        """How versions of datasets and active projects conflict with the plan of a project of this workspace."""
        return self._compare([(each, plan) for each in self.loaded.workspace.projects if each.id == plan.name])

    def _compare(self, projects: "Sequence[tuple[Project, Plan]]") -> "Conflicts":
        from clew.api.checking import conflicts_of, nothing_to_compare

        if self._settings_problems:
            return nothing_to_compare(projects)
        return conflicts_of(projects, self.loaded.workspace.projects, self._state_place)

    def _state_place(self) -> "StatePlace":
        from clew.api.checking import StatePlace

        return StatePlace(self.environment_name, self.environment, self.root)

    def project(self, name: str) -> Project:
        """A project by id or name. Raises UserError if there is none, or with the errors in its file."""
        from clew.api.checking import find_project

        found = find_project(self.loaded, name)
        if found is None:
            raise UserError(*self.check(name).diagnostics)
        return found

    def plan(self, project: str) -> "Plan":
        """The plan of a project by id or name. Raises UserError with everything that prevents it."""
        from clew.api.checking import plan_project

        if project not in self._plans:
            self._plans[project] = plan_project(self.loaded, project)
        return self._plans[project]

    def kept_by_version(self, project: str, made: Callable[[], "Plan"]) -> "Plan":
        """The plan of a project as activation keeps it, which is made once."""
        if project not in self._kept:
            self._kept[project] = made()
        return self._kept[project]

    def plan_of(self, project: Project) -> "Plan":
        """The plan of a project without a file. Raises UserError with everything that prevents it."""
        from clew.api.checking import plan_definition

        return plan_definition(self.loaded, project)

    def source_of(self, file: str) -> str | None:
        """The text of a workspace file, for excerpts in messages."""
        return self.loaded.source_of(file)

    def current(self) -> "WorkspaceFiles":
        """These files; they never change."""
        return self

    def look_now(self) -> "WorkspaceFiles":
        """These files; they never change."""
        return self


class FilesSource(Protocol):
    """Provides the files of a workspace: a fixed state, or the current one."""

    @property
    def root(self) -> Path:
        """The folder of clew.yaml."""
        ...

    def current(self) -> WorkspaceFiles:
        """The current files. Earlier results do not change."""
        ...

    def look_now(self) -> WorkspaceFiles:
        """The files at this moment, for code that freezes them."""
        ...


class LiveFiles:
    """Provides the files of a workspace, at most a second old. Thread-safe."""

    def __init__(
        self, root: Path, environment: str | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.root = root
        self._environment = environment
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looked = -_LOOK_EVERY_S
        self._fingerprint: Fingerprint | None = None
        self._opened = WorkspaceFiles(root, environment)

    def current(self) -> WorkspaceFiles:
        """The current files. Earlier results do not change."""
        with self._lock:
            is_due = self._monotonic() - self._looked >= _LOOK_EVERY_S
        return self.look_now() if is_due else self._opened

    def look_now(self) -> WorkspaceFiles:
        """The files at this moment."""
        with self._lock:
            self._looked = self._monotonic()
            found = _fingerprint(self.root)
            if found != self._fingerprint:
                self._fingerprint = found
                self._opened = WorkspaceFiles(self.root, self._environment)
            return self._opened


def _fingerprint(root: Path) -> Fingerprint:
    """A fingerprint that changes when a file is written: the names, times and sizes of all definitions."""
    folders = [root / kind.folder for kind in FILE_KINDS.values() if kind.folder]
    files = [root / WORKSPACE_FILE, *(path for folder in folders if folder.is_dir() for path in folder.iterdir())]
    found = set[tuple[str, int, int]]()
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        found.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)


def write_sample_workspace(folder: Path, sample: str = "ledger") -> tuple[Path, ...]:
    """Write a sample workspace into an empty or new folder. Returns the files written."""
    from clew.sample import write_sample

    return write_sample(folder, sample)


Captures = CaptureData | Sequence[CaptureData] | Sequence[CaptureWish]
"""Breakpoints where a run captures rows: "NAME", "NAME=MODE", or mappings with the keys of a captures file."""


def capture_wishes(captures: Captures) -> tuple[CaptureWish, ...]:
    """Captures as programs request them. Raises UserError with all errors."""
    if not isinstance(captures, str | Mapping):
        read = tuple(each for each in captures if isinstance(each, CaptureWish))
        if len(read) == len(captures):
            return read
    return capture_wishes_of_data(cast("CaptureData | Sequence[CaptureData]", captures), "captures")


def read_capture_wishes(
    words: Sequence[str], file: Path | None, root: Path, on_source: Callable[[str, str], None]
) -> tuple[CaptureWish, ...]:
    """The captures from a file and from the command line.

    `on_source` gets the name and text of the file before it is parsed, for excerpts in messages.
    """
    listed: Sequence[CaptureWish] = ()
    if file is not None:
        source = read_source(file.absolute(), root)
        on_source(source.file, source.text)
        listed = capture_wishes_of_file(file.absolute(), root)
    return (*listed, *capture_wishes_of_data(words, "--capture"))
