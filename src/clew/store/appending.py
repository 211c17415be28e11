"""Appending to a history inside a transaction: order, idempotency, chain, head and outbox, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND, TOO_LARGE_FOR_HISTORY
from clew.runs.events.chain import GENESIS, chain_hash
from clew.runs.events.codec import canonical_json, encode
from clew.runs.events.envelope import NewEvent, RawEvent, StoredEvent
from clew.runs.head import head_after
from clew.runs.refusals import PeriodBusy
from clew.runs.status import RunStatus
from clew.store.database import Database
from clew.store.rows import EVENT_COLUMNS, event_values, head_of, head_values, raw_event
from clew.store.schema import outbox, run_events, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOptions:
    """How a store appends."""

    adapter_version: str
    sinks: tuple[str, ...] = ()
    """The sinks that every event goes to."""
    chained: bool = False
    """Whether events carry the hash of the one before them."""
    max_event_bytes: int = 256_000


def locked_run(connection: sa.Connection, database: Database, run_id: str) -> sa.Row[Any]:
    """The run's row, which nobody else changes until the transaction ends, and the present moment as `now`.

    This lock is what gives `run_seq` its order and makes the check of the token and the append one thing.
    """
    statement = sa.select(runs, database.now().label("now")).where(runs.c.run_id == run_id).with_for_update()
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
    return row


def already_stored(connection: sa.Connection, run: sa.Row[Any], events: Sequence[NewEvent]) -> dict[str, StoredEvent]:
    """By idempotency key, those of the events that the history has."""
    keys = [event.key(run_id=run.run_id, plan_version=run.plan_version) for event in events]
    statement = sa.select(*EVENT_COLUMNS).where(
        run_events.c.run_id == run.run_id, run_events.c.idempotency_key.in_(keys)
    )
    return {raw.idempotency_key: raw.read() for raw in map(raw_event, connection.execute(statement))}


def append_to(
    connection: sa.Connection,
    run: sa.Row[Any],
    events: Sequence[NewEvent],
    stored: dict[str, StoredEvent],
    options: AppendOptions,
) -> tuple[StoredEvent, ...]:
    """Store what is not stored yet, behind the last event of the locked run."""
    fresh: list[NewEvent] = []
    raws: list[RawEvent] = []
    results: list[StoredEvent] = []
    previous = run.last_hash or GENESIS
    for event in events:
        key = event.key(run_id=run.run_id, plan_version=run.plan_version)
        if key not in stored:
            raw = _placed(event, run, key, run.last_seq + len(raws) + 1, options)
            if options.chained:
                raw = raw.with_hash(previous_hash=previous, own_hash=chain_hash(raw, previous))
                previous = raw.hash or previous
            fresh.append(event)
            raws.append(raw)
            stored[key] = StoredEvent(raw, event.body)
        results.append(stored[key])
    if raws:
        connection.execute(sa.insert(run_events), [event_values(raw) for raw in raws])
        _move_head(connection, run, fresh, raws, last_hash=previous if options.chained else run.last_hash)
        _fill_outbox(connection, raws, options.sinks)
    return tuple(results)


def _placed(event: NewEvent, run: sa.Row[Any], key: str, run_seq: int, options: AppendOptions) -> RawEvent:
    data: dict[str, object] = encode(event.body)
    size = len(canonical_json(data))
    if size > options.max_event_bytes:
        raise UserError(
            TOO_LARGE_FOR_HISTORY.anywhere(event_type=event.event_type, size=size, limit=options.max_event_bytes)
        )
    now: datetime = run.now
    return RawEvent(
        run_id=run.run_id,
        run_seq=run_seq,
        event_id=event.event_id,
        step_id=event.step_id,
        logical_attempt_id=event.logical_attempt_id,
        engine_attempt_id=event.engine_attempt_id,
        event_type=event.event_type,
        event_version=event.body.VERSION,
        event_data=data,
        idempotency_key=key,
        emitted_at=event.emitted_at,
        persisted_at=now,
        adapter_version=options.adapter_version,
        engine_run_ref=encode(event.engine_run_ref),
        caused_by_signal_id=event.caused_by_signal_id,
        parent_event_id=event.parent_event_id,
    )


def _move_head(
    connection: sa.Connection,
    run: sa.Row[Any],
    fresh: Sequence[NewEvent],
    raws: Sequence[RawEvent],
    *,
    last_hash: str | None,
) -> None:
    head = head_after(head_of(run), fresh)
    signals = [raw.run_seq for raw in raws if raw.event_type == "SignalAccepted"]
    values = {
        **head_values(head),
        "last_seq": raws[-1].run_seq,
        "last_signal_seq": max([run.last_signal_seq, *signals]),
        "last_hash": last_hash,
        "slot_held": _slot_held(head.status, run),
    }
    try:
        connection.execute(sa.update(runs).where(runs.c.run_id == run.run_id).values(values))
    except sa.exc.IntegrityError as error:
        raise PeriodBusy(project=run.project_id, period=run.period) from error


def _slot_held(status: RunStatus, run: sa.Row[Any]) -> str | None:
    if status.is_under_way:
        return str(run.slot)
    held: str | None = run.slot_held
    return None if status.is_terminal else held


def _fill_outbox(connection: sa.Connection, raws: Sequence[RawEvent], sinks: Sequence[str]) -> None:
    rows = [
        {"run_id": raw.run_id, "run_seq": raw.run_seq, "sink": sink, "attempts": 0, "due_at": raw.persisted_at}
        for raw in raws
        for sink in sinks
    ]
    if rows:
        connection.execute(sa.insert(outbox), rows)
