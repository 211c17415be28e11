"""A bus that appends events to a file, as lines of JSON.

Several processes may append to one file: a line is written whole, after the end of what is there.
"""

import fcntl
import os
from pathlib import Path

from clew.bus.event_bus import cloud_event_bytes
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.stores import OutboxEntry


def append_line(path: Path, line: bytes) -> None:
    """Append a line, and return once it is on disk. Raises OSError if nothing was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        _write(stream.fileno(), line + b"\n")


def _write(descriptor: int, line: bytes) -> None:
    """A line is written whole or not at all: half a line would spoil the file for every reader."""
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


class FileBus:
    """Appends one line per event. Several processes may write to the same file."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    def deliver(self, entry: OutboxEntry) -> None:
        """Write the line, and return when it is on disk."""
        self.announce(cloud_event_bytes(entry.run, entry.event))

    def announce(self, document: bytes) -> None:
        """The same for a document that is not about a run."""
        try:
            append_line(self._path, document)
        except OSError as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus=self._name, reason=str(error))) from error
