"""The history of a run in pages, for those who poll: with the gap that a page may have."""

from dataclasses import dataclass

from clew.app.running.reading import RunReader
from clew.runs.events.envelope import StoredEvent
from clew.runs.projection import Gap
from clew.runs.status import RunStatus


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events of a run, in order. Behind a gap none are given: who reads has to wait, or to resync by the snapshot."""

    run_id: str
    status: RunStatus
    last_seq: int
    """The newest event that the run had when it was looked at."""
    events: tuple[StoredEvent, ...]
    gap: Gap | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `clew events --json`, with what a poller needs."""
        return {
            "run_id": self.run_id,
            "status": self.status.value,
            "last_seq": self.last_seq,
            "stale": self.gap is not None,
            "gap": gap_to_json(self.gap),
            "events": [event.to_json() for event in self.events],
        }


def event_page(reader: RunReader, run: str, *, after: int, limit: int) -> EventPage:
    """The events of a run behind `after`, up to the first that is missing."""
    record = reader.find(run)
    # Read after the record: what the record counts must be there, unless it is missing.
    events = reader.events(record.run_id, after, limit)
    contiguous, gap = before_gap(events, after=after)
    if not events and record.last_seq > after:
        gap = Gap(after + 1, record.last_seq)
    return EventPage(record.run_id, record.status, record.last_seq, contiguous, gap)


def before_gap(events: tuple[StoredEvent, ...], *, after: int) -> tuple[tuple[StoredEvent, ...], Gap | None]:
    """The events up to the first gap behind `after`, and the gap."""
    for place, event in enumerate(events):
        expected = after + 1 + place
        if event.run_seq != expected:
            return events[:place], Gap(expected, event.run_seq)
    return events, None


def gap_to_json(gap: Gap | None) -> dict[str, int] | None:
    """What is missing."""
    return None if gap is None else {"expected_seq": gap.expected_seq, "found_seq": gap.found_seq}
