"""The events of a run as they come, until it has ended."""

import time
from collections.abc import Iterator

from clew.app.running.state import State
from clew.runs.events.envelope import StoredEvent

_POLL_S = 0.3


def follow_events(state: State, run_id: str) -> Iterator[StoredEvent]:
    """All events so far, then each new one. Ends with a run that has ended; a failed one may be reopened later."""
    seen = 0
    while True:
        is_over = state.stores.catalog.run(run_id).status.is_terminal
        for event in state.stores.reader.events(run_id, after=seen):
            seen = event.run_seq
            yield event
        if is_over:
            return
        time.sleep(_POLL_S)
