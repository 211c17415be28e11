"""The histories of runs, and saved snapshots, in a database."""

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.runs import UNFENCED_WRITE
from clew.events.bodies import SignalAccepted, SignalRejected
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.meanings import meaning_of
from clew.events.snapshot import RunSnapshot
from clew.runs.leases import LateWrite, OutOfDate
from clew.runs.stores import RecentSignals
from clew.store.appending import AlreadyStored, AppendOptions, RunHead, already_stored, append_to, locked_head
from clew.store.database import Database
from clew.store.ledger import Ledger
from clew.store.owner import Owner
from clew.store.reading import SqlHistory, SqlSavedSnapshots
from clew.store.schema import run_events, runs, snapshots


class SqlEventReader(SqlHistory):
    """Reads histories, and cannot write."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    def recent_signals(self, run_id: str, sender: str, *, seconds: float) -> RecentSignals:
        """How many signals a run got in the last seconds, accepted ones in all and those of one sender."""
        accepted = run_events.c.event_type == SignalAccepted.NAME
        mine = run_events.c.event_data["actor"].as_string() == sender
        since = self._database.read_clock() - timedelta(seconds=seconds)
        with self._database.read() as connection:
            statement = sa.select(sa.func.count().filter(accepted), sa.func.count().filter(mine)).where(
                run_events.c.run_id == run_id,
                run_events.c.event_type.in_([SignalAccepted.NAME, SignalRejected.NAME]),
                run_events.c.persisted_at > since,
            )
            return RecentSignals(*connection.execute(statement).one())


class SqlEventWriter:
    """Continues histories."""

    def __init__(self, database: Database, options: AppendOptions, ledger: Ledger) -> None:
        self._database = database
        self._options = options
        self._ledger = ledger

    def append(
        self,
        run_id: str,
        events: Sequence[NewEvent],
        *,
        token: int | None = None,
        expected_seq: int | None = None,
    ) -> tuple[StoredEvent, ...]:
        """Store all or none, in order, each at most once, if the token is the newest.

        Repeated events are rare, so they are looked up only once the database has refused one.
        """
        _check_fenced(events, token)
        try:
            with self._database.write() as connection:
                run = self._checked_run(connection, run_id, token)
                if expected_seq is None or expected_seq == run.last_seq:
                    return append_to(connection, run, events, {}, self._options, self._ledger)
        except AlreadyStored:
            pass
        with self._database.write() as connection:
            run = self._checked_run(connection, run_id, token)
            stored = already_stored(connection, run, events)
            if expected_seq is not None and expected_seq != run.last_seq and len(stored) < len(events):
                raise OutOfDate(run_id=run_id, expected=expected_seq, actual=run.last_seq)
            return append_to(connection, run, events, stored, self._options, self._ledger)

    def _checked_run(self, connection: sa.Connection, run_id: str, token: int | None) -> RunHead:
        run = locked_head(connection, self._database, run_id)
        if token is not None and token != run.token:
            raise LateWrite(run_id=run_id, token=token, current=run.token)
        return run


def _check_fenced(events: Sequence[NewEvent], token: int | None) -> None:
    for event in events:
        if token is None and meaning_of(event).needs_lease:
            raise EngineBug(UNFENCED_WRITE.anywhere(event_type=event.event_type))


_BEHIND = sa.text("projected_seq < last_seq")


class SqlSnapshots(SqlSavedSnapshots):
    """One saved snapshot per run, with its watermark."""

    def __init__(self, database: Database, owner: Owner) -> None:
        super().__init__(database)
        self._database = database
        self._owner = owner

    def save(self, snapshot: RunSnapshot) -> None:
        """Save a snapshot, unless there is a newer one or the run was deleted."""
        seq = snapshot.last_event_seq
        watermark = (
            sa.update(runs)
            .where(runs.c.run_id == snapshot.run_id, runs.c.projected_seq < seq)
            .values(projected_seq=seq)
        )
        with self._database.write() as connection:
            # The run's row is locked by this update, so no older snapshot can be saved in between.
            if connection.execute(watermark).rowcount == 0:
                return
            values = {"last_event_seq": seq, "document": snapshot.to_json()}
            known = sa.update(snapshots).where(snapshots.c.run_id == snapshot.run_id).values(values)
            if connection.execute(known).rowcount == 0:
                connection.execute(sa.insert(snapshots).values(run_id=snapshot.run_id, **values))

    def behind(self, limit: int, *, after: str = "") -> tuple[str, ...]:
        """Runs of the environment with events that their saved snapshot does not know, by id, from `after` on."""
        mine = self._owner.rows_of(runs) & (runs.c.run_id > after)
        statement = sa.select(runs.c.run_id).where(_BEHIND, mine).order_by(runs.c.run_id).limit(limit)
        with self._database.read() as connection:
            return tuple(connection.scalars(statement))
