"""The workspaces that `clew init` writes: the month close of a general ledger, and claims of an insurer."""

import errno
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from uuid import uuid4

from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import UNWRITABLE_FOLDER, WORKSPACE_EXISTS

_MARKER = "clew.yaml"
"""The file that makes a folder a workspace. It is put in place last."""


SAMPLES: Mapping[str, str] = {"ledger": "workspace", "insurance": "insurance"}
"""The folder of each sample, the one that is written by default first."""


def write_sample(target: Path, sample: str = "ledger") -> tuple[Path, ...]:
    """Write the sample workspace into a folder that is empty or does not exist yet.

    Gives the files, relative to the folder, in the order of their names. The folder becomes a workspace only when
    everything in it is complete; where that fails, nothing is left behind.
    """
    folder = target.absolute()
    _refuse_unless_free(folder, shown=target)
    try:
        if folder.exists():
            return _fill(folder, sample)
        return _create(folder, sample)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise UserError(WORKSPACE_EXISTS.anywhere(path=target)) from error
        raise UserError(UNWRITABLE_FOLDER.anywhere(path=target, reason=error.strerror or error)) from error


def _refuse_unless_free(folder: Path, *, shown: Path) -> None:
    if folder.is_dir():
        if any(folder.iterdir()):
            raise UserError(WORKSPACE_EXISTS.anywhere(path=shown))
    elif folder.exists():
        raise UserError(UNWRITABLE_FOLDER.anywhere(path=shown, reason="it is a file"))


def _create(folder: Path, sample: str) -> tuple[Path, ...]:
    """Write beside the folder to be, then rename: the folder appears at once and complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.parent / _staging_name(folder)
    try:
        written = _write_into(staging, sample)
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return written


def _fill(folder: Path, sample: str) -> tuple[Path, ...]:
    """Write inside the folder, then move up.

    The folder itself stays, since a shell may be standing in it; one that is renamed away would strand that shell.
    """
    staging = folder / _staging_name(folder)
    moved: list[Path] = []
    try:
        written = _write_into(staging, sample)
        for entry in sorted(staging.iterdir(), key=lambda entry: (entry.name == _MARKER, entry.name)):
            place = folder / entry.name
            entry.rename(place)
            moved.append(place)
    except OSError:
        for entry in moved:
            _remove(entry)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return written


def _staging_name(folder: Path) -> str:
    return f".{folder.name}.{uuid4().hex[:12]}.tmp"


def _write_into(folder: Path, sample: str) -> tuple[Path, ...]:
    written = []
    for path, resource in _walk(files("clew.sample").joinpath(SAMPLES[sample]), Path()):
        destination = folder / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.write_bytes(resource.read_bytes())
        written.append(path)
    return tuple(sorted(written))


def _walk(folder: Traversable, place: Path) -> Iterator[tuple[Path, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, place / entry.name)
        else:
            yield place / entry.name, entry


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
