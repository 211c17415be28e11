"""The history of a run in pages, for those who poll: with the gap that a page may have.

The events of a run: those that there are, or all as they come until it has ended. None is skipped.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clew.api.run_view import RunReader
from clew.api.state import State
from clew.events.envelope import StoredEvent
from clew.events.reducer import Gap
from clew.events.snapshot import RunStatus


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
            "gap": self.gap.to_json() if self.gap is not None else None,
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


_POLL_S = 0.3


def events_so_far(state: State, run_id: str, *, on_gap: Callable[[Gap], None]) -> Iterator[StoredEvent]:
    """All events up to the first that is missing, of which `on_gap` is told."""
    events, gap = _next(state, run_id, after=0, last=state.stores.catalog.run(run_id).last_seq)
    yield from events
    if gap is not None:
        on_gap(gap)


def follow_events(state: State, run_id: str, *, on_gap: Callable[[Gap], None]) -> Iterator[StoredEvent]:
    """All events so far, then each new one. Ends with a run that has ended; a failed one may be reopened later.

    Where one is missing those behind it wait until it has come; `on_gap` is told of it once.
    """
    seen, known = 0, None
    while True:
        run = state.stores.catalog.run(run_id)
        events, gap = _next(state, run_id, after=seen, last=run.last_seq)
        yield from events
        seen += len(events)
        if gap is not None and gap != known:
            on_gap(gap)
        known = gap
        if run.status.is_terminal and gap is None:
            return
        time.sleep(_POLL_S)


def _next(state: State, run_id: str, *, after: int, last: int) -> tuple[tuple[StoredEvent, ...], Gap | None]:
    """The events behind `after` up to the first that is missing, which may be one that only the run itself counts."""
    events, gap = before_gap(state.stores.reader.events(run_id, after=after), after=after)
    found = after + len(events)
    return events, gap if gap is not None or found >= last else Gap(found + 1, last)
