"""Lines that several processes add to one file: each is there whole, or not at all.

A disk that is full takes as much of a line as fits. Half a line would spoil the next one, too, which would be added to
it.
"""

import errno
import fcntl
import os
from pathlib import Path

_FOR_ALL = 0o666
"""The mode of a new file, before what the process takes away from it."""


def append_line(path: Path, line: bytes, mode: int = _FOR_ALL) -> None:
    """Append a line, and return once it is on disk. Raises OSError if nothing was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, mode)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, line + b"\n", path)
    finally:
        os.close(descriptor)


def _write(descriptor: int, line: bytes, path: Path) -> None:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    if end and os.pread(descriptor, 1, end - 1) != b"\n":
        line = b"\n" + line  # what a machine has left behind that died amid a line stays by itself
    try:
        written = os.write(descriptor, line)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)
        raise
    if written != len(line):
        os.ftruncate(descriptor, end)
        raise OSError(errno.ENOSPC, "there is no room for the whole line", str(path))
