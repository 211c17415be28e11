"""Folders that only their owner may enter: `.clew` holds the state of runs, secrets and copies of data.

A folder from an earlier version, or one that was copied or unpacked, may be open to others. It is closed when it is
used again. Managed data below it need not be touched for that: who cannot enter the folder cannot reach its files.
"""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077
_DATA = frozenset({"storage", "sandbox"})
"""Folders with many files, of which only the ways in are closed, unless the folder above was open."""


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter, or close one that exists, with the files that lie in it."""
    if os.name != "posix":
        return
    try:
        folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        was_open = bool(folder.stat().st_mode & _OTHERS)
    except OSError:
        return  # whoever needs a file there says what is wrong
    open_to_others = [path for path in _inside(folder, everything=was_open) if not _close(path)]
    if not _close(folder):
        open_to_others.insert(0, folder)
    if open_to_others:
        others = f" and {len(open_to_others) - 1} more" if len(open_to_others) > 1 else ""
        _log.warning(
            "%s%s is open to other users of this machine and cannot be closed; its owner should run chmod go= on it",
            open_to_others[0],
            others,
        )


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner may read, unless it is there already."""
    if os.name == "posix" and not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, _FILE))


def _inside(folder: Path, *, everything: bool) -> Iterator[Path]:
    """What is in a folder, deepest first; of managed data only the folders that hold it, unless all is wanted."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir() and (everything or path.name not in _DATA):
            yield from _inside(path, everything=everything)
        yield path


def _close(path: Path) -> bool:
    """Take away what others may do with a file or folder; whether that is so now."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(_FOLDER if stat.S_ISDIR(mode) else (stat.S_IMODE(mode) & ~_OTHERS))
    except FileNotFoundError:
        return True  # another process has removed it
    except OSError:
        return False
    return True
