"""The events of a run: those that there are, or all as they come until it has ended. None is skipped."""

import time
from collections.abc import Callable, Iterator

from clew.app.running.event_pages import before_gap
from clew.app.running.state import State
from clew.runs.events.envelope import StoredEvent
from clew.runs.projection import Gap

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
