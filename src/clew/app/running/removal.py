"""Removing a run: its record, its history and its rows, unless a dataset still needs them."""

import shutil
from dataclasses import dataclass

from clew.app.captures.removal import drop_waiting, waiting_captures
from clew.app.running.actor import actor_name
from clew.app.running.collecting.collectable import Removable
from clew.app.running.collecting.journal import Journal, RemovalRecord
from clew.app.running.collecting.leftovers import RUNS, size_of
from clew.app.running.environment import RunEnvironment
from clew.app.running.pins import pinned_versions
from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import CAPTURES_WAITING, RUN_NEEDED
from clew.runs.clock import utc_now
from clew.runs.registry import DatasetVersion


@dataclass(frozen=True, slots=True)
class Removal:
    """A run that is gone."""

    run_id: str
    freed_bytes: int


def remove_run(
    workspace: Workspace, environment: RunEnvironment, state: State, run_id: str, *, force: bool, reason: str
) -> Removal:
    """Remove a run that has ended. Published outputs, versions of datasets and captures stay where they are.

    Captures that wait for its rows are dropped with it.
    """
    if not force:
        waiting = waiting_captures(state, run_id)
        if waiting and state.stores.catalog.run(run_id).status.is_terminal:
            raise UserError(CAPTURES_WAITING.anywhere(run_id=run_id[:8], number=len(waiting)))
        for version in _versions_in_use(workspace, state):
            if any(file.run_id == run_id for file in version.files):
                raise UserError(
                    RUN_NEEDED.anywhere(dataset=version.dataset, version=version.version, run_id=run_id[:8])
                )
    folder = environment.storage_root / RUNS / run_id
    freed = size_of(folder)
    state.stores.intake.delete(run_id, deleted_by=actor_name(), reason=reason)
    drop_waiting(environment, state, run_id)
    removed = Removable("run", run_id, reason or "asked for", freed)
    Journal(environment.storage_root).add(RemovalRecord(utc_now(), actor_name(), environment.name, removed))
    shutil.rmtree(folder, ignore_errors=True)
    return Removal(run_id, freed)


def _versions_in_use(workspace: Workspace, state: State) -> list[DatasetVersion]:
    """The newest version of every dataset, and those that projects pin."""
    newest = list(state.datasets.datasets())
    every = [version for dataset in newest for version in state.datasets.versions(dataset.dataset)]
    pinned = pinned_versions(workspace, state, every)
    return newest + [version for version in every if (version.dataset, version.version) in pinned]
