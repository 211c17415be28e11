"""What there is: runs, versions of datasets, who reads which version, and which folders belong to whom."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.app.captures.removal import waiting_captures
from clew.app.running.environment import RunEnvironment
from clew.app.running.pins import VersionKey, pinned_versions, pins_of, versions_read
from clew.app.running.plans import kept_plan
from clew.app.running.reading import PART_KIND, committed_parts
from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.diagnostics import UserError
from clew.runs.projector import Projector
from clew.runs.registry import DatasetVersion
from clew.runs.request import RunFilter, RunRecord
from clew.runs.snapshot import RunSnapshot

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Survey:
    """An environment, as far as it matters for what may go."""

    runs: tuple[RunRecord, ...]
    """Newest first."""
    versions: tuple[DatasetVersion, ...]
    pinned: frozenset[VersionKey]
    reads: Mapping[str, frozenset[VersionKey]]
    """By run, the versions that it has read or will read."""
    folders: Mapping[str, frozenset[str]]
    """By run, the folders of parts that its events name."""
    waited_for: frozenset[str] = frozenset()
    """Runs whose rows a capture or a job has still to read."""


def survey(workspace: Workspace, environment: RunEnvironment, state: State) -> Survey:
    """Look at everything once."""
    stores = state.stores
    projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=environment.store_limits())
    runs = tuple(_runs(environment, state))
    versions = tuple(_versions(state))
    snapshots = {run.run_id: projector.look(run.run_id).snapshot for run in runs}
    every = frozenset((version.dataset, version.version) for version in versions)
    return Survey(
        runs=runs,
        versions=versions,
        pinned=frozenset(pinned_versions(workspace, state, versions)),
        reads={run.run_id: _reads(environment, run, snapshots[run.run_id], every) for run in runs},
        folders={run_id: _folders(snapshot) for run_id, snapshot in snapshots.items()},
        waited_for=frozenset(run.run_id for run in runs if waiting_captures(state, run.run_id)),
    )


def _runs(environment: RunEnvironment, state: State) -> Iterator[RunRecord]:
    which, last = RunFilter(environment_id=environment.name), None
    while page := state.stores.catalog.runs(which, limit=_PAGE, before=last):
        yield from page
        last = page[-1]


def _versions(state: State) -> Iterator[DatasetVersion]:
    for newest in state.datasets.datasets():
        yield from state.datasets.versions(newest.dataset)


def _reads(
    environment: RunEnvironment, run: RunRecord, snapshot: RunSnapshot, every: frozenset[VersionKey]
) -> frozenset[VersionKey]:
    """The versions that a run needs; all where its files do not tell."""
    try:
        read = versions_read(committed_parts(environment.storage_root, snapshot))
        if not run.status.is_terminal and run.request.plan.digest is not None:
            read |= pins_of(kept_plan(environment.storage_root, run.request.plan.digest))
    except UserError:
        return every
    return frozenset(read)


def _folders(snapshot: RunSnapshot) -> frozenset[str]:
    described = (artifact.uri.removeprefix("storage:") for artifact in snapshot.artifacts if artifact.kind == PART_KIND)
    return frozenset(path.rpartition("/")[0] for path in described)
