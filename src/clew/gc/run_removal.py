"""Deletes one run: its record, its history and its rows, unless a dataset still needs them.

Also puts together the garbage collector of an environment, with its captures and its lineage.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from clew.captures.orphans import LeftOfCaptures
from clew.captures.removal import ExpiredCaptures, drop_waiting, waiting_captures
from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.runs import CAPTURES_WAITING, RUN_NEEDED, RUN_REPEATED
from clew.gc.garbage import GarbageCollector
from clew.gc.survey import CollectedState, PlannedProjects, pinned_versions
from clew.gc.table_tags import release_tables
from clew.gc.taken_over import hand_down, remove_files, taken_over
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.registry import DatasetVersion
from clew.runs.signals import actor_name
from clew.storage.layout import run_folder
from clew.storage.removals import RUN, Collectable, Journal, Removable, RemovalRecord
from clew.tracelink.stores import Age, Kept, TracePruner


@dataclass(frozen=True, slots=True)
class Removal:
    """A deleted run."""

    run_id: str
    freed_bytes: int
    problems: tuple[Diagnostic, ...] = ()
    """What could not be tidied up in tables that the run had read."""


def remove_run(
    workspace: PlannedProjects,
    environment: RunEnvironment,
    state: CollectedState,
    run_id: str,
    *,
    force: bool,
    reason: str,
) -> Removal:
    """Delete a run that has ended. Published outputs, versions of datasets and captures stay where they are.

    Captures that wait for its rows are deleted with it.
    """
    if not force:
        waiting = waiting_captures(state, run_id)
        if waiting and state.stores.catalog.run(run_id).status.is_terminal:
            raise UserError(CAPTURES_WAITING.anywhere(run_id=run_id[:8], number=len(waiting)))
        for version in _versions_in_use(workspace, state):
            if any(author == run_id for author, _ in version.authors):
                raise UserError(
                    RUN_NEEDED.anywhere(dataset=version.dataset, version=version.version, run_id=run_id[:8])
                )
    root, folder = environment.storage_root, run_folder(run_id)
    known = taken_over(environment, state, utc_now())
    if run_id in known.waiting:
        raise UserError(RUN_REPEATED.anywhere(run_id=run_id[:8], rerun=known.waiting[run_id][:8]))
    freed = root.size(folder)
    state.stores.intake.delete(run_id, deleted_by=actor_name(), reason=reason)
    drop_waiting(environment, state, run_id)
    removed = Removable(RUN, run_id, reason or "requested", freed)
    Journal(root, state.ledger_writer).add(RemovalRecord(utc_now(), actor_name(), environment.name, removed))
    # Who names its files is asked once more, now that no other run can begin to.
    known = taken_over(environment, state, utc_now())
    hand_down(state, run_id, known)
    problems = tuple(release_tables(root, run_id, known.tags(run_id, {run_id})))
    remove_files(root, run_id, known, {run_id})
    return Removal(run_id, freed - root.size(folder), problems)


def _versions_in_use(workspace: PlannedProjects, state: CollectedState) -> list[DatasetVersion]:
    """The newest version of every dataset, and those that projects pin."""
    newest = list(state.datasets.datasets())
    every = [version for dataset in newest for version in state.datasets.versions(dataset.dataset)]
    pinned = pinned_versions(workspace, state, every)
    return newest + [version for version in every if (version.dataset, version.version) in pinned]


@dataclass(frozen=True, slots=True)
class OldLineage:
    """Frames, links and windows in the state store from before a moment, whichever environment has collected them."""

    pruner: TracePruner
    before: datetime
    kind: str = "lineage"

    def expired(self, now: datetime, without_runs: Collection[str] = ()) -> Sequence[Removable]:
        """What may be deleted: a line for each kind of record. It frees space in the database, not on disk."""
        del now, without_runs
        counts = {kept: self.pruner.count(kept, Age.before(self.before)) for kept in Kept}
        return [
            Removable(self.kind, kept.value, f"{count:,} from before {self.before:%Y-%m-%d %H:%M} UTC", 0)
            for kept, count in counts.items()
            if count
        ]

    def remove(self, thing: Removable) -> None:
        """Delete all of one kind."""
        self.pruner.prune(Kept(thing.name), Age.before(self.before))


def garbage_collector(
    workspace: PlannedProjects, environment: RunEnvironment, state: CollectedState, keep_lineage_days: int | None = None
) -> GarbageCollector:
    """The collector that `clew gc` and `Workspace.gc` use. Things other than runs come in as `others`.

    Lineage that programs have sent is kept for so many days, else for those of the environment, else forever.
    """
    others: list[Collectable] = [ExpiredCaptures(environment, state), LeftOfCaptures(environment, state)]
    days = environment.settings.retention.keep_lineage_days if keep_lineage_days is None else keep_lineage_days
    if days is not None:
        others.append(OldLineage(state.tracelink.pruner, state.stores.reader.now() - timedelta(days=days)))
    return GarbageCollector(workspace, environment, state, others=others, clock=state.stores.reader.now)
