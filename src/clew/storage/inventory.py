"""What lies below a storage root, as lists for garbage collection, and the links that were worked out after a run.

Whether something is still needed is not known here; these lists say what there is, and what it looks like. Readers of
rows never list: events name what they read.
"""

from collections.abc import Collection, Iterator
from typing import get_args

from clew.deferred import dataclass
from clew.storage.committed import described_part
from clew.storage.layout import (
    DATASETS,
    PLANS,
    RUNS,
    folder_of,
    is_unfinished,
    part_folder,
    parts_folder,
    run_that_registered,
    scratch_folders,
)
from clew.storage.parts import Part, PartKind
from clew.storage.root import StorageKey, StorageRoot

_NAMED_BY_EVENTS: tuple[PartKind, ...] = tuple(kind for kind in get_args(PartKind) if kind != "links")


@dataclass(frozen=True, slots=True)
class StoredThing:
    """A folder or a file that garbage collection may have to remove."""

    key: StorageKey
    written: float
    """When something in it was written last, in seconds since 1970 by the clock of the store."""


def expanded_links(root: StorageRoot, run_id: str, seq: int) -> Part | None:
    """The links of a step that were worked out after the run."""
    return described_part(root, part_folder(run_id, "links", str(seq)))


def stored_runs(root: StorageRoot) -> list[str]:
    """The runs that have files, known or not."""
    return list(root.folders(RUNS))


def unnamed_in_run(root: StorageRoot, run_id: str, named: Collection[StorageKey]) -> Iterator[StoredThing]:
    """What attempts have written for a run and its events do not name, and what steps have worked on."""
    for kind in _NAMED_BY_EVENTS:
        for name in root.folders(parts_folder(run_id, kind)):
            yield from _unnamed_attempts(root, part_folder(run_id, kind, name), named)
    for seq in root.folders(parts_folder(run_id, "links")):
        yield from _unnamed_links(root, part_folder(run_id, "links", seq))
    for folder in scratch_folders(run_id):
        for name in root.folders(folder):
            yield thing_in(root, f"{folder}/{name}")


def _unnamed_attempts(root: StorageRoot, folder: StorageKey, named: Collection[StorageKey]) -> Iterator[StoredThing]:
    """The attempts in a folder that are not named: the folder itself where none is."""
    if folder in named:
        return
    attempts = [f"{folder}/{name}" for name in root.folders(folder)]
    if not any(attempt in named for attempt in attempts):
        yield thing_in(root, folder)
        return
    for attempt in attempts:
        if attempt not in named:
            yield thing_in(root, attempt)


def _unnamed_links(root: StorageRoot, folder: StorageKey) -> Iterator[StoredThing]:
    """Attempts at a batch of links that no description names. Those without one may still be at work.

    Where two have worked on a batch at once, the description of the step may name other files than that of the batch.
    """
    of_step = _named_by(root, folder)
    for batch in root.folders(folder):
        named = of_step | _named_by(root, f"{folder}/{batch}")
        for attempt in root.folders(f"{folder}/{batch}"):
            if f"{folder}/{batch}/{attempt}" not in named:
                yield thing_in(root, f"{folder}/{batch}/{attempt}")


def _named_by(root: StorageRoot, folder: StorageKey) -> set[StorageKey]:
    described = described_part(root, folder)
    return {folder_of(file.path) for file in described.files} if described is not None else set()


def stored_registrations(root: StorageRoot, named: Collection[StorageKey]) -> Iterator[tuple[str, StoredThing]]:
    """Registered rows in folders that are not named, with the run that has written them."""
    for dataset in root.folders(DATASETS):
        for name in root.folders(f"{DATASETS}/{dataset}"):
            for thing in _unnamed_attempts(root, f"{DATASETS}/{dataset}/{name}", named):
                yield run_that_registered(name), thing


def unfinished_plans(root: StorageRoot) -> Iterator[StoredThing]:
    """Plans that were being written."""
    for file in root.files(PLANS):
        if is_unfinished(file.name):
            yield StoredThing(file.key, file.modified)


def thing_in(root: StorageRoot, folder: StorageKey) -> StoredThing:
    """A folder, with the time of what was written to it last."""
    return StoredThing(folder, max((file.modified for file in root.files(folder)), default=0.0))
