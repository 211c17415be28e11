"""Lines at the end of a file that several processes write to."""

import fcntl
import os
from pathlib import Path


def append_line(path: Path, line: bytes) -> None:
    """Append a line, and return when it is on disk. OSError where it could not be, and then nothing was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        _write(stream.fileno(), line + b"\n")


def _write(descriptor: int, line: bytes) -> None:
    """A line is there as a whole or not at all: half of one would spoil the file for every reader."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    try:
        written = os.write(descriptor, line)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)
        raise
    if written != len(line):
        os.ftruncate(descriptor, end)
        raise OSError("there is no room for the whole line")
