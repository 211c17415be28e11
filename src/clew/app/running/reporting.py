"""Telling somebody what a worker writes, while it writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.runs.events.envelope import NewEvent, StoredEvent
from clew.runs.stores import EventWriter


@dataclass(frozen=True, slots=True)
class ReportingWriter:
    """Writes events as another writer does, and hands each of them on once it is stored."""

    writer: EventWriter
    report: Callable[[StoredEvent], None]

    def append(
        self,
        run_id: str,
        events: Sequence[NewEvent],
        *,
        token: int | None = None,
        expected_seq: int | None = None,
    ) -> tuple[StoredEvent, ...]:
        """Store the events and report them, also those that were stored before and are written again."""
        stored = self.writer.append(run_id, events, token=token, expected_seq=expected_seq)
        for event in stored:
            self.report(event)
        return stored
