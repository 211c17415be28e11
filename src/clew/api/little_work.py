"""Whether there is so little to read that a JVM which ends with the run should save its preparations for long work.

The second compiler of the JVM and parallel collection of garbage pay only in long runs: in a run of a few thousand rows
they take a third of the time. All files that a run could read are counted, not those that it will: finding these takes
longer than it saves, and whoever has little has little of everything.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.definitions import Datasource, FilesDatasource
from clew.definitions.storage_addresses import parse_address
from clew.runs.environment import RunEnvironment
from clew.storage.layout import DATASETS

_LITTLE_BYTES = 8 * 2**20
_FEW_FILES = 1_000


def has_little_to_read(environment: RunEnvironment, datasources: Sequence[Datasource]) -> bool:
    """Whether all that lies in the datasources and is registered is on this machine, and small."""
    if not all(isinstance(each, FilesDatasource) for each in datasources):
        return False
    roots = [each.options.root for each in datasources if isinstance(each, FilesDatasource)]
    places = [parse_address(root, environment.root) for root in roots]
    storage = parse_address(environment.settings.storage_root, environment.root)
    if not isinstance(storage, Path):
        return False
    folders = [place for place in places if isinstance(place, Path)]
    return len(folders) == len(places) and _are_small([*folders, storage / DATASETS])


def _are_small(folders: Sequence[Path]) -> bool:
    total = 0
    for number, size in enumerate((size for folder in folders for size in _sizes(folder)), start=1):
        total += size
        if number > _FEW_FILES or total > _LITTLE_BYTES:
            return False
    return True


def _sizes(folder: Path) -> Iterator[int]:
    """The sizes of all files below a folder; what cannot be read counts for nothing, the run will say what is wrong."""
    for place, _folders, names in os.walk(folder):
        for name in names:
            try:
                yield os.stat(os.path.join(place, name)).st_size  # noqa: PTH118, PTH116 - called for each file
            except OSError:
                yield 0
