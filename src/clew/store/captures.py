"""Captures and postlude jobs in a database: the index, and the queue that workers take them from."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clew.captures.freezing import Fitting, Frozen, InFlight, Ticket
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureLease, CaptureOutcome, CaptureRecord, CaptureStatus, Overtaken
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import CAPTURE_NOT_FOUND
from clew.events.codec import encode
from clew.events.ledger import EntryKind
from clew.events.snapshot import RunStatus
from clew.store.capture_reading import CAPTURE_FIELDS, SqlCapturesOfRuns, capture_of
from clew.store.database import Database
from clew.store.ledger import CAPTURES, Ledger
from clew.store.schema import captures, runs

_ENDED = [status.value for status in RunStatus if status.is_terminal]
_QUEUED, _RUNNING, _READY = (each.value for each in (CaptureStatus.QUEUED, CaptureStatus.RUNNING, CaptureStatus.READY))


class SqlCaptureStore(SqlCapturesOfRuns):
    """The captures and jobs of one environment."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger | None = None) -> None:
        """The ledger vouches for records: what was asked for, and once they are over, all of them."""
        super().__init__(database, environment_id)
        self._database = database
        self._ledger = ledger

    # The index

    def enlist(self, wanted: Sequence[CaptureRecord]) -> tuple[CaptureRecord, ...]:
        """Add captures and jobs, each slot of a run once. Returns the records of all of them."""
        if not wanted:
            return ()
        with self._database.write(lock=self._lock) as connection:
            return tuple(self._taken_in(connection, new) for new in wanted)

    def find(self, capture_id: str) -> CaptureRecord | None:
        """A record by its full id. UserError ForgedRecord if it is not what the ledger vouches for."""
        mine = (captures.c.environment_id == self._environment) & (captures.c.capture_id == capture_id)
        with self._database.read() as connection:
            row = connection.execute(self._all().where(captures.c.capture_id == capture_id)).one_or_none()
            if row is not None and self._ledger is not None:
                stored = connection.execute(sa.select(captures).where(mine)).mappings()
                self._ledger.require_vouched(connection, CAPTURES, stored)
        return None if row is None else _record(row)

    def listed(
        self,
        *,
        tenant_id: str | None = None,
        run_id: str | None = None,
        request_id: str | None = None,
        status: CaptureStatus | None = None,
        limit: int = 50,
    ) -> tuple[CaptureRecord, ...]:
        """Captures without jobs, newest first. `run_id` may be the beginning of an id."""
        statement = self._all().order_by(captures.c.created_at.desc(), captures.c.capture_id).limit(limit)
        statement = statement.where(captures.c.kind == "capture")
        if tenant_id is not None:
            statement = statement.where(captures.c.tenant_id == tenant_id)
        if run_id is not None:
            statement = statement.where(captures.c.run_id.startswith(run_id, autoescape=True))
        if request_id is not None:
            statement = statement.where(captures.c.request_id == request_id)
        if status is not None:
            statement = statement.where(captures.c.status == status.value)
        with self._database.read() as connection:
            return tuple(map(_record, connection.execute(statement)))

    def publish(self, new: CaptureRecord, manifest: Manifest, lease: CaptureLease | None = None) -> CaptureRecord:
        """Add a finished capture. The same slot returns the capture that has it, with this manifest."""
        with self._database.write(lock=self._lock) as connection:
            if lease is not None and not self._held(connection, lease, {"token": lease.token}):
                raise Overtaken
            known = self._taken_in(connection, new)
            now = self._now(connection)
            values = {
                "status": _READY,
                "result": encode(CaptureOutcome(manifest=replace(manifest, capture_id=known.capture_id))),
                "completed_at": now,
                "started_at": now,
                "expires_at": manifest.expires_at,
            }
            self._set(connection, known.capture_id, values)
            return self._one(connection, known.capture_id)

    def expired(self, limit: int = 100) -> tuple[CaptureRecord, ...]:
        """Records that have waited too long or have something that expired, as far as no worker is at them."""
        now = self._database.now()
        has_files = captures.c.kind == sa.literal("job")
        statement = self._all().where(
            captures.c.expires_at <= now,
            _is_free(now),
            (captures.c.status != CaptureStatus.EXPIRED.value) | has_files,
        )
        with self._database.read() as connection:
            return tuple(map(_record, connection.execute(statement.order_by(captures.c.expires_at).limit(limit))))

    def mark_expired(self, capture_id: str, outcome: CaptureOutcome | None = None) -> None:
        """Record that what had expired was deleted."""
        with self._database.write(lock=self._lock) as connection:
            now = self._now(connection)
            is_due = _is_free(self._database.now()) & (captures.c.expires_at <= now)
            row = connection.execute(self._all().where(captures.c.capture_id == capture_id, is_due)).one_or_none()
            if row is None:
                return
            record = _record(row)
            left = outcome.expires_at if outcome is not None else None
            values: dict[str, object] = {} if outcome is None else {"result": encode(outcome)}
            if record.kind == "job" or record.status in {CaptureStatus.FAILED, CaptureStatus.DROPPED}:
                values["expires_at"] = left
            if not record.status.is_over or (record.status is CaptureStatus.READY and left is None):
                values |= {
                    "status": CaptureStatus.EXPIRED.value,
                    "completed_at": record.completed_at or now,
                    "reserved_bytes": 0,
                    "lease_owner": None,
                    "lease_expires_at": None,
                }
            if values:
                self._set(connection, capture_id, values, captures.c.token == row.token)

    def delete(self, capture_id: str) -> None:
        """Delete a record."""
        with self._database.write() as connection:
            mine = captures.c.capture_id == capture_id
            if self._ledger is not None:
                self._ledger.remove_rows(connection, EntryKind.CAPTURE_DELETED, CAPTURES, mine)
            else:
                connection.execute(sa.delete(captures).where(captures.c.environment_id == self._environment, mine))

    # The queue

    def unfrozen_runs(self, limit: int = 20) -> tuple[str, ...]:
        """Runs that have ended or are gone, and whose points are not frozen yet."""
        statement = (
            sa.select(captures.c.run_id)
            .outerjoin(runs, runs.c.run_id == captures.c.run_id)
            .where(
                captures.c.environment_id == self._environment,
                captures.c.completed_at.is_(None),
                captures.c.status == _QUEUED,
                captures.c.expires_at.is_(None),
                runs.c.status.in_(_ENDED) | runs.c.run_id.is_(None),
            )
            .distinct()
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(connection.scalars(statement).all())

    def keep_ticket(self, capture_id: str, ticket: Ticket, freeze_us: int) -> None:
        """Store the ticket of a waiting record that has none, while its run goes on."""
        with self._database.write() as connection:
            waits = (captures.c.status == _QUEUED) & captures.c.ticket.is_(None)
            self._set(connection, capture_id, {"ticket": encode(Frozen(ticket, freeze_us))}, waits)

    def freeze(
        self,
        capture_id: str,
        ticket: Ticket,
        freeze_us: int,
        decide: Callable[[InFlight], Fitting],
        *,
        waits_for: timedelta,
    ) -> CaptureRecord:
        """Let a waiting record be claimed, for so long. A ticket that it has already stays."""
        with self._database.write(lock=self._lock) as connection:
            record = self._one(connection, capture_id)
            if record.expires_at is not None or record.status is not CaptureStatus.QUEUED:
                return record
            known = record.frozen or Frozen(ticket, freeze_us)
            fitting = decide(self._in_flight(connection, capture_id))
            frozen = replace(known, mode=fitting.mode, sample_rows=fitting.sample_rows, steps=fitting.steps)
            values: dict[str, object] = {
                "ticket": encode(frozen),
                "reserved_bytes": fitting.reserved_bytes,
                "expires_at": self._now(connection) + waits_for,
            }
            if fitting.drop_reason is not None:
                outcome = CaptureOutcome(drop_reason=fitting.drop_reason.value, steps=fitting.steps)
                values |= self._ended(connection, CaptureStatus.DROPPED, outcome)
            self._set(connection, capture_id, values)
            return self._one(connection, capture_id)

    def drop(self, capture_id: str, outcome: CaptureOutcome) -> CaptureRecord:
        """End a waiting record without doing it. What an attempt at a job has sent stays on record."""
        with self._database.write(lock=self._lock) as connection:
            sent = self._one(connection, capture_id).outcome.job
            ended = self._ended(connection, CaptureStatus.DROPPED, replace(outcome, job=outcome.job or sent))
            self._set(connection, capture_id, ended, captures.c.status == _QUEUED)
            return self._one(connection, capture_id)

    def reopen(self, run_id: str, reasons: Sequence[str]) -> int:
        """Queue those records of a run again that were dropped for one of these reasons. Returns how many."""
        found = [
            record
            for record in self.of_run(run_id)
            if record.status is CaptureStatus.DROPPED and record.outcome.drop_reason in reasons
        ]
        with self._database.write(lock=self._lock) as connection:
            for record in found:
                waiting: dict[str, object] = {
                    "status": _QUEUED,
                    "ticket": None,
                    "result": None,
                    "completed_at": None,
                    "expires_at": None,
                    "reserved_bytes": 0,
                }
                self._set(connection, record.capture_id, waiting, captures.c.status == CaptureStatus.DROPPED.value)
        return len(found)

    def claim(self, *, owner: str, ttl_s: float, run_id: str | None = None) -> CaptureLease | None:
        """Take the frozen record that has waited longest, or whose worker is lost."""
        now = self._database.now()
        statement = (
            sa.select(captures, now.label("now"))
            .where(
                captures.c.environment_id == self._environment,
                captures.c.completed_at.is_(None),
                captures.c.ticket.is_not(None),
                captures.c.due_at <= now,
                ((captures.c.status == _QUEUED) & (captures.c.expires_at > now))
                | (
                    (captures.c.status == _RUNNING)
                    & (captures.c.lease_expires_at <= now)
                    & (captures.c.expires_at.is_(None) | (captures.c.expires_at > now))
                ),
            )
            .order_by(captures.c.due_at, captures.c.created_at, captures.c.seq, captures.c.slot)
            .limit(1)
            .with_for_update(of=captures, skip_locked=True)
        )
        if run_id is not None:
            statement = statement.where(captures.c.run_id == run_id)
        with self._database.write(lock=self._lock) as connection:
            row = connection.execute(statement).one_or_none()
            if row is None:
                return None
            values = {
                "status": _RUNNING,
                "token": row.token + 1,
                "attempts": row.attempts + 1,
                "lease_owner": owner,
                "lease_expires_at": row.now + timedelta(seconds=ttl_s),
                "started_at": row.started_at or row.now,
            }
            self._set(connection, row.capture_id, values)
            return CaptureLease(self._one(connection, row.capture_id), row.token + 1)

    def keep(self, lease: CaptureLease, *, ttl_s: float) -> bool:
        """Renew a lease; False if another worker has taken it."""
        with self._database.write() as connection:
            until = self._now(connection) + timedelta(seconds=ttl_s)
            return self._held(connection, lease, {"lease_expires_at": until})

    def finish(self, lease: CaptureLease, status: CaptureStatus, outcome: CaptureOutcome) -> bool:
        """End it, unless another worker has taken it by now."""
        with self._database.write() as connection:
            return self._held(connection, lease, self._ended(connection, status, outcome))

    def postpone(self, lease: CaptureLease, outcome: CaptureOutcome, *, delay_s: float) -> bool:
        """Return it to the queue, to be retried after a while."""
        with self._database.write() as connection:
            values = {
                "status": _QUEUED,
                "result": encode(outcome),
                "due_at": self._now(connection) + timedelta(seconds=delay_s),
                "lease_owner": None,
                "lease_expires_at": None,
            }
            return self._held(connection, lease, values)

    def note(self, lease: CaptureLease, outcome: CaptureOutcome) -> bool:
        """Record how far it is; False if another worker has taken it."""
        with self._database.write() as connection:
            return self._held(connection, lease, {"result": encode(outcome)})

    # Inside a transaction

    @property
    def _lock(self) -> str:
        return f"captures:{self._environment}"

    def _all(self) -> sa.Select[Any]:
        is_past = sa.case((captures.c.expires_at <= self._database.now(), True), else_=False).label("is_past")
        return sa.select(captures, is_past).where(captures.c.environment_id == self._environment)

    def _one(self, connection: sa.Connection, capture_id: str) -> CaptureRecord:
        row = connection.execute(self._all().where(captures.c.capture_id == capture_id)).one_or_none()
        if row is None:
            raise UserError(CAPTURE_NOT_FOUND.anywhere(capture_id=capture_id))
        return _record(row)

    def _now(self, connection: sa.Connection) -> datetime:
        now = connection.execute(sa.select(self._database.now())).scalar_one()
        assert isinstance(now, datetime)  # noqa: S101 -- for the type checker
        return now

    def _taken_in(self, connection: sa.Connection, new: CaptureRecord) -> CaptureRecord:
        known = connection.execute(
            self._all().where(captures.c.run_id == new.run_id, captures.c.slot == new.slot)
        ).one_or_none()
        if known is not None:
            return _record(known)
        now = self._now(connection)
        connection.execute(
            sa.insert(captures).values(
                capture_id=new.capture_id,
                environment_id=self._environment,
                tenant_id=new.tenant_id,
                run_id=new.run_id,
                slot=new.slot,
                kind=new.kind,
                request_id=new.request_id,
                breakpoint=new.breakpoint,
                seq=new.seq,
                status=_QUEUED,
                request=new.request.to_json() if new.request is not None else {},
                reserved_bytes=0,
                attempts=0,
                due_at=now,
                token=0,
                created_at=now,
            )
        )
        self._vouch(connection, EntryKind.CAPTURE_ADDED, new.capture_id)
        return self._one(connection, new.capture_id)

    def _vouch(
        self, connection: sa.Connection, kind: EntryKind, capture_id: str, *where: sa.ColumnElement[bool]
    ) -> None:
        if self._ledger is not None:
            self._ledger.add_rows(connection, kind, CAPTURES, captures.c.capture_id == capture_id, *where)

    def _in_flight(self, connection: sa.Connection, but: str) -> InFlight:
        statement = sa.select(sa.func.coalesce(sa.func.sum(captures.c.reserved_bytes), 0), sa.func.count()).where(
            captures.c.environment_id == self._environment,
            captures.c.completed_at.is_(None),
            captures.c.expires_at.is_not(None) | (captures.c.status == _RUNNING),
            captures.c.capture_id != but,
        )
        size, count = connection.execute(statement).one()
        return InFlight(int(size), int(count))

    def _ended(self, connection: sa.Connection, status: CaptureStatus, outcome: CaptureOutcome) -> dict[str, object]:
        return {
            "status": status.value,
            "result": encode(outcome),
            "completed_at": self._now(connection),
            "expires_at": outcome.expires_at,
            "reserved_bytes": 0,
            "lease_owner": None,
            "lease_expires_at": None,
        }

    def _held(self, connection: sa.Connection, lease: CaptureLease, values: dict[str, object]) -> bool:
        """Write what only the holder of the newest lease may."""
        is_mine = (captures.c.token == lease.token) & (captures.c.status == _RUNNING)
        return self._set(connection, lease.record.capture_id, values, is_mine)

    def _set(
        self,
        connection: sa.Connection,
        capture_id: str,
        values: dict[str, object],
        only_if: sa.ColumnElement[bool] | None = None,
    ) -> bool:
        condition = (captures.c.environment_id == self._environment) & (captures.c.capture_id == capture_id)
        statement = sa.update(captures).where(condition if only_if is None else condition & only_if)
        ledger = self._ledger
        vouched = ledger is None or ledger.vouches_for(connection, CAPTURES, captures.c.capture_id == capture_id)
        is_set = connection.execute(statement.values(values)).rowcount > 0
        if not vouched:  # what was edited before is not made good by the change
            return is_set
        if is_set and "completed_at" in values:
            self._vouch(connection, EntryKind.CAPTURE_ENDED, capture_id)
        elif is_set:
            self._vouch(connection, EntryKind.CAPTURE_ENDED, capture_id, captures.c.completed_at.is_not(None))
        return is_set


def _is_free(now: sa.ColumnElement[object]) -> sa.ColumnElement[bool]:
    """Whether no worker is at a record."""
    return (captures.c.status != _RUNNING) | (captures.c.lease_expires_at <= now)


def _record(row: sa.Row[Any]) -> CaptureRecord:
    return capture_of({name: getattr(row, name) for name in CAPTURE_FIELDS}, is_past=bool(row.is_past))
