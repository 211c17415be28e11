"""The garbage collector: finds what the retention rules of an environment no longer keep, and deletes it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from clew.deferred import dataclass
from clew.definitions.settings import RetentionSettings
from clew.diagnostics import ClewError, Diagnostic, UserError
from clew.gc.survey import (
    CollectedState,
    Ended,
    Needs,
    PlannedProjects,
    Survey,
    left_in_datasets,
    left_in_plans,
    left_in_run,
    left_of_removed,
    needs_of,
    survey,
)
from clew.gc.table_tags import release_tables
from clew.gc.taken_over import TakenOver, began_since, hand_down, removable, remove_files, taken_over
from clew.runs.clock import Clock, utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.registry import DatasetVersion
from clew.runs.request import RunRecord
from clew.runs.signals import actor_name
from clew.storage.layout import folder_of, run_folder, run_of_file
from clew.storage.removals import (
    DATASET_VERSION,
    GRACE,
    LEFTOVER,
    RUN,
    Collectable,
    Journal,
    Removable,
    RemovalRecord,
)
from clew.storage.root import StorageRoot


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which ended runs are kept: those that a rule keeps, or all if there is no rule."""

    days: int | None = None
    """Runs that ended no longer ago."""
    runs: int | None = None
    """So many runs of each project, the newest."""

    @property
    def keeps_all(self) -> bool:
        """Whether there is no rule."""
        return self.days is None and self.runs is None

    def expired(self, runs: Iterable[RunRecord], now: datetime) -> list[RunRecord]:
        """The runs that no rule keeps, of runs that come newest first. An unfinished run is never among them."""
        found, seen = list[RunRecord](), dict[str, int]()
        for run in runs:
            if not run.status.is_terminal or self.keeps_all:
                continue
            project = run.request.project_id
            seen[project] = seen.get(project, 0) + 1
            is_recent = self.days is not None and now - _end(run) <= timedelta(days=self.days)
            if not is_recent and (self.runs is None or seen[project] > self.runs):
                found.append(run)
        return found

    def __str__(self) -> str:
        rules = list[str]()
        if self.days is not None:
            rules.append(f"those of the last {self.days} days")
        if self.runs is not None:
            rules.append(f"{self.runs} of each project")
        return " and ".join(rules) or "all"


def usual_retention(settings: RetentionSettings) -> Retention:
    """The rules of an environment."""
    return Retention(days=settings.keep_days, runs=settings.keep_runs)


def _end(run: RunRecord) -> datetime:
    return run.completed_at or run.started_at or run.created_at


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run that no rule keeps, but that stays because something needs it."""

    run_id: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """The form of `gc --json`."""
        return {"run_id": self.run_id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Garbage:
    """What may be or was deleted, and what stays although it is old."""

    retention: Retention
    things: tuple[Removable, ...] = ()
    kept: tuple[KeptRun, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    """Why something could not be deleted."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(thing.size for thing in self.things)

    def to_json(self) -> dict[str, object]:
        """The form of `gc --json`."""
        return {
            "keep": {"days": self.retention.days, "runs": self.retention.runs},
            "removed": [thing.to_json() for thing in self.things],
            "kept": [run.to_json() for run in self.kept],
            "freed_bytes": self.size,
            "problems": [problem.to_json() for problem in self.problems],
        }


class GarbageCollector:
    """Finds and removes what an environment does not need."""

    def __init__(
        self,
        workspace: PlannedProjects,
        environment: RunEnvironment,
        state: CollectedState,
        *,
        others: Sequence[Collectable] = (),
        clock: Clock = utc_now,
    ) -> None:
        self._workspace = workspace
        self._environment = environment
        self._root = environment.storage_root
        self._state = state
        self._others = others
        self._clock = clock
        self._journal = Journal(self._root, state.ledger_writer)
        self._known: TakenOver | None = None
        self._gone = set[str]()

    def find(self, retention: Retention) -> Garbage:
        """What may be deleted. Nothing is changed."""
        root = self._root.listing_once()
        seen = survey(self._workspace, self._environment, self._state)
        old = retention.expired(seen.runs, self._clock())
        staying = ({run.run_id for run in seen.runs} - {run.run_id for run in old}) | seen.waited_for
        needs = needs_of(seen.versions, seen.pinned, seen.reads, staying)
        known = self._taken_over()
        repeated = {run_id: f"run {rerun[:8]} takes over from it" for run_id, rerun in known.waiting.items()}
        reasons = {**dict.fromkeys(seen.waited_for, "a capture of it is not finished"), **repeated, **needs.runs}
        going = [run for run in old if run.run_id not in reasons]
        things = [_old_run(root, run, retention) for run in going]
        gone = {run.run_id for run in going}
        things += _old_versions(root, seen, needs, gone)
        things += self._leftovers(root, seen, gone, known)
        for other in self._others:
            things += other.expired(self._clock(), gone)
        kept = tuple(KeptRun(run.run_id, reasons[run.run_id]) for run in old if run.run_id in reasons)
        return Garbage(retention, tuple(things), kept)

    def collect(self, retention: Retention) -> Garbage:
        """Delete what may be deleted, item by item, and record each deletion."""
        garbage = self.find(retention)
        self._known, self._gone = self._taken_over(), set()
        self._hand_down_again()
        gone, problems = list[Removable](), list[Diagnostic]()
        for thing in garbage.things:
            try:
                problems += self._remove(thing)
            except ClewError as error:
                problems += error.diagnostics
            else:
                gone.append(thing)
        return Garbage(retention, tuple(gone), garbage.kept, tuple(problems))

    # What may be deleted

    def _taken_over(self) -> TakenOver:
        return taken_over(self._environment, self._state, self._clock())

    def _leftovers(self, root: StorageRoot, seen: Survey, gone: set[str], known: TakenOver) -> Iterator[Removable]:
        before = self._clock() - GRACE
        ended = {
            run.run_id
            for run in seen.runs
            if run.status.is_terminal and (run.completed_at or run.created_at) < before and run.run_id not in gone
        }
        for run_id in sorted(ended):
            yield from left_in_run(root, Ended(run_id, seen.folders[run_id]), before)
        # Whoever dies right after deleting a run has not written it down: then only the state store knows.
        removed = self._journal.removed_runs() | self._state.stores.catalog.deleted()
        if known.is_known:
            held = known.held()
            yield from left_of_removed(root, removed, self._exists, lambda run_id: removable(root, run_id, held))
        named = _folders(seen.versions)
        yield from left_in_datasets(root, named, lambda run_id: run_id in ended | removed, before)
        yield from left_in_plans(root, before)

    def _exists(self, run_id: str) -> bool:
        try:
            self._state.stores.catalog.run(run_id)
        except UserError:
            return False
        return True

    # Deleting it

    def _remove(self, thing: Removable) -> list[Diagnostic]:
        """The state store is changed first, then the record is written, then the files are deleted.

        If that is interrupted, the next collection finds the rest. What could not be tidied up elsewhere is told.
        """
        problems = list[Diagnostic]()
        if thing.kind == RUN:
            self._state.stores.intake.delete(thing.name, deleted_by=actor_name(), reason=thing.reason)
            self._write_down(thing)
            self._gone.add(thing.name)
            known = self._known_now()
            hand_down(self._state, thing.name, known)
            problems += release_tables(self._root, thing.name, known.tags(thing.name, self._gone))
            remove_files(self._root, thing.name, known, self._gone)
        elif thing.kind == DATASET_VERSION:
            self._forget(thing)
        elif thing.kind == LEFTOVER:
            self._write_down(thing)
            self._root.remove(thing.name)
        else:
            self._remove_other(thing)
        return problems

    def _known_now(self) -> TakenOver:
        """What reruns need, asked again where one was requested in the meantime."""
        if self._known is None or began_since(self._environment, self._state, self._known.looked_at):
            self._known = self._taken_over()
        return self._known

    def _hand_down_again(self) -> None:
        """For a deletion that did not come to it: lineage finds the rows of runs that are gone in reruns of them."""
        known = self._known_now()
        for run_id in {run_id for found in known.folders.values() for run_id in map(run_of_file, found) if run_id}:
            if not self._exists(run_id):
                hand_down(self._state, run_id, known)

    def _forget(self, thing: Removable) -> None:
        dataset, _, number = thing.name.rpartition("@")
        versions = self._state.datasets.versions(dataset)
        leaving = [version for version in versions if version.version == int(number)]
        self._state.datasets.forget(dataset, int(number))
        self._write_down(thing)
        for folder in _folders(leaving) - _folders(self._state.datasets.versions(dataset)):
            self._root.remove(folder)

    def _remove_other(self, thing: Removable) -> None:
        for other in self._others:
            if other.kind == thing.kind:
                other.remove(thing)
        self._write_down(thing)

    def _write_down(self, thing: Removable) -> None:
        self._journal.add(RemovalRecord(self._clock(), actor_name(), self._environment.name, thing))


def _old_run(root: StorageRoot, run: RunRecord, retention: Retention) -> Removable:
    ended = run.completed_at or run.created_at
    reason = f"{run.request.project_id} for {run.request.period} ended on {ended.date()}; kept: {retention}"
    return Removable(RUN, run.run_id, reason, root.size(run_folder(run.run_id)))


def _old_versions(root: StorageRoot, seen: Survey, needs: Needs, gone: set[str]) -> Iterator[Removable]:
    """Unneeded versions of runs that are deleted or about to be."""
    there = {run.run_id for run in seen.runs} - gone
    leaving = [
        version
        for version in seen.versions
        if (version.dataset, version.version) not in needs.versions and version.run_id not in there
    ]
    staying = _folders(version for version in seen.versions if version not in leaving)
    for version in sorted(leaving, key=lambda version: (version.dataset, version.version)):
        freed = _folders([version]) - staying
        staying |= freed
        size = sum(root.size(folder) for folder in freed)
        name = f"{version.dataset}@{version.version}"
        yield Removable(DATASET_VERSION, name, f"run {version.run_id[:8]} is gone and the version is not needed", size)


def _folders(versions: Iterable[DatasetVersion]) -> set[str]:
    """The folders of the files of versions. Tables that are registered as they are belong to their owners."""
    return {folder_of(file.path) for version in versions for file in version.files}
