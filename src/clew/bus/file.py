"""A bus that appends events to a file, as lines of JSON.

Several processes may append to one file: a line is written whole, after the end of what is there.
"""

from pathlib import Path

from clew.bus.event_bus import cloud_event_bytes
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.stores import OutboxEntry
from clew.storage.whole_lines import append_line


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
