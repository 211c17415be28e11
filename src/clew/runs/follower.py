"""Follows a run as its events come, and knows when it has missed some."""

from clew.events.envelope import StoredEvent
from clew.events.reducer import advance
from clew.events.snapshot import RunSnapshot
from clew.runs.projector import Projector


class RunFollower:
    """The state of one consumer. Feed it what arrives, in any order and with repetitions."""

    def __init__(self, run_id: str, snapshot: RunSnapshot | None = None) -> None:
        self.snapshot = snapshot or RunSnapshot(run_id)
        self._waiting: tuple[StoredEvent, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether an event is missing, so that the run may be further than it looks from here."""
        return bool(self._waiting)

    def feed(self, *events: StoredEvent) -> RunSnapshot:
        """Take events. Behind a gap they wait until it closes."""
        progress = advance(self.snapshot, (*self._waiting, *events))
        self.snapshot, self._waiting = progress.snapshot, progress.waiting
        return self.snapshot

    def resync(self, projector: Projector) -> RunSnapshot:
        """Fetch the snapshot anew, and go on with what waited."""
        fetched = projector.look(self.snapshot.run_id).snapshot
        if fetched.last_event_seq > self.snapshot.last_event_seq:
            self.snapshot = fetched
        return self.feed()
