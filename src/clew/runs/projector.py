"""Keeps saved snapshots up with the events: from the watermark on, measuring the lag, halting at gaps.

A follower does the same for one run from events as they arrive, and knows when it has missed some.
"""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.events.envelope import StoredEvent
from clew.events.reducer import Gap, advance
from clew.events.snapshot import RunSnapshot
from clew.runs.alerts import Alert, RaisedAlert, raise_alert
from clew.runs.clock import Clock, utc_now
from clew.runs.limits import StoreLimits
from clew.runs.stores import EventReader, EventWriter, History, SavedSnapshots, SnapshotStore

_log = logging.getLogger(__name__)

_BATCH = 5000
_ROUND = 100


@dataclass(frozen=True, slots=True)
class Projected:
    """A snapshot as a reader gets it."""

    snapshot: RunSnapshot
    lag: timedelta
    """How long the oldest event had waited that this projection applied or still misses; zero where none had."""
    gap: Gap | None = None

    @property
    def is_stale(self) -> bool:
        """Whether events are missing, so that the snapshot may say less than what happened."""
        return self.gap is not None


class Projector:
    """Brings snapshots up to date. Keeps no state between calls, so it can be restarted anywhere."""

    def __init__(
        self,
        reader: EventReader,
        writer: EventWriter,
        snapshots: SnapshotStore,
        *,
        limits: StoreLimits | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._snapshots = snapshots
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._not_understood: set[str] = set()
        """Runs that the log has named once; whatever else is known is in the store."""

    def catch_up(self, run_id: str) -> Projected:
        """Apply what is new, save the snapshot, and raise the alerts that are due."""
        projected = self._project(run_id)
        if self._raise_alerts(projected):
            # An alert is an event too. If it were not projected now, it would look like lag the next time.
            self._project(run_id)
        return projected

    def look(self, run_id: str) -> Projected:
        """The current snapshot, without saving anything: for readers, who change nothing."""
        return look_at(run_id, self._reader, self._snapshots)

    def catch_up_all(self, limit: int = _ROUND) -> tuple[Projected, ...]:
        """Bring runs that are behind up to date, at most about `limit`.

        A run that cannot be read, such as one with events of a newer version of Clew, does not hold up the others.
        """
        done, after = list[Projected](), ""
        while len(done) < limit and (page := self._snapshots.behind(limit, after=after)):
            done.extend(projected for run_id in page if (projected := self._caught_up(run_id)) is not None)
            after = page[-1]
        return tuple(done)

    def _caught_up(self, run_id: str) -> Projected | None:
        try:
            return self.catch_up(run_id)
        except TransientFailure:
            raise
        except ClewError as error:
            if run_id not in self._not_understood:
                _log.warning("run %s cannot be brought up to date: %s", run_id, error)
            self._not_understood.add(run_id)
            return None

    def run(self, stop: threading.Event, *, poll_s: float = 0.5) -> None:
        """Keep snapshots current until stopped. Run this in a separate thread."""
        while not stop.is_set():
            try:
                projected = self.catch_up_all()
            except TransientFailure as away:
                _log.debug("snapshots cannot be brought up to date: %s", away)
                projected = ()
            except ClewError:
                _log.exception("snapshots cannot be brought up to date")
                projected = ()
            if len(projected) < _ROUND:
                stop.wait(poll_s)

    def _project(self, run_id: str) -> Projected:
        return _projected(run_id, self._reader, self._snapshots, self._snapshots.save)

    def _raise_alerts(self, projected: Projected) -> bool:
        """Whether there was reason for any."""
        is_late = projected.lag > timedelta(seconds=self._limits.lag_alert_s)
        run_id, watermark = projected.snapshot.run_id, projected.snapshot.last_event_seq
        if projected.gap is not None:
            gap = projected.gap
            alert = RaisedAlert(
                alert=Alert.PROJECTOR_GAP_DETECTED,
                message=f"event {gap.expected_seq} is missing; the next one is {gap.found_seq}",
                occasion=gap.expected_seq,
                details={"expected_seq": gap.expected_seq, "found_seq": gap.found_seq},
            )
            raise_alert(self._writer, run_id, alert, self._clock)
        if is_late:
            lag_ms = projected.lag // timedelta(milliseconds=1)
            alert = RaisedAlert(
                alert=Alert.PROJECTOR_LAG_HIGH,
                message=f"the snapshot was {lag_ms} ms behind the events",
                occasion=watermark,
                details={"lag_ms": lag_ms, "watermark": watermark},
            )
            raise_alert(self._writer, run_id, alert, self._clock)
        return is_late or projected.gap is not None


def look_at(run_id: str, history: History, snapshots: SavedSnapshots) -> Projected:
    """The current snapshot of a run, without saving anything: for readers, who change nothing."""
    return _projected(run_id, history, snapshots, _keep_nothing)


def _projected(
    run_id: str, history: History, snapshots: SavedSnapshots, save: Callable[[RunSnapshot], None]
) -> Projected:
    snapshot = snapshots.load(run_id) or RunSnapshot(run_id)
    lag, gap = timedelta(0), None
    while gap is None:
        events = history.events(run_id, after=snapshot.last_event_seq, limit=_BATCH)
        if not events:
            break
        # Both moments by one clock: that of the store, which dated the events.
        lag = max(lag, history.now() - events[0].persisted_at)
        progress = advance(snapshot, events)
        gap = progress.gap
        if progress.snapshot.last_event_seq > snapshot.last_event_seq:
            snapshot = progress.snapshot
            save(snapshot)
    return Projected(snapshot, lag, gap)


def _keep_nothing(_: RunSnapshot) -> None:
    return None


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
        """Add events. After a gap, they wait until it closes."""
        progress = advance(self.snapshot, (*self._waiting, *events))
        self.snapshot, self._waiting = progress.snapshot, progress.waiting
        return self.snapshot

    def resync(self, projector: Projector) -> RunSnapshot:
        """Fetch the snapshot again, and continue with the events that waited."""
        fetched = projector.look(self.snapshot.run_id).snapshot
        if fetched.last_event_seq > self.snapshot.last_event_seq:
            self.snapshot = fetched
        return self.feed()
