"""Captures and emissions that have expired, or that a user deletes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from clew.captures.freezing import Reason
from clew.captures.manifests import DRAFT, Places
from clew.captures.queue import (
    CaptureOutcome,
    CaptureRecord,
    CaptureState,
    CaptureStatus,
    CaptureStore,
    Emission,
    EmissionStatus,
)
from clew.deferred import dataclass
from clew.runs.environment import RunEnvironment
from clew.runs.signals import actor_name
from clew.storage.removals import Journal, Removable, RemovalRecord
from clew.storage.root import StorageKey, StorageRoot


def remove_capture(places: Places, store: CaptureStore, record: CaptureRecord) -> int:
    """Delete a capture and its record. Returns the freed bytes."""
    freed = _remove_files(places, record)
    store.delete(record.capture_id)
    return freed


def waiting_captures(state: CaptureState, run_id: str) -> list[CaptureRecord]:
    """Captures and jobs that still need the rows of a run."""
    return [record for record in state.captures.of_run(run_id) if not record.status.is_over]


def drop_waiting(environment: RunEnvironment, state: CaptureState, run_id: str) -> list[CaptureRecord]:
    """Drop what waits for the rows of a deleted run. A worker drops what it has already taken."""
    gone = CaptureOutcome(drop_reason=Reason.RUN_REMOVED.value)
    queued = [record for record in waiting_captures(state, run_id) if record.status is CaptureStatus.QUEUED]
    dropped = [state.captures.drop(record.capture_id, gone) for record in queued]
    for record in dropped:
        if record.status is CaptureStatus.DROPPED:
            clear_attempts(Places(environment), record, lambda _name: True)
    return dropped


def clear_attempts(places: Places, record: CaptureRecord, is_left_over: Callable[[str], bool]) -> None:
    """Delete what failed attempts left of a capture, once the outcome that counts is stored."""
    if record.request is None:
        return
    for version in (None, DRAFT):
        store = places.captures(record.request.store, project_version=version)
        for name in filter(is_left_over, list(store.folders(record.capture_id))):
            store.remove(f"{record.capture_id}/{name}")


@dataclass(frozen=True, slots=True)
class ExpiredCaptures:
    """Captures, and what jobs sent, that have expired. The record that they existed stays."""

    environment: RunEnvironment
    state: CaptureState
    kind: str = "capture"

    def expired(self, now: datetime, without_runs: Collection[str] = ()) -> Sequence[Removable]:
        """What may be deleted. A capture does not depend on its run, which may be deleted already."""
        del without_runs
        places = Places(self.environment)
        return [
            Removable(
                self.kind,
                record.capture_id,
                f"{record.breakpoint}: expired on {record.expires_at.date() if record.expires_at else now.date()}",
                sum(root.size(key) for root, key in self._due(places, record, now)),
            )
            for record in self.state.captures.expired()
        ]

    def remove(self, thing: Removable) -> None:
        """Delete the files of an item. Of a job, those emissions that have expired: each has its own date."""
        record = self.state.captures.find(thing.name)
        if record is None:
            return
        places, now = Places(self.environment), self.state.stores.reader.now()
        if not record.status.is_over:
            clear_attempts(places, record, lambda _name: True)
        for root, key in self._due(places, record, now):
            root.remove(key)
        self.state.captures.mark_expired(thing.name, _without_expired(record.outcome, now))

    def _due(self, places: Places, record: CaptureRecord, now: datetime) -> list[tuple[StorageRoot, StorageKey]]:
        """What has expired of a record. What became a capture expires as one, unless its worker died before."""
        job = record.outcome.job
        if job is None:
            return _kept(places, record)
        return [
            places.within(path)
            for each in job.emissions
            if _is_due(each, now) and (each.capture_id is None or self.state.captures.find(each.capture_id) is None)
            for path in paths_of(each)
        ]


def collect_expired(environment: RunEnvironment, state: CaptureState) -> tuple[Removable, ...]:
    """Delete everything that has expired, and record that as `clew gc` does."""
    captures, journal = ExpiredCaptures(environment, state), Journal(environment.storage_root, state.ledger_writer)
    now = state.stores.reader.now()
    gone = tuple(captures.expired(now))
    for thing in gone:
        captures.remove(thing)
        journal.add(RemovalRecord(now, actor_name(), environment.name, thing))
    return gone


def _kept(places: Places, record: CaptureRecord) -> list[tuple[StorageRoot, StorageKey]]:
    """The folders and files that belong to a record alone."""
    outcome = record.outcome
    found = list[str]()
    if outcome.manifest is not None:
        found.append(outcome.manifest.folder.rpartition("/")[0])
    if outcome.job is not None:
        found += [path for each in outcome.job.emissions if not each.capture_id for path in paths_of(each)]
    return [places.within(shown) for shown in found]


def paths_of(emission: Emission) -> list[str]:
    """The file and its description, or the folder of a capture."""
    path = emission.path
    return [path.rpartition("/")[0]] if emission.capture_id is not None else [path, f"{path.rpartition('.')[0]}.json"]


def _is_due(emission: Emission, now: datetime) -> bool:
    return emission.status is not EmissionStatus.EXPIRED and emission.expires_at <= now


def _without_expired(outcome: CaptureOutcome, now: datetime) -> CaptureOutcome | None:
    """What is left of a job; None for a capture, of which nothing is."""
    if outcome.job is None:
        return None
    emissions = tuple(
        replace(each, status=EmissionStatus.EXPIRED) if _is_due(each, now) else each for each in outcome.job.emissions
    )
    return replace(outcome, job=replace(outcome.job, emissions=emissions))


def _remove_files(places: Places, record: CaptureRecord) -> int:
    freed = 0
    for root, key in _kept(places, record):
        freed += root.size(key)
        root.remove(key)
    return freed
