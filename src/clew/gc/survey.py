"""What the storage root holds: runs, dataset versions, who reads or pins which, and files that no event names."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Protocol

from clew.captures.queue import CaptureState
from clew.captures.removal import waiting_captures
from clew.deferred import dataclass
from clew.definitions import LoadedWorkspace
from clew.diagnostics import UserError
from clew.events.artifacts import key_of_part, parts_among
from clew.events.snapshot import RunSnapshot
from clew.events.values import LOAD_STEP
from clew.explain.run_lineage import TracedState
from clew.plan import Plan, plan_from_json
from clew.runs.environment import RunEnvironment
from clew.runs.projector import Projector
from clew.runs.registry import DatasetVersion
from clew.runs.request import RunFilter, RunRecord
from clew.runs.stores import RunState
from clew.storage.committed import committed_parts
from clew.storage.inventory import stored_registrations, stored_runs, unfinished_plans, unnamed_in_run
from clew.storage.layout import folder_of, run_folder
from clew.storage.parts import Part
from clew.storage.plans import kept_plan
from clew.storage.removals import LEFTOVER, Removable
from clew.storage.root import StorageKey, StorageRoot


class PlannedProjects(Protocol):
    """The projects of a workspace, and their plans."""

    @property
    def loaded(self) -> LoadedWorkspace:
        """The definitions of all files, with what is wrong with them."""
        ...

    def plan(self, project: str, /) -> Plan:
        """The plan of a project. UserError if it has none."""
        ...


class CollectedState(CaptureState, TracedState, Protocol):
    """What garbage collection needs from a state store."""


VersionKey = tuple[str, int]
"""A dataset and the number of a version."""


def pinned_versions(workspace: PlannedProjects, state: RunState, versions: Iterable[DatasetVersion]) -> set[VersionKey]:
    """The versions that a project pins by number: in its file as it is, and in its active version.

    Where a file cannot be read or a project has no plan, what it needs is unknown, and all versions count.
    """
    pins = set[VersionKey]()
    is_certain = not workspace.loaded.diagnostics
    for project in workspace.loaded.workspace.projects:
        active = state.projects.active(project.id)
        if active is not None:
            pins |= pins_of(plan_from_json(json.loads(active.plan)))
        try:
            pins |= pins_of(workspace.plan(project.id))
        except UserError:
            is_certain = False
    return pins if is_certain else {(version.dataset, version.version) for version in versions}


def pins_of(plan: Plan) -> set[VersionKey]:
    """The versions that a plan pins by number."""
    return {(use.dataset_id, use.pinned_version) for use in plan.datasets_read if use.pinned_version is not None}


def versions_read(parts: Iterable[Part]) -> set[VersionKey]:
    """The versions that a run has read, from what it has pinned."""
    found = set[VersionKey]()
    for part in parts:
        details = part.details or {}
        dataset, version = details.get("dataset"), details.get("version")
        if part.kind == "input" and isinstance(dataset, str) and isinstance(version, int):
            found.add((dataset, version))
    return found


_PAGE = 500


@dataclass(frozen=True, slots=True)
class Survey:
    """An environment, as far as it matters for what may be deleted."""

    runs: tuple[RunRecord, ...]
    """Newest first."""
    versions: tuple[DatasetVersion, ...]
    pinned: frozenset[VersionKey]
    reads: Mapping[str, frozenset[VersionKey]]
    """By run, the versions that it has read or will read."""
    folders: Mapping[str, frozenset[str]]
    """By run, the folders of parts that its events name."""
    waited_for: frozenset[str] = frozenset()
    """Runs whose rows a capture or job still needs."""


def survey(workspace: PlannedProjects, environment: RunEnvironment, state: CollectedState) -> Survey:
    """Look at everything once."""
    stores = state.stores
    projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=environment.store_limits())
    # Versions first: a run that begins after that takes at least the newest of these, which stays.
    versions = tuple(_versions(state))
    runs = tuple(_runs(environment, state))
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


def _runs(environment: RunEnvironment, state: CollectedState) -> Iterator[RunRecord]:
    which, last = RunFilter(environment_id=environment.name), None
    while page := state.stores.catalog.runs(which, limit=_PAGE, before=last):
        yield from page
        last = page[-1]


def _versions(state: CollectedState) -> Iterator[DatasetVersion]:
    for newest in state.datasets.datasets():
        yield from state.datasets.versions(newest.dataset)


def _reads(
    environment: RunEnvironment, run: RunRecord, snapshot: RunSnapshot, every: frozenset[VersionKey]
) -> frozenset[VersionKey]:
    """The versions that a run needs; all if its files do not say."""
    if snapshot.status.is_under_way and not _is_loaded(snapshot):
        # It may have chosen a version already, and no event says so before all inputs are pinned.
        return every
    try:
        read = versions_read(committed_parts(environment.storage_root, snapshot))
        if not run.status.is_terminal and run.request.plan.digest is not None:
            read |= pins_of(kept_plan(environment.storage_root, run.request.plan.digest))
    except UserError:
        return every
    return frozenset(read)


def _is_loaded(snapshot: RunSnapshot) -> bool:
    """Whether a run has pinned what it reads."""
    load = snapshot.step(LOAD_STEP)
    return load is not None and load.status.is_done


def _folders(snapshot: RunSnapshot) -> frozenset[str]:
    return frozenset(folder_of(key_of_part(artifact)) for artifact in parts_among(snapshot.artifacts))


@dataclass(frozen=True, slots=True)
class Needs:
    """Who needs what, in a few words for each."""

    versions: Mapping[VersionKey, str]
    runs: Mapping[str, str]


def needs_of(
    versions: Collection[DatasetVersion],
    pinned: Collection[VersionKey],
    reads: Mapping[str, Collection[VersionKey]],
    kept: Iterable[str],
) -> Needs:
    """What is needed, where `reads` are the versions that each run has read and `kept` the runs that stay anyway."""
    found = {(version.dataset, version.version): version for version in versions}
    needed = dict[VersionKey, str]()
    for dataset in {version.dataset for version in versions}:
        newest = max(version.version for version in versions if version.dataset == dataset)
        needed[dataset, newest] = "it is the newest version"
    needed |= {key: "a project pins this version" for key in pinned if key in found and key not in needed}
    runs = dict[str, str]()
    waiting = list(kept)
    while True:
        for run_id in waiting:
            for key in reads.get(run_id, ()):
                needed.setdefault(key, f"run {run_id[:8]} has read it")
        waiting = []
        for (dataset, number), version in found.items():
            if (dataset, number) in needed:
                for run_id, _ in sorted(version.authors):
                    if run_id not in runs:
                        runs[run_id] = f"dataset {dataset} v{number} has rows of it"
                        waiting.append(run_id)
        if not waiting:
            return Needs(needed, runs)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, with the folders that its events name."""

    run_id: str
    folders: Collection[str]


def left_in_run(root: StorageRoot, run: Ended, before: datetime) -> Iterator[Removable]:
    """What was written for a run that has ended, and which it does not name, unless it was written lately.

    A worker that lost the run may still be writing: it harms nothing, and is not in anyone's way.
    """
    for thing in unnamed_in_run(root, run.run_id, run.folders):
        if thing.written < before.timestamp():
            yield _leftover(root, thing.key, "no event of the run names it")


def left_of_removed(
    root: StorageRoot,
    removed: Collection[str],
    exists: Callable[[str], bool],
    free: Callable[[str], Iterable[StorageKey]] = lambda run_id: [run_folder(run_id)],
) -> Iterator[Removable]:
    """Folders of deleted runs, left by a deletion that did not finish, or by a rerun that is gone as well.

    `free` gives those of a run that no other run has taken over.
    """
    for run_id in stored_runs(root):
        if run_id in removed and not exists(run_id):
            for folder in free(run_id):
                yield _leftover(root, folder, "its run was removed")


def left_in_datasets(
    root: StorageRoot, named: Collection[str], ended: Callable[[str], bool], before: datetime
) -> Iterator[Removable]:
    """Rows that were to become a version of a dataset and did not; `named` are the folders of versions."""
    for run_id, thing in stored_registrations(root, named):
        if ended(run_id) and thing.written < before.timestamp():
            yield _leftover(root, thing.key, "no version of the dataset names it")


def left_in_plans(root: StorageRoot, before: datetime) -> Iterator[Removable]:
    """Plans that were never finished."""
    for thing in unfinished_plans(root):
        if thing.written < before.timestamp():
            yield _leftover(root, thing.key, "a plan that was not finished")


def _leftover(root: StorageRoot, key: str, reason: str) -> Removable:
    return Removable(LEFTOVER, key, reason, root.size(key))
