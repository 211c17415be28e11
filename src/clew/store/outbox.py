"""The outbox in a database: what event buses have not confirmed, and what was given up."""

import logging
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.runs.stores import DeadLetter, OutboxEntry
from clew.store.database import Database
from clew.store.owner import Owner
from clew.store.run_rows import EVENT_COLUMNS, RUN_COLUMNS, raw_event, run_record
from clew.store.schema import outbox, run_events, runs

_log = logging.getLogger(__name__)

_ALIVE = sa.text("dead_since IS NULL")


class SqlOutbox:
    """Entries of one environment, per event and bus. An entry is removed once its bus has confirmed it."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._mine = owner.rows_of(outbox)

    def take(self, bus: str, *, limit: int, hold_s: float) -> tuple[OutboxEntry, ...]:
        """Entries that are due, held for this caller for a while."""
        with self._database.read() as connection:
            if connection.execute(self._due(bus).limit(1)).first() is None:
                return ()
        with self._database.write() as connection:
            due = self._due(bus).limit(limit).with_for_update(of=outbox, skip_locked=True)
            rows = connection.execute(due).all()
            if not rows:
                return ()
            ids = [row.entry_id for row in rows]
            held = rows[0].now + timedelta(seconds=hold_s)
            connection.execute(sa.update(outbox).where(outbox.c.entry_id.in_(ids)).values(due_at=held))
            return _entries(connection, ids)

    def delivered(self, entry_ids: Collection[int]) -> None:
        """The bus has confirmed these."""
        if not entry_ids:
            return
        with self._database.write() as connection:
            connection.execute(sa.delete(outbox).where(self._mine, outbox.c.entry_id.in_(list(entry_ids))))

    def postpone(self, entry_id: int, *, error: str, delay_s: float) -> None:
        """Try this one again after a while."""
        self._failed(entry_id, error, lambda now: {"due_at": now + timedelta(seconds=delay_s)})

    def bury(self, entry_id: int, *, error: str) -> None:
        """Stop retrying this one until it is replayed."""
        self._failed(entry_id, error, lambda now: {"dead_since": now})

    def dead_letters(
        self, *, bus: str | None = None, tenant_id: str | None = None, limit: int = 100
    ) -> tuple[DeadLetter, ...]:
        """Dead letters, oldest first; none for a tenant other than the environment's."""
        statement = (
            sa.select(outbox, run_events.c.event_type)
            .join(run_events, _same_event())
            .where(self._mine, *_dead(bus, tenant_id))
            .order_by(outbox.c.entry_id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(map(_dead_letter, connection.execute(statement)))

    def replay(
        self, *, entry_ids: Collection[int] | None = None, bus: str | None = None, tenant_id: str | None = None
    ) -> int:
        """Send dead letters again."""
        statement = sa.update(outbox).where(self._mine, *_dead(bus, tenant_id))
        if entry_ids is not None:
            statement = statement.where(outbox.c.entry_id.in_(list(entry_ids)))
        with self._database.write() as connection:
            now = connection.scalar(sa.select(self._database.now()))
            return connection.execute(statement.values(dead_since=None, attempts=0, due_at=now)).rowcount

    def _due(self, bus: str) -> sa.Select[Any]:
        now = self._database.now()
        return (
            sa.select(outbox.c.entry_id, now.label("now"))
            .where(self._mine, outbox.c.sink == bus, _ALIVE, outbox.c.due_at <= now)
            .order_by(outbox.c.entry_id)
        )

    def _failed(self, entry_id: int, error: str, consequence: Callable[[datetime], dict[str, object]]) -> None:
        with self._database.write() as connection:
            now: Any = connection.scalar(sa.select(self._database.now()))
            values = {"attempts": outbox.c.attempts + 1, "error": error, **consequence(now)}
            connection.execute(sa.update(outbox).where(self._mine, outbox.c.entry_id == entry_id).values(values))


def _dead(bus: str | None, tenant_id: str | None) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = [outbox.c.dead_since.is_not(None)]
    if bus is not None:
        conditions.append(outbox.c.sink == bus)
    if tenant_id is not None:
        conditions.append(outbox.c.tenant_id == tenant_id)
    return conditions


def _same_event() -> sa.ColumnElement[bool]:
    return (run_events.c.run_id == outbox.c.run_id) & (run_events.c.run_seq == outbox.c.run_seq)


def _entries(connection: sa.Connection, ids: list[int]) -> tuple[OutboxEntry, ...]:
    statement = (
        sa.select(outbox.c.entry_id, outbox.c.sink, outbox.c.attempts, *EVENT_COLUMNS)
        .join(run_events, _same_event())
        .where(outbox.c.entry_id.in_(ids))
        .order_by(outbox.c.entry_id)
    )
    rows = connection.execute(statement).all()
    run_ids = {row.run_id for row in rows}
    records = {
        record.run_id: record
        for record in map(run_record, connection.execute(sa.select(*RUN_COLUMNS).where(runs.c.run_id.in_(run_ids))))
    }
    entries = list[OutboxEntry]()
    for row in rows:
        try:
            event = raw_event(row[3:]).read()
        except UserError as error:
            # A newer version of Clew has written it, and can send it: it is left to that one, and the others go.
            _log.warning("event %s of run %s is not sent: %s", row.run_seq, row.run_id, error)
            continue
        entries.append(OutboxEntry(row.entry_id, row.sink, row.attempts, records[row.run_id], event))
    return tuple(entries)


def _dead_letter(row: sa.Row[Any]) -> DeadLetter:
    return DeadLetter(
        entry_id=row.entry_id,
        bus=row.sink,
        run_id=row.run_id,
        run_seq=row.run_seq,
        event_type=row.event_type,
        attempts=row.attempts,
        error=row.error or "",
        dead_since=row.dead_since,
    )
