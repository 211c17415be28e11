"""Dry runs: find, read and check everything that a run would read, without creating a run, version or output."""

import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from clew.api.projects import choose
from clew.api.run_parameters import plan_for_run
from clew.api.state import State, open_state
from clew.api.workspace_files import WorkspaceFiles
from clew.captures.queue import capture_parameters
from clew.deferred import dataclass
from clew.definitions import CaptureWish, Environment, Period
from clew.engine.executor import datasets_of
from clew.engine.opening import ENGINE_CAPABILITIES, Inputs, SparkExecutors
from clew.engine.session import session_of
from clew.plan import Plan, require_capabilities
from clew.runs.environment import RunEnvironment
from clew.runs.named_periods import period_of
from clew.runs.signals import Role
from clew.storage.committed import sources_of
from clew.storage.parts import Part
from clew.storage.root import StorageRoot
from clew.store.table_transfer import PostgresqlTables


@dataclass(frozen=True, slots=True)
class DryRead:
    """A dataset that a run would read."""

    dataset: str
    rows: int
    source: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The project version and the data that a run would use."""

    project: str
    version: int | None
    period: str
    plan: Plan
    datasets: tuple[DryRead, ...]

    def to_json(self) -> dict[str, object]:
        """The form of `run --dry-run --json`."""
        return {
            "dry_run": True,
            "project": self.project,
            "project_version": "draft" if self.version is None else str(self.version),
            "period": self.period,
            "digest": self.plan.digest,
            "datasets": [{"dataset": each.dataset, "rows": each.rows, "source": each.source} for each in self.datasets],
            "steps": [{"seq": step.seq, "name": step.name, "type": step.type} for step in self.plan.steps],
            "written": [],
        }


def dry_run(
    files: WorkspaceFiles,
    project: str,
    period: str,
    captures: Sequence[CaptureWish] = (),
    parameters: Mapping[str, object] | None = None,
) -> DryRun:
    """Do what a run does before its first step. Raises UserError for whatever would stop the run there."""
    environment, definitions = files.run_environment, files.loaded.workspace
    with trial(files) as trying:
        run_period = period_of(definitions, period)
        choice = choose(files, trying.state, project)
        plan = plan_for_run(choice.plan, files, period, environment.settings.parameters, parameters or {})
        require_capabilities(plan, ENGINE_CAPABILITIES)
        capture_parameters(plan, captures, environment, Role.ADMIN.label)
        if choice.version is not None:
            trying.executors.require_free_period(plan, "", period)
        inputs = trying.inputs(plan, run_period)
        found = list[DryRead]()
        for use in datasets_of(plan):
            part = inputs.pin(use, 0).part
            found.append(DryRead(use.dataset_id, part.counted, sources_of(part)))
    return DryRun(choice.project, choice.version, period, plan, tuple(found))


@dataclass(frozen=True, slots=True)
class Trial:
    """What reads data as a run does. What it copies goes to a folder that is removed at the end."""

    environment: RunEnvironment
    apart: RunEnvironment
    """The same, with that folder as its storage root."""
    state: State
    executors: SparkExecutors
    run_id: str

    def inputs(self, plan: Plan, period: Period) -> Inputs:
        """Finds and pins what a plan reads for a period. Starts Spark."""
        return Inputs(self.executors, self.executors.spark(), self.run_id, plan, period)

    def stored_at(self, part: Part) -> StorageRoot:
        """Where the files of a pinned dataset are: those of a registered one are not copied."""
        is_managed = (part.details or {}).get("format") == "managed"
        return (self.environment if is_managed else self.apart).storage_root


@contextmanager
def trial(files: WorkspaceFiles) -> Iterator[Trial]:
    """Read data as a run does, and keep nothing."""
    environment, definitions = files.run_environment, files.loaded.workspace
    with tempfile.TemporaryDirectory(prefix="clew-dry-run-") as folder, _state(environment, Path(folder)) as state:
        apart = _with(environment, replace(environment.settings, storage_root=folder))
        executors = SparkExecutors(
            definitions,
            apart,
            state.datasets,
            state.secrets,
            lambda: session_of(environment, definitions.datasources, state.secrets),
            PostgresqlTables(),
            registered_at=environment.storage_root,
        )
        yield Trial(environment, apart, state, executors, f"dry-{uuid.uuid4().hex[:12]}")


@contextmanager
def _state(environment: RunEnvironment, folder: Path) -> Iterator[State]:
    """The state store, or a temporary empty one if it does not exist yet: a dry run must not create it."""
    path = environment.embedded_store
    is_missing = path is not None and not path.exists()
    for_now = replace(environment.settings, state_store=f"sqlite:///{folder / 'state.db'}")
    with open_state(_with(environment, for_now) if is_missing else environment) as state:
        yield state


def _with(environment: RunEnvironment, settings: Environment) -> RunEnvironment:
    return replace(environment, settings=settings)
