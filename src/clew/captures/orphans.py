"""Files of captures and postlude jobs that no record names: of workers that died, or that were overtaken and wrote on.

Environments may share a storage root and sinks. So only files count that lie in a folder of a capture, or of a run with
captures or jobs, which the state store knows in this environment. Their records outlive the run.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime

from clew.captures.manifests import DRAFT, Places
from clew.captures.queue import CaptureRecord, CaptureState
from clew.captures.removal import paths_of
from clew.deferred import dataclass
from clew.definitions.settings import SinkType
from clew.runs.environment import RunEnvironment
from clew.storage.inventory import StoredThing, thing_in
from clew.storage.layout import WORKED_ON, run_worked_on
from clew.storage.removals import GRACE, Removable
from clew.storage.root import StorageKey, StorageRoot

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeftOfCaptures:
    """What was written for captures and jobs that are over, and that nothing names."""

    environment: RunEnvironment
    state: CaptureState
    kind: str = "capture-leftover"

    def expired(self, now: datetime, without_runs: Collection[str] = ()) -> Sequence[Removable]:
        """What may be deleted. Recent files are left alone: a worker that seems dead may still be writing."""
        del without_runs
        before, own = now - GRACE, self._places.captures(None)
        found = list[tuple[StorageRoot, StoredThing, str]]()
        for root in (own, *self._sinks(SinkType.CAPTURE_STORE)):
            found += _in_reach(root, self._attempts, "no capture names it")
        found += _in_reach(own, self._worked_on, "no job works on it")
        for root in self._sinks(SinkType.TRAINING_LOG):
            found += _in_reach(root, self._unnamed_logs, "no job has it on record")
        return [
            Removable(self.kind, f"{self._places.shown(root)}/{thing.key}", reason, root.size(thing.key))
            for root, thing, reason in found
            if thing.written < before.timestamp()
        ]

    def remove(self, thing: Removable) -> None:
        """Delete the files of an item."""
        root, key = self._places.within(thing.name)
        root.remove(key)

    # Where to look

    @property
    def _places(self) -> Places:
        return Places(self.environment)

    def _sinks(self, type_: SinkType) -> list[StorageRoot]:
        """The folders of sinks, also those of drafts; each once, though sinks may share one."""
        sinks = self.environment.settings.sinks.items()
        names = [name for name, sink in sinks if sink.type is type_]
        roots = [self._places.sink(name, version) for name in names for version in (None, DRAFT)]
        return list({root.address: root for root in roots}.values())

    # What is left

    def _attempts(self, root: StorageRoot) -> Iterator[StoredThing]:
        """Attempts at captures that are over, other than the one that counts."""
        for name in root.folders(""):
            record = self.state.captures.find(name)
            if record is None or not record.status.is_over:
                continue
            kept = _folder(record)
            for attempt in root.folders(name):
                if attempt != kept:
                    yield thing_in(root, f"{name}/{attempt}")

    def _worked_on(self, root: StorageRoot) -> Iterator[StoredThing]:
        """What jobs worked on, as far as no job of the run waits or works."""
        settled = dict[str, bool]()
        for name in root.folders(WORKED_ON):
            run_id = run_worked_on(name)
            if run_id not in settled:
                settled[run_id] = self._is_settled(run_id)
            if settled[run_id]:
                yield thing_in(root, f"{WORKED_ON}/{name}")

    def _unnamed_logs(self, root: StorageRoot) -> Iterator[StoredThing]:
        """Files in a folder of a run that no emission of its jobs names."""
        for run_id in root.folders(""):
            if not self._is_settled(run_id):
                continue
            named = set(self._named(run_id))
            for file in root.files(run_id):
                if f"{self._places.shown(root)}/{file.key}" not in named:
                    yield StoredThing(file.key, file.modified)

    def _named(self, run_id: str) -> Iterator[str]:
        for record in self.state.captures.of_run(run_id):
            if record.outcome.job is not None:
                for emission in record.outcome.job.emissions:
                    yield from paths_of(emission)

    def _is_settled(self, run_id: str) -> bool:
        """Whether a run had captures or jobs in this environment, and nothing more is written for it."""
        records = self.state.captures.of_run(run_id)
        return bool(records) and all(record.status.is_over for record in records)


def _in_reach(
    root: StorageRoot, look: Callable[[StorageRoot], Iterable[StoredThing]], reason: str
) -> list[tuple[StorageRoot, StoredThing, str]]:
    """What is found at a place. One that is out of reach keeps nothing else from being removed."""
    try:
        return [(root, thing, reason) for thing in look(root)]
    except OSError as error:
        _log.warning("cannot look for leftovers in %s: %s", root.address, error)
        return []


def _folder(record: CaptureRecord) -> StorageKey | None:
    """The attempt that a capture consists of, among those beside it."""
    manifest = record.outcome.manifest
    return manifest.folder.rpartition("/")[2] if manifest is not None else None
