"""The histories of runs, and saved snapshots, in a database."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.runs import UNFENCED_WRITE
from clew.events.bodies import RunContinued, SignalAccepted, SignalRejected
from clew.events.envelope import NewEvent, RawEvent, StoredEvent
from clew.events.meanings import meaning_of
from clew.events.snapshot import RunSnapshot
from clew.runs.leases import LateWrite, OutOfDate
from clew.runs.rotation import with_earlier_artifacts
from clew.runs.stores import RecentSignals
from clew.store.appending import AlreadyStored, AppendOptions, already_stored, append_to, locked_head
from clew.store.database import Database
from clew.store.ledger import Ledger
from clew.store.owner import Owner
from clew.store.run_rows import EVENT_COLUMNS, raw_event
from clew.store.schema import run_events, runs, snapshots

_PAGE = 2000


class SqlEventReader:
    """Reads histories, and cannot write."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """Events of a run in order, from the one behind `after` on."""
        return tuple(raw.read() for raw in self._raw(run_id, after, limit))

    def raw_events(self, run_id: str) -> Iterator[RawEvent]:
        """The whole history, page by page."""
        after = 0
        while page := self._raw(run_id, after, _PAGE):
            yield from page
            after = page[-1].run_seq

    def since_last_continuation(self, run_id: str) -> tuple[StoredEvent, ...]:
        """Events from the last RunContinued on, or all if there is none."""
        continued = (run_events.c.run_id == run_id) & (run_events.c.event_type == RunContinued.NAME)
        last = sa.select(sa.func.max(run_events.c.run_seq)).where(continued).scalar_subquery()
        recent = (run_events.c.run_id == run_id) & (run_events.c.run_seq >= sa.func.coalesce(last, 0))
        statement = sa.select(*EVENT_COLUMNS).where(continued | recent).order_by(run_events.c.run_seq)
        with self._database.read() as connection:
            read = [raw_event(row).read() for row in connection.execute(statement)]
        places = [place for place, event in enumerate(read) if isinstance(event.body, RunContinued)]
        start = places[-1] if places else 0
        earlier = [event.body for event in read[:start] if isinstance(event.body, RunContinued)]
        return with_earlier_artifacts(read[start:], earlier)

    def by_key(self, run_id: str, keys: Collection[str]) -> tuple[StoredEvent, ...]:
        """Events of a run that have one of these idempotency keys."""
        statement = (
            sa.select(*EVENT_COLUMNS)
            .where(run_events.c.run_id == run_id, run_events.c.idempotency_key.in_(list(keys)))
            .order_by(run_events.c.run_seq)
        )
        with self._database.read() as connection:
            return tuple(raw_event(row).read() for row in connection.execute(statement))

    def now(self) -> datetime:
        """The present moment by the clock of the database."""
        with self._database.read() as connection:
            return self._now(connection)

    def recent_signals(self, run_id: str, sender: str, *, seconds: float) -> RecentSignals:
        """How many signals a run got in the last seconds, accepted ones in all and those of one sender."""
        accepted = run_events.c.event_type == SignalAccepted.NAME
        mine = run_events.c.event_data["actor"].as_string() == sender
        with self._database.read() as connection:
            since = self._now(connection) - timedelta(seconds=seconds)
            statement = sa.select(sa.func.count().filter(accepted), sa.func.count().filter(mine)).where(
                run_events.c.run_id == run_id,
                run_events.c.event_type.in_([SignalAccepted.NAME, SignalRejected.NAME]),
                run_events.c.persisted_at > since,
            )
            return RecentSignals(*connection.execute(statement).one())

    def _now(self, connection: sa.Connection) -> datetime:
        now = connection.execute(sa.select(self._database.now())).scalar_one()
        assert isinstance(now, datetime)  # noqa: S101 -- for the type checker
        return now

    def _raw(self, run_id: str, after: int, limit: int | None) -> tuple[RawEvent, ...]:
        statement = (
            sa.select(*EVENT_COLUMNS)
            .where(run_events.c.run_id == run_id, run_events.c.run_seq > after)
            .order_by(run_events.c.run_seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(map(raw_event, connection.execute(statement)))


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

    def _checked_run(self, connection: sa.Connection, run_id: str, token: int | None) -> sa.Row[Any]:
        run = locked_head(connection, self._database, run_id)
        if token is not None and token != run.token:
            raise LateWrite(run_id=run_id, token=token, current=run.token)
        return run


def _check_fenced(events: Sequence[NewEvent], token: int | None) -> None:
    for event in events:
        if token is None and meaning_of(event).needs_lease:
            raise EngineBug(UNFENCED_WRITE.anywhere(event_type=event.event_type))


_BEHIND = sa.text("projected_seq < last_seq")


class SqlSnapshots:
    """One saved snapshot per run, with its watermark."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._owner = owner

    def load(self, run_id: str) -> RunSnapshot | None:
        """The saved snapshot."""
        with self._database.read() as connection:
            document = connection.scalar(sa.select(snapshots.c.document).where(snapshots.c.run_id == run_id))
        return RunSnapshot.from_json(document) if document is not None else None

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
