"""Events as lines of JSON in a file."""

import fcntl
import os
from pathlib import Path

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.cloudevents import cloud_event_bytes
from clew.runs.stores import OutboxEntry


class FileSink:
    """Appends one line per event. Several processes may write to the same file."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    def deliver(self, entry: OutboxEntry) -> None:
        """Write the line, and return when it is on disk."""
        line = cloud_event_bytes(entry.run, entry.event) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                self._write(stream.fileno(), line)
        except OSError as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(sink=self._name, reason=str(error))) from error

    def _write(self, descriptor: int, line: bytes) -> None:
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
