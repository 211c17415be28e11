"""Whether a file that a run has read is still what it was then."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from clew.definitions import FilesDatasource, WorkspaceDefinitions
from clew.plan.local_files import local_folder
from clew.storage.local import sha256_of_file
from clew.storage.parts import Part, SourceRead

SourceState = Literal["same", "changed", "gone"]

_LARGEST = 256_000_000
"""Bytes of a file that are read again while someone waits."""
_SHA256 = "sha256:"


def state_of_source(
    parts: Iterable[Part], file: str, definitions: WorkspaceDefinitions, root: Path
) -> SourceState | None:
    """What has become of a file that a run has read, by the name that its trace has for it.

    None if that is not known: it lies in an object store, is large, or was read without its digest.
    """
    read = next((each for part in parts if part.kind == "input" for each in part.sources if each.name == file), None)
    if read is None or not (read.digest or "").startswith(_SHA256):
        return None
    datasources = [each for each in definitions.datasources if isinstance(each, FilesDatasource)]
    folders = [local_folder(each, root) for each in datasources]
    found = [place for folder in folders if folder is not None for place in _below(folder, file)]
    if not found:
        return None if None in folders else "gone"
    states = [_state(place, read) for place in found]
    return "same" if "same" in states else states[0]


def _below(folder: Path, file: str) -> Iterator[Path]:
    place = (folder / file).resolve()
    if place.is_relative_to(folder.resolve()) and place.is_file():
        yield place


def _state(place: Path, read: SourceRead) -> SourceState | None:
    try:
        size = place.stat().st_size
        if size != read.size:
            return "changed"
        if size > _LARGEST:
            return None
        return "same" if f"{_SHA256}{sha256_of_file(place)}" == read.digest else "changed"
    except OSError:
        return None
