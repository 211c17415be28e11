"""The list of runs in a database, creating and deleting whole runs, and counts for operators."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_DELETED, RUN_NOT_DELETABLE
from clew.events.bodies import EventBody, RunRejected
from clew.events.codec import iso
from clew.events.envelope import NewEvent
from clew.events.ledger import EntryKind, LedgerNote
from clew.events.snapshot import RunStatus
from clew.runs.limits import Accepted, Admission, Load
from clew.runs.request import RunRecord, RunRequest
from clew.runs.stores import HeldLease, Intake, OutboxLoad
from clew.store.appending import AppendOptions, append_to, locked_run
from clew.store.database import Database
from clew.store.ledger import Ledger, request_digest
from clew.store.owner import Owner
from clew.store.reading import SqlRunList
from clew.store.run_rows import RUN_COLUMNS, new_run_values, run_record
from clew.store.schema import outbox, run_deletions, run_events, runs, snapshots, step_attempts, trace_blocks


class SqlRunCatalog(SqlRunList):
    """Lists runs."""

    def __init__(self, database: Database, owner: Owner) -> None:
        super().__init__(database)
        self._database = database
        self._owner = owner

    def load(self, environment_id: str) -> Load:
        """How busy an environment is."""
        with self._database.read() as connection:
            return load_of(connection, replace(self._owner, environment_id=environment_id))

    def deleted(self) -> frozenset[str]:
        """The runs that were deleted, by id."""
        with self._database.read() as connection:
            return frozenset(connection.scalars(sa.select(run_deletions.c.run_id)))


class SqlRunIntake:
    """Adds and removes whole runs."""

    def __init__(self, database: Database, options: AppendOptions, ledger: Ledger) -> None:
        self._database = database
        self._options = options
        self._ledger = ledger

    def create(
        self, request: RunRequest, *, run_id: str, approval_required: bool, decide: Callable[[Load], Admission]
    ) -> Intake:
        """Record a request and its admission, at most once per request."""
        with self._database.write(lock=f"queue:{request.environment_id}") as connection:
            known = _same_request(connection, request)
            if known is not None and not _was_rejected(connection, known):
                return Intake(run_record(known), None)
            admission = decide(replace(load_of(connection, _whose(request)), at=self._now(connection)))
            not_before = admission.not_before if isinstance(admission, Accepted) else None
            if known is None:
                self._insert(connection, request, run_id, not_before)
            else:
                run_id = known.run_id
            run = locked_run(connection, self._database, run_id)
            body = _admission_body(request, admission, approval_required=approval_required)
            if isinstance(admission, Accepted):
                _due(connection, run, not_before)
            if known is None or isinstance(admission, Accepted):
                append_to(connection, run, [NewEvent(body, emitted_at=run.now)], {}, self._options, self._ledger)
            return Intake(_record(connection, run_id), admission)

    def delete(self, run_id: str, *, deleted_by: str, reason: str) -> None:
        """Remove a run that has ended, leaving only the record that it existed."""
        with self._database.write() as connection:
            run = locked_run(connection, self._database, run_id)
            if not RunStatus(run.status).is_terminal:
                raise UserError(RUN_NOT_DELETABLE.anywhere(run_id=run_id, status=run.status))
            connection.execute(
                sa.insert(run_deletions).values(
                    run_id=run_id, deleted_at=run.now, deleted_by=deleted_by, reason=reason, last_seq=run.last_seq
                )
            )
            if self._options.owner.owns(run):
                deleted = {"last_seq": run.last_seq, "last_hash": run.last_hash, "by": deleted_by, "reason": reason}
                note = LedgerNote(EntryKind.RUN_DELETED, run_id, {**deleted, "at": iso(run.now)})
                self._ledger.add(connection, note)
            for table in (run_events, snapshots, outbox, step_attempts, runs):
                connection.execute(sa.delete(table).where(table.c.run_id == run_id))
            # The leases of a node say after which time it may mint ids, so nothing depends on the blocks of
            # runs that are gone: those of this one, and those that earlier versions of Clew have left behind.
            removed = sa.select(run_deletions.c.run_id)
            connection.execute(sa.delete(trace_blocks).where(trace_blocks.c.run_id.in_(removed)))

    def _insert(self, connection: sa.Connection, request: RunRequest, run_id: str, not_before: datetime | None) -> None:
        if connection.execute(sa.select(run_deletions.c.run_id).where(run_deletions.c.run_id == run_id)).first():
            raise UserError(RUN_DELETED.anywhere(run_id=run_id))
        values = new_run_values(request, run_id=run_id, now=self._now(connection), not_before=not_before)
        connection.execute(sa.insert(runs).values(values))
        if self._options.owner == _whose(request):
            row = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).mappings().one()
            content = {"request": request_digest(row)}
            self._ledger.add(connection, LedgerNote(EntryKind.RUN_CREATED, run_id, content))

    def _now(self, connection: sa.Connection) -> datetime:
        now = connection.execute(sa.select(self._database.now())).scalar_one()
        assert isinstance(now, datetime)  # noqa: S101 -- for the type checker
        return now


def _whose(request: RunRequest) -> Owner:
    return Owner(tenant_id=request.tenant_id, environment_id=request.environment_id)


def load_of(connection: sa.Connection, owner: Owner) -> Load:
    """How busy an environment is, as a transaction sees it. A run that a worker has taken counts as running."""
    taken = runs.c.slot_held.is_not(None)
    open_statuses = [RunStatus.PENDING.value, RunStatus.APPROVED.value, RunStatus.RUNNING.value]
    statement = sa.select(
        sa.func.count().filter(taken),
        sa.func.count().filter(~taken),
    ).where(owner.rows_of(runs), runs.c.status.in_(open_statuses))
    running, queued = connection.execute(statement).one()
    return Load(running, queued)


def _same_request(connection: sa.Connection, request: RunRequest) -> sa.Row[Any] | None:
    statement = sa.select(*RUN_COLUMNS).where(
        runs.c.tenant_id == request.tenant_id,
        runs.c.project_id == request.project_id,
        runs.c.environment_id == request.environment_id,
        runs.c.plan_id == request.plan.plan_id,
        runs.c.plan_version == request.plan.plan_version,
        runs.c.request_id == request.request_id,
    )
    return connection.execute(statement).one_or_none()


def _was_rejected(connection: sa.Connection, run: sa.Row[Any]) -> bool:
    """Whether the run was never taken in."""
    statement = sa.select(run_events.c.run_seq).where(
        run_events.c.run_id == run.run_id, run_events.c.event_type == "RunQueued"
    )
    return connection.execute(statement.limit(1)).first() is None


def _due(connection: sa.Connection, run: sa.Row[Any], not_before: datetime | None) -> None:
    moment = not_before if not_before is not None else run.now
    connection.execute(sa.update(runs).where(runs.c.run_id == run.run_id).values(not_before=moment))


def _admission_body(request: RunRequest, admission: Admission, *, approval_required: bool) -> EventBody:
    if isinstance(admission, Accepted):
        return request.queued(approval_required=approval_required, not_before=admission.not_before)
    return RunRejected(admission.reason, admission.retry_after_s)


def _record(connection: sa.Connection, run_id: str) -> RunRecord:
    return run_record(connection.execute(sa.select(*RUN_COLUMNS).where(runs.c.run_id == run_id)).one())


class SqlActivity:
    """Looks at leases and at the outbox."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def leases(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[HeldLease, ...]:
        """Leases of runs, by owner."""
        statement = (
            sa.select(runs.c.run_id, runs.c.lease_owner, runs.c.token, runs.c.lease_expires_at)
            .add_columns(self._database.now().label("now"))
            .where(runs.c.lease_owner.is_not(None), *_mine(runs, environment_id, tenant_id))
            .order_by(runs.c.lease_owner, runs.c.run_id)
        )
        with self._database.read() as connection:
            return tuple(
                HeldLease(row.run_id, row.lease_owner, row.token, row.lease_expires_at, row.lease_expires_at <= row.now)
                for row in connection.execute(statement)
            )

    def outbox(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[OutboxLoad, ...]:
        """What waits, by event bus."""
        alive = outbox.c.dead_since.is_(None)
        statement = (
            sa.select(
                outbox.c.sink,
                sa.func.count().filter(alive),
                sa.func.count().filter(alive, outbox.c.attempts > 0),
                sa.func.count().filter(~alive),
                sa.func.min(outbox.c.due_at).filter(alive),
                sa.func.max(outbox.c.error),
            )
            .where(*_mine(outbox, environment_id, tenant_id))
            .group_by(outbox.c.sink)
            .order_by(outbox.c.sink)
        )
        with self._database.read() as connection:
            return tuple(OutboxLoad(*row) for row in connection.execute(statement))


def _mine(table: sa.Table, environment_id: str, tenant_id: str | None) -> list[sa.ColumnElement[bool]]:
    conditions = [table.c.environment_id == environment_id]
    return conditions if tenant_id is None else [*conditions, table.c.tenant_id == tenant_id]
