"""The events of a run: in pages for clients that poll, all events so far, or as they arrive until the run has ended.

No event is ever skipped: if one is missing, readers get a gap.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from clew.api.run_view import RunReader
from clew.api.state import State
from clew.deferred import dataclass
from clew.events.envelope import StoredEvent
from clew.events.reducer import Gap
from clew.events.snapshot import RunStatus
from clew.privacy.messages import as_seen, without_values
from clew.privacy.policy import PrivacyPolicy


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events of a run, in order, up to the first gap. After a gap, the reader must wait or resync from the snapshot."""

    run_id: str
    status: RunStatus
    last_seq: int
    """The newest event of the run at the time of reading."""
    events: tuple[StoredEvent, ...]
    gap: Gap | None = None

    def without_values(self) -> "EventPage":
        """The same page for callers who may not see values of rows, which messages of failures may quote."""
        return replace(self, events=without_values(self.events))

    def to_json(self) -> dict[str, object]:
        """The form of `clew events --json`, with what a polling client needs."""
        return {
            "run_id": self.run_id,
            "status": self.status.value,
            "last_seq": self.last_seq,
            "stale": self.gap is not None,
            "gap": self.gap.to_json() if self.gap is not None else None,
            "events": [event.to_json() for event in self.events],
        }


def event_page(reader: RunReader, run: str, *, after: int, limit: int) -> EventPage:
    """The events of a run after `after`, up to the first gap."""
    record = reader.find(run)
    # Read after the record: every event that the record counts must be there, or it is missing.
    events = reader.events(record.run_id, after, limit)
    contiguous, gap = before_gap(events, after=after)
    if not events and record.last_seq > after:
        gap = Gap(after + 1, record.last_seq)
    return EventPage(record.run_id, record.status, record.last_seq, contiguous, gap)


def before_gap(events: tuple[StoredEvent, ...], *, after: int) -> tuple[tuple[StoredEvent, ...], Gap | None]:
    """The events up to the first gap after `after`, and the gap."""
    for place, event in enumerate(events):
        expected = after + 1 + place
        if event.run_seq != expected:
            return events[:place], Gap(expected, event.run_seq)
    return events, None


_POLL_S = 0.3


def events_so_far(
    state: State, policy: PrivacyPolicy, run_id: str, *, on_gap: Callable[[Gap], None]
) -> Iterator[StoredEvent]:
    """All events up to the first gap, which is passed to `on_gap`."""
    events, gap = _next(state, run_id, after=0, last=state.stores.catalog.run(run_id).last_seq)
    yield from as_seen(policy, events)
    if gap is not None:
        on_gap(gap)


def follow_events(
    state: State, policy: PrivacyPolicy, run_id: str, *, on_gap: Callable[[Gap], None]
) -> Iterator[StoredEvent]:
    """All events so far, then each new one until the run has ended. A failed run may be reopened later.

    If an event is missing, later ones are held back until it arrives; `on_gap` is called once.
    """
    seen, known = 0, None
    while True:
        run = state.stores.catalog.run(run_id)
        events, gap = _next(state, run_id, after=seen, last=run.last_seq)
        yield from as_seen(policy, events)
        seen += len(events)
        if gap is not None and gap != known:
            on_gap(gap)
        known = gap
        if run.status.is_terminal and gap is None:
            return
        time.sleep(_POLL_S)


def _next(state: State, run_id: str, *, after: int, last: int) -> tuple[tuple[StoredEvent, ...], Gap | None]:
    """The events after `after` up to the first gap, which may be an event that only the run record counts."""
    events, gap = before_gap(state.stores.reader.events(run_id, after=after), after=after)
    found = after + len(events)
    return events, gap if gap is not None or found >= last else Gap(found + 1, last)
