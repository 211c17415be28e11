"""Removing a run: its record, its history and its rows, unless a dataset still needs them."""

import shutil
from dataclasses import dataclass

from clew.app.running.actor import actor_name
from clew.app.running.environment import RunEnvironment
from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NEEDED
from clew.plan.steps import AppendStep, UpdateStep
from clew.runs.registry import DatasetVersion


@dataclass(frozen=True, slots=True)
class Removal:
    """A run that is gone."""

    run_id: str
    freed_bytes: int


def remove_run(
    workspace: Workspace, environment: RunEnvironment, state: State, run_id: str, *, force: bool, reason: str
) -> Removal:
    """Remove a run that has ended. Published outputs and versions of datasets stay where they are."""
    if not force:
        for version in _versions_in_use(workspace, state):
            if any(file.run_id == run_id for file in version.files):
                raise UserError(
                    RUN_NEEDED.anywhere(dataset=version.dataset, version=version.version, run_id=run_id[:8])
                )
    state.stores.intake.delete(run_id, deleted_by=actor_name(), reason=reason)
    folder = environment.storage_root / "runs" / run_id
    freed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder, ignore_errors=True)
    return Removal(run_id, freed)


def _versions_in_use(workspace: Workspace, state: State) -> list[DatasetVersion]:
    """The newest version of every dataset, and those that projects pin."""
    pinned = _pins(workspace)
    newest = list(state.datasets.datasets())
    older = [
        version
        for dataset in newest
        for version in state.datasets.versions(dataset.dataset)
        if (version.dataset, version.version) in pinned
    ]
    return newest + older


def _pins(workspace: Workspace) -> set[tuple[str, int | None]]:
    pins = set[tuple[str, int | None]]()
    for project in workspace.loaded.workspace.projects:
        try:
            plan = workspace.plan(project.id)
        except UserError:
            continue
        uses = [plan.input]
        for step in plan.steps:
            if isinstance(step, UpdateStep):
                uses += [join.dataset for join in step.joins]
            elif isinstance(step, AppendStep):
                uses.append(step.source)
        pins |= {(use.dataset_id, use.pinned_version) for use in uses}
    return pins
