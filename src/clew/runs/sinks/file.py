"""Events as lines of JSON in a file."""

from pathlib import Path

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.cloudevents import cloud_event_bytes
from clew.runs.sinks.line_file import append_line
from clew.runs.stores import OutboxEntry


class FileSink:
    """Appends one line per event. Several processes may write to the same file."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    def deliver(self, entry: OutboxEntry) -> None:
        """Write the line, and return when it is on disk."""
        try:
            append_line(self._path, cloud_event_bytes(entry.run, entry.event))
        except OSError as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(sink=self._name, reason=str(error))) from error
