"""Files below the storage root that no event and no version names: what dead workers and failed attempts have left.

Only what certainly belongs to a run of this store is looked at: several stores may share a storage root.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from clew.app.running.collecting.collectable import Removable

RUNS, DATASETS = "runs", "datasets"
_KINDS = ("input", "created", "changes")
_STAGING = ".staging"


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, with the folders that its events name."""

    run_id: str
    folders: Collection[str]


def size_of(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def left_in_run(root: Path, run: Ended) -> Iterator[Removable]:
    """Parts of a run that has ended which it does not name."""
    for kind in _KINDS:
        for folder in _folders(root / RUNS / run.run_id / kind):
            name = folder.relative_to(root).as_posix()
            if name not in run.folders:
                reason = "a part that was not finished" if name.endswith(_STAGING) else "no event of the run names it"
                yield Removable("leftover", name, reason, size_of(folder))


def left_of_removed(root: Path, removed: Collection[str], exists: Callable[[str], bool]) -> Iterator[Removable]:
    """Folders of runs that were removed, by a removal that did not come to its end."""
    for folder in _folders(root / RUNS):
        if folder.name in removed and not exists(folder.name):
            name = folder.relative_to(root).as_posix()
            yield Removable("leftover", name, "its run was removed", size_of(folder))


def left_in_datasets(
    root: Path, named: Collection[str], ended: Callable[[str], bool], before: datetime
) -> Iterator[Removable]:
    """Rows that were to become a version of a dataset and did not; `named` are the folders of versions."""
    for dataset in _folders(root / DATASETS):
        for folder in _folders(dataset):
            name = folder.relative_to(root).as_posix()
            run_id = folder.name.removesuffix(_STAGING).rpartition("-")[0]
            if name not in named and ended(run_id) and folder.stat().st_mtime < before.timestamp():
                yield Removable("leftover", name, "no version of the dataset names it", size_of(folder))


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
