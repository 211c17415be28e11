"""Appending to a history inside a transaction: order, idempotency, chain, head and outbox, all or nothing."""

from collections.abc import Sequence
from dataclasses import field, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.deferred import dataclass
from clew.diagnostics import EngineBug, UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND, STORE_BROKEN_PROMISE, TOO_LARGE_FOR_HISTORY
from clew.events.bodies import SignalAccepted, SignalRejected
from clew.events.chain import GENESIS, KeySource, chain_hash
from clew.events.codec import canonical_json, encode
from clew.events.envelope import NewEvent, RawEvent, StoredEvent
from clew.events.ledger import EntryKind, LedgerNote
from clew.events.meanings import meaning_of
from clew.events.reducer import Head, head_after
from clew.events.snapshot import RunStatus
from clew.runs.leases import LateWrite, Lease, PeriodBusy
from clew.store.database import Database
from clew.store.driver_statements import DriverStatement, stored_moment
from clew.store.ledger import Ledger
from clew.store.owner import Owner
from clew.store.plain_sql import insert_into
from clew.store.reading import EVENT_FIELDS, moment
from clew.store.run_rows import EVENT_COLUMNS, event_values, head_of, head_values, raw_event
from clew.store.schema import Moment, outbox, run_events, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOptions:
    """How a store appends."""

    adapter_version: str
    owner: Owner = field(default_factory=Owner)
    buses: tuple[str, ...] = ()
    """The event buses that every event of a run of the owner goes to."""
    key: KeySource | None = None
    """Seals each event together with the one before it."""
    max_event_bytes: int = 256_000


@dataclass(frozen=True, slots=True)
class RunHead:
    """What appending needs of the row of a run, and the current time."""

    run_id: str
    tenant_id: str
    environment_id: str
    project_id: str
    period: str
    plan_version: str
    status: str
    approval_pending: int
    started_at: datetime | None
    completed_at: datetime | None
    last_seq: int
    last_signal_seq: int
    seen_signal_seq: int
    token: int
    slot: str
    slot_held: str | None
    last_hash: str | None
    now: datetime


LockedRun = sa.Row[Any] | RunHead
"""A run that no one else can change until the transaction ends."""

_MOMENT: sa.ColumnElement[object] = sa.bindparam("moment", type_=Moment)
_SERVER_MOMENT: sa.ColumnElement[object] = sa.func.clock_timestamp(type_=Moment)


def _lock_statement(now: sa.ColumnElement[object]) -> sa.Select[Any]:
    return sa.select(runs, now.label("now")).where(runs.c.run_id == sa.bindparam("wanted")).with_for_update()


# Statements that run for every event are built once: building them costs more than running them.
_LOCK_RUN_BY_CLOCK = _lock_statement(_MOMENT)
_LOCK_RUN_BY_SERVER = _lock_statement(_SERVER_MOMENT)
_HEAD_FIELDS = tuple(each.name for each in fields(RunHead) if each.name != "now")
_SELECT_HEAD = f"SELECT {', '.join(_HEAD_FIELDS)}"
_LOCK_HEAD = DriverStatement(
    f"{_SELECT_HEAD} FROM runs WHERE run_id = :wanted",
    postgresql=f"{_SELECT_HEAD}, clock_timestamp() FROM runs WHERE run_id = :wanted FOR UPDATE",
)
_INSERT_EVENT = DriverStatement(insert_into("run_events", EVENT_FIELDS))
_INSERT_OUTBOX = sa.insert(outbox)
_MOVED = (
    *("status", "approval_pending", "wants_worker", "started_at", "completed_at"),
    *("last_seq", "last_signal_seq", "last_hash", "slot_held"),
)
_MOVE_HEAD = DriverStatement(
    f"UPDATE runs SET {', '.join(f'{name} = :{name}' for name in _MOVED)} WHERE run_id = :wanted"  # noqa: S608 - our own names
)


def locked_run(connection: sa.Connection, database: Database, run_id: str) -> sa.Row[Any]:
    """The run's row, locked until the transaction ends, and the current time as `now`."""
    now = database.clock_time()
    if now is None:
        row = connection.execute(_LOCK_RUN_BY_SERVER, {"wanted": run_id}).one_or_none()
    else:
        row = connection.execute(_LOCK_RUN_BY_CLOCK, {"wanted": run_id, "moment": now}).one_or_none()
    if row is None:
        raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
    return row


def require_token(connection: sa.Connection, database: Database, lease: Lease) -> sa.Row[Any]:
    """The locked row of a run that a lease is still good for. LateWrite where the run was given to another worker."""
    run = locked_run(connection, database, lease.run_id)
    if run.token != lease.token:
        raise LateWrite(run_id=lease.run_id, token=lease.token, current=run.token)
    return run


def locked_head(connection: sa.Connection, database: Database, run_id: str) -> RunHead:
    """The same for what appending needs of the row.

    This lock orders `run_seq` and makes checking the token and appending atomic.
    """
    found = _LOCK_HEAD.rows(connection, {"wanted": run_id})
    if not found:
        raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
    values = dict(zip(_HEAD_FIELDS, found[0], strict=False))
    values |= {name: moment(values[name]) for name in ("started_at", "completed_at")}
    return RunHead(**values, now=database.clock_time() or moment(found[0][-1]))


class AlreadyStored(EngineBug):
    """One of the events is already stored, so appending has to look first. If it has looked, a promise is broken."""

    def __init__(self, reason: str) -> None:
        super().__init__(STORE_BROKEN_PROMISE.anywhere(reason=reason))


def already_stored(connection: sa.Connection, run: LockedRun, events: Sequence[NewEvent]) -> dict[str, StoredEvent]:
    """The events that the history already has, by idempotency key."""
    keys = [event.key(run_id=run.run_id, plan_version=run.plan_version) for event in events]
    statement = sa.select(*EVENT_COLUMNS).where(
        run_events.c.run_id == run.run_id, run_events.c.idempotency_key.in_(keys)
    )
    return {raw.idempotency_key: raw.read() for raw in map(raw_event, connection.execute(statement))}


def append_to(
    connection: sa.Connection,
    run: LockedRun,
    events: Sequence[NewEvent],
    stored: dict[str, StoredEvent],
    options: AppendOptions,
    ledger: Ledger,
) -> tuple[StoredEvent, ...]:
    """Store what is not stored yet, after the last event of the locked run."""
    seal = options.key() if options.key is not None else None
    fresh: list[NewEvent] = []
    raws: list[RawEvent] = []
    results: list[StoredEvent] = []
    previous = run.last_hash or GENESIS
    for event in events:
        key = event.key(run_id=run.run_id, plan_version=run.plan_version)
        if key not in stored:
            raw = _placed(event, run, key, run.last_seq + len(raws) + 1, options)
            if seal is not None:
                raw = raw.with_hash(previous_hash=previous, own_hash=chain_hash(raw, previous, seal))
                previous = raw.hash or previous
            fresh.append(event)
            raws.append(raw)
            stored[key] = StoredEvent(raw, event.body)
        results.append(stored[key])
    if raws:
        _insert(connection, raws)
        head = _move_head(connection, run, fresh, raws, last_hash=previous if seal is not None else run.last_hash)
        if options.owner.owns(run):
            _fill_outbox(connection, raws, options)
            _note_head(connection, fresh, raws, head, ledger)
    return tuple(results)


def _note_head(
    connection: sa.Connection, fresh: Sequence[NewEvent], raws: Sequence[RawEvent], head: Head, ledger: Ledger
) -> None:
    """Let the ledger know the last event where a run has ended or was told something, so that none is cut off."""
    last = {"last_seq": raws[-1].run_seq, "last_hash": raws[-1].hash}
    told = [
        {"signal": body.signal, "by": body.actor}
        for body in (event.body for event in fresh)
        if isinstance(body, SignalAccepted | SignalRejected)
    ]
    if told:
        ledger.add(connection, LedgerNote(EntryKind.RUN_SIGNALLED, raws[-1].run_id, {"signals": told, **last}))
    if head.status.is_terminal:
        ended = {"status": head.status.value, **last}
        ledger.add(connection, LedgerNote(EntryKind.RUN_ENDED, raws[-1].run_id, ended))


def _insert(connection: sa.Connection, raws: Sequence[RawEvent]) -> None:
    try:
        for raw in raws:
            _INSERT_EVENT.run(connection, _event_values(connection, raw))
    except sa.exc.IntegrityError as error:
        raise AlreadyStored(str(error.orig)) from error


def _event_values(connection: sa.Connection, raw: RawEvent) -> dict[str, object]:
    return event_values(raw) | {
        "event_data": canonical_json(raw.event_data),
        "engine_run_ref": None if raw.engine_run_ref is None else canonical_json(raw.engine_run_ref),
        "emitted_at": stored_moment(connection, raw.emitted_at),
        "persisted_at": stored_moment(connection, raw.persisted_at),
    }


def _placed(event: NewEvent, run: LockedRun, key: str, run_seq: int, options: AppendOptions) -> RawEvent:
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
    run: LockedRun,
    fresh: Sequence[NewEvent],
    raws: Sequence[RawEvent],
    *,
    last_hash: str | None,
) -> Head:
    head = head_after(head_of(run), fresh)
    signals = [raw.run_seq for event, raw in zip(fresh, raws, strict=True) if meaning_of(event).signal is not None]
    values = {
        **head_values(head),
        "last_seq": raws[-1].run_seq,
        "last_signal_seq": max([run.last_signal_seq, *signals]),
        "last_hash": last_hash,
        "slot_held": _slot_held(head.status, run),
        "started_at": stored_moment(connection, head.started_at),
        "completed_at": stored_moment(connection, head.completed_at),
        "wanted": run.run_id,
    }
    try:
        _MOVE_HEAD.run(connection, values)
    except sa.exc.IntegrityError as error:
        raise PeriodBusy(project=run.project_id, period=run.period) from error
    return head


def _slot_held(status: RunStatus, run: LockedRun) -> str | None:
    if status.is_under_way:
        return str(run.slot)
    held: str | None = run.slot_held
    return None if status.is_terminal else held


def _fill_outbox(connection: sa.Connection, raws: Sequence[RawEvent], options: AppendOptions) -> None:
    rows = [
        {
            "run_id": raw.run_id,
            "run_seq": raw.run_seq,
            "sink": bus,
            "attempts": 0,
            "due_at": raw.persisted_at,
            "tenant_id": options.owner.tenant_id,
            "environment_id": options.owner.environment_id,
        }
        for raw in raws
        for bus in options.buses
    ]
    if rows:
        connection.execute(_INSERT_OUTBOX, rows)
