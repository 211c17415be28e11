"""The events of a run as they come, until it has ended."""

import time
from collections.abc import Callable, Iterator

from clew.app.running.event_pages import before_gap
from clew.app.running.state import State
from clew.runs.events.envelope import StoredEvent
from clew.runs.projection import Gap

_POLL_S = 0.3


def follow_events(state: State, run_id: str, *, on_gap: Callable[[Gap], None]) -> Iterator[StoredEvent]:
    """All events so far, then each new one. Ends with a run that has ended; a failed one may be reopened later.

    Where one is missing those behind it wait until it has come; `on_gap` is told of it once.
    """
    seen, known = 0, None
    while True:
        run = state.stores.catalog.run(run_id)
        events, gap = before_gap(state.stores.reader.events(run_id, after=seen), after=seen)
        for event in events:
            seen = event.run_seq
            yield event
        if gap is None and seen < run.last_seq:
            gap = Gap(seen + 1, run.last_seq)
        if gap is not None and gap != known:
            on_gap(gap)
        known = gap
        if run.status.is_terminal and gap is None:
            return
        time.sleep(_POLL_S)
