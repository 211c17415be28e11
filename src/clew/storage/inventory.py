"""Lists what a storage root contains, for the lineage of runs and for garbage collection.

These lists say what there is and what it looks like, not whether it is still needed.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from clew.storage.committed import described_part
from clew.storage.layout import (
    DATASETS,
    PLANS,
    RUNS,
    outputs_folder,
    part_folder,
    parts_folder,
    run_that_registered,
    staging_of,
)
from clew.storage.parts import Part, PartKind
from clew.storage.root import StorageKey, StorageRoot

_NAMED_BY_EVENTS: tuple[PartKind, ...] = ("input", "created", "changes")


@dataclass(frozen=True, slots=True)
class StoredThing:
    """A folder or a file that garbage collection may have to remove."""

    key: StorageKey
    is_unfinished: bool
    """Whether its name says that it was still being written."""


# Lineage


def expanded_links(root: StorageRoot, run_id: str, seq: int) -> Part | None:
    """The links of a step that were worked out after the run."""
    return described_part(root, part_folder(run_id, "links", str(seq)))


def registered_parts(root: StorageRoot, run_id: str) -> Iterator[Part]:
    """What a run has kept for datasets."""
    for dataset in root.folders(DATASETS):
        for name in root.folders(f"{DATASETS}/{dataset}"):
            if staging_of(name) is None and run_that_registered(name) == run_id:
                part = described_part(root, f"{DATASETS}/{dataset}/{name}")
                if part is not None:
                    yield part


def pinned_inputs(root: StorageRoot) -> Iterator[tuple[str, str]]:
    """Every run, with the name of every input that it has pinned."""
    for run_id in root.folders(RUNS):
        for name in root.folders(parts_folder(run_id, "input")):
            if staging_of(name) is None:
                yield run_id, name


def pinned_part(root: StorageRoot, run_id: str, name: str) -> Part | None:
    """An input of a run; None where it has none with this name."""
    return described_part(root, part_folder(run_id, "input", name))


# Garbage


def stored_runs(root: StorageRoot) -> list[str]:
    """The runs that have files, known or not."""
    return list(root.folders(RUNS))


def unnamed_in_run(root: StorageRoot, run_id: str, named: Collection[StorageKey]) -> Iterator[StoredThing]:
    """Parts of a run that its events do not name, and rows that never reached their table."""
    for kind in _NAMED_BY_EVENTS:
        for name in root.folders(parts_folder(run_id, kind)):
            folder = part_folder(run_id, kind, name)
            if folder not in named:
                yield StoredThing(folder, staging_of(name) is not None)
    for folder in (outputs_folder(run_id), parts_folder(run_id, "links")):
        for name in root.folders(folder):
            if staging_of(name) is not None:
                yield StoredThing(f"{folder}/{name}", is_unfinished=True)


def stored_registrations(root: StorageRoot) -> Iterator[tuple[str, StoredThing, float]]:
    """Folders of registered rows, finished or not: run, folder, and when something in it was written last."""
    for dataset in root.folders(DATASETS):
        for name in root.folders(f"{DATASETS}/{dataset}"):
            folder = f"{DATASETS}/{dataset}/{name}"
            written = max((file.modified for file in root.files(folder)), default=0.0)
            yield run_that_registered(name), StoredThing(folder, staging_of(name) is not None), written


def unfinished_plans(root: StorageRoot) -> Iterator[tuple[StoredThing, float]]:
    """Plans that were being written, and when."""
    for file in root.files(PLANS):
        if staging_of(file.name) is not None:
            yield StoredThing(file.key, is_unfinished=True), file.modified
