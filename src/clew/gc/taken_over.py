"""Files of runs that reruns have taken over: they stay as long as any run names them.

A description of a rerun names files in the folder of an earlier run. That run may be deleted: its record, its history
and all other files go, and what is taken over goes with the last run that names it. Which runs may take over files can
change at any moment, so a run is first deleted in the state store, and only then is it asked who names its files: a
rerun that begins later finds that it is gone.
"""

# ruff: noqa: PLC0415 - few runs have tags, and what reads Iceberg's metadata is slow to import

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.events.snapshot import RunStatus
from clew.gc.survey import CollectedState
from clew.runs.environment import RunEnvironment
from clew.runs.projector import Projector
from clew.runs.request import RunFilter, RunRecord
from clew.storage.committed import committed_parts
from clew.storage.layout import folder_of, run_folder, run_of_file
from clew.storage.parts import TAKEN_OVER, Part
from clew.storage.root import StorageKey, StorageRoot
from clew.tracelink.part_blocks import published_blocks

_PAGE = 500
_MAY_TAKE_MORE = frozenset(status for status in RunStatus if status not in {RunStatus.COMPLETED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What reruns need of other runs."""

    folders: Mapping[str, frozenset[StorageKey]]
    """By rerun, the folders of other runs in which its files lie."""
    parts: Mapping[str, tuple[Part, ...]]
    """By rerun, its parts."""
    waiting: Mapping[str, str]
    """By run, a rerun that may take over more of it."""
    is_known: bool
    """Whether all could be read. If not, nothing in folders of deleted runs may be removed."""
    runs: frozenset[str]
    """All runs of the environment."""
    looked_at: datetime

    def held(self, gone: Collection[str] = ()) -> frozenset[StorageKey]:
        """The folders that stay, once some runs are gone."""
        return frozenset(folder for run_id, found in self.folders.items() if run_id not in gone for folder in found)

    def tags(self, run_id: str, gone: Collection[str] = ()) -> frozenset[tuple[str, str]]:
        """The tags of tables that other runs need, though the inputs of a run that goes have them too."""
        from clew.storage.tables.iceberg_tags import held_tags

        found = {
            each
            for rerun, parts in self.parts.items()
            if rerun != run_id and rerun not in gone
            for part in parts
            for each in held_tags(part.details)
        }
        for part in self.parts.get(run_id, ()):
            origin = (part.details or {}).get(TAKEN_OVER)
            if isinstance(origin, str) and origin in self.runs and origin not in gone:
                found |= set(held_tags(part.details))
        return frozenset(found)

    def heirs(self, run_id: str) -> Iterator[str]:
        """The reruns that have files of a run."""
        for rerun, found in self.folders.items():
            if any(run_of_file(f"{folder}/") == run_id for folder in found):
                yield rerun


def taken_over(environment: RunEnvironment, state: CollectedState, now: datetime) -> TakenOver:
    """Look at all reruns of an environment."""
    stores, root = state.stores, environment.storage_root
    projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=environment.store_limits())
    folders, parts, waiting = dict[str, frozenset[StorageKey]](), dict[str, tuple[Part, ...]](), dict[str, str]()
    is_known, ids, under_way = True, set[str](), set[str]()
    for run in _runs(environment, state):
        ids.add(run.run_id)
        if run.request.rerun is None:
            continue
        if run.status in _MAY_TAKE_MORE:
            waiting[run.request.rerun.of] = run.run_id
        if not run.status.is_terminal:
            under_way.add(run.request.rerun.of)
        try:
            parts[run.run_id] = committed_parts(root, projector.look(run.run_id).snapshot)
        except UserError:
            is_known = False
            continue
        files = [file for part in parts[run.run_id] for file in (*part.files, part.excluded) if file is not None]
        others = {file.path for file in files if run_of_file(file.path) not in {None, run.run_id}}
        folders[run.run_id] = frozenset(map(folder_of, others))
    return TakenOver(folders, parts, waiting, is_known and under_way <= ids, frozenset(ids), now)


def began_since(environment: RunEnvironment, state: CollectedState, moment: datetime) -> bool:
    """Whether a rerun was requested since a moment."""
    for run in _runs(environment, state):
        if run.created_at < moment:
            return False
        if run.request.rerun is not None:
            return True
    return False


def _runs(environment: RunEnvironment, state: CollectedState) -> Iterator[RunRecord]:
    """Newest first."""
    which, last = RunFilter(environment_id=environment.name), None
    while page := state.stores.catalog.runs(which, limit=_PAGE, before=last):
        yield from page
        last = page[-1]


def remove_files(root: StorageRoot, run_id: str, known: TakenOver, gone: Collection[str] = ()) -> None:
    """Remove the files of a deleted run, except those that others have taken over."""
    if known.is_known:
        for folder in removable(root, run_id, known.held(gone)):
            root.remove(folder)


def removable(root: StorageRoot, run_id: str, held: Collection[StorageKey]) -> Iterator[StorageKey]:
    """The folders of a run in which nothing is held: that of the run itself where nothing is."""
    yield from _free(root, run_folder(run_id), held)


def _free(root: StorageRoot, folder: StorageKey, held: Collection[StorageKey]) -> Iterator[StorageKey]:
    if folder in held:
        return
    if not any(each.startswith(f"{folder}/") for each in held):
        yield folder
        return
    for name in root.folders(folder):
        yield from _free(root, f"{folder}/{name}", held)


def hand_down(state: CollectedState, run_id: str, known: TakenOver) -> None:
    """Let lineage find the rows of a deleted run in a run that has taken them over: they keep their trace ids."""
    for rerun in known.heirs(run_id):
        for part in known.parts[rerun]:
            for block in published_blocks(rerun, part):
                state.tracelink.blocks.record(block)
