"""Leases in a database: taking a run is one transaction, so two workers never take the same one."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.events.snapshot import RunStatus
from clew.runs.leases import Claim, LateWrite, Lease, LeaseNews, PeriodBusy, Wait, WaitReason
from clew.store.appending import locked_run, require_token
from clew.store.catalog import load_of
from clew.store.database import Database
from clew.store.owner import Owner
from clew.store.run_rows import head_of, run_record
from clew.store.schema import runs, step_attempts

_STARTABLE = (runs.c.status == RunStatus.APPROVED.value) | (
    (runs.c.status == RunStatus.PENDING.value) & (runs.c.approval_pending == 0)
)
_WAITING = sa.text("wants_worker = 1")
"""Spelled out, since a partial index is used only if its condition is in the statement."""


class SqlLeases:
    """Who drives which run, in the run's own row."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._owner = owner

    def claim(self, environment_id: str, *, owner: str, ttl_s: float, max_running: int) -> Claim | None:
        """Take the run that has waited longest and may continue now."""
        if not self._has_waiting(environment_id):
            return None
        try:
            with self._database.write(lock=f"queue:{environment_id}") as connection:
                has_room = load_of(connection, self._whose(environment_id)).running < max_running
                run = connection.execute(self._next(environment_id, has_room=has_room)).one_or_none()
                if run is None:
                    return None
                starts = RunStatus(run.status).is_startable and not run.approval_pending
                slot_held = run.slot if starts else run.slot_held
                return _take(connection, run, owner=owner, ttl_s=ttl_s, slot_held=slot_held)
        except PeriodBusy:
            return None

    def claim_run(self, run_id: str, *, owner: str, ttl_s: float, max_running: int) -> Claim | Wait:
        """Take one particular run under the rules of the queue."""
        try:
            # The name of the lock is read first: whoever has the lock of a queue may wait for a run, never the reverse.
            with self._database.write(lock=f"queue:{self._environment_of(run_id)}") as connection:
                run = locked_run(connection, self._database, run_id)
                if run.lease_expires_at is not None and run.lease_expires_at > run.now:
                    return Wait(WaitReason.HELD)
                starts = RunStatus(run.status).is_startable and not run.approval_pending
                wait = _not_yet(connection, run, max_running) if starts and run.slot_held is None else None
                if wait is not None:
                    return wait
                slot_held = run.slot if starts else run.slot_held
                return _take(connection, run, owner=owner, ttl_s=ttl_s, slot_held=slot_held)
        except PeriodBusy:
            return Wait(WaitReason.PERIOD_BUSY)

    def _environment_of(self, run_id: str) -> str:
        with self._database.read() as connection:
            name = connection.scalar(sa.select(runs.c.environment_id).where(runs.c.run_id == run_id))
        if name is None:
            raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
        return str(name)

    def acquire(self, run_id: str, *, owner: str, ttl_s: float) -> Claim | None:
        """Take one particular run without starting it, unless another worker holds it."""
        with self._database.write() as connection:
            run = locked_run(connection, self._database, run_id)
            if run.lease_expires_at is not None and run.lease_expires_at > run.now:
                return None
            return _take(connection, run, owner=owner, ttl_s=ttl_s, slot_held=run.slot_held)

    def keep(self, lease: Lease, *, ttl_s: float) -> LeaseNews:
        """Renew a lease, even an expired one, as long as no one else has taken the run."""
        with self._database.write() as connection:
            run = require_token(connection, self._database, lease)
            expires_at = run.now + timedelta(seconds=ttl_s)
            connection.execute(sa.update(runs).where(runs.c.run_id == lease.run_id).values(lease_expires_at=expires_at))
            return LeaseNews(Lease(lease.run_id, lease.token, lease.owner, expires_at), run.last_seq)

    def check(self, lease: Lease) -> None:
        """Raise LateWrite where the run was given to another worker."""
        with self._database.read() as connection:
            token = connection.scalar(sa.select(runs.c.token).where(runs.c.run_id == lease.run_id))
        if token != lease.token:
            raise LateWrite(run_id=lease.run_id, token=lease.token, current=token or 0)

    def release(self, lease: Lease, *, seen_seq: int) -> None:
        """Return a run. The token is used up, so that the former holder can no longer write."""
        with self._database.write() as connection:
            run = locked_run(connection, self._database, lease.run_id)
            if run.token != lease.token:
                return
            seen = max(run.seen_signal_seq, min(seen_seq, run.last_seq))
            head = replace(head_of(run), has_signal=run.last_signal_seq > seen)
            values = {
                "lease_owner": None,
                "lease_expires_at": None,
                "token": run.token + 1,
                "seen_signal_seq": seen,
                "wants_worker": int(head.wants_worker),
                "slot_held": run.slot if head.status.is_under_way else None,
            }
            connection.execute(sa.update(runs).where(runs.c.run_id == lease.run_id).values(values))

    def _whose(self, environment_id: str) -> Owner:
        """The environment by its name, of the same tenant: a worker never takes runs of another one."""
        return replace(self._owner, environment_id=environment_id)

    def _has_waiting(self, environment_id: str) -> bool:
        """Whether it is worth asking for the lock; idle workers check this all the time."""
        free = runs.c.lease_expires_at.is_(None) | (runs.c.lease_expires_at <= self._database.now())
        with self._database.read() as connection:
            waiting = sa.select(runs.c.run_id).where(_WAITING, self._whose(environment_id).rows_of(runs), free)
            return connection.execute(waiting.limit(1)).first() is not None

    def _next(self, environment_id: str, *, has_room: bool) -> sa.Select[Any]:
        now = self._database.now()
        other = runs.alias("other")
        period_is_free = ~sa.exists().where(other.c.slot_held == runs.c.slot, other.c.run_id != runs.c.run_id)
        may_start = period_is_free if has_room else sa.false()
        return (
            sa.select(runs, now.label("now"))
            .where(
                _WAITING,
                self._whose(environment_id).rows_of(runs),
                runs.c.lease_expires_at.is_(None) | (runs.c.lease_expires_at <= now),
                runs.c.not_before <= now,
                runs.c.slot_held.is_not(None) | ~_STARTABLE | may_start,
            )
            .order_by(runs.c.created_at, runs.c.run_id)
            .limit(1)
            .with_for_update(of=runs, skip_locked=True)
        )


class SqlAttempts:
    """Counts the platform's attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def next_engine_attempt(self, lease: Lease, step_id: str, logical_attempt_id: int) -> int:
        """The number of another platform attempt, for the holder of the lease only."""
        with self._database.write() as connection:
            require_token(connection, self._database, lease)
            this_one = (
                (step_attempts.c.run_id == lease.run_id)
                & (step_attempts.c.step_id == step_id)
                & (step_attempts.c.logical_attempt_id == logical_attempt_id)
            )
            count = connection.scalar(sa.select(step_attempts.c.engine_attempt_id).where(this_one))
            if count is None:
                key = {"run_id": lease.run_id, "step_id": step_id, "logical_attempt_id": logical_attempt_id}
                connection.execute(sa.insert(step_attempts).values(**key, engine_attempt_id=2))
                return 2
            connection.execute(sa.update(step_attempts).where(this_one).values(engine_attempt_id=count + 1))
            return int(count) + 1


def _not_yet(connection: sa.Connection, run: sa.Row[Any], max_running: int) -> Wait | None:
    """Why a run may not start now; None if it may. The period is left to the constraint of the database."""
    if run.not_before > run.now:
        return Wait(WaitReason.NOT_BEFORE, not_before=run.not_before)
    running = load_of(connection, Owner(tenant_id=run.tenant_id, environment_id=run.environment_id)).running
    return Wait(WaitReason.NO_PLACE, running=running) if running >= max_running else None


def _take(connection: sa.Connection, run: sa.Row[Any], *, owner: str, ttl_s: float, slot_held: str | None) -> Claim:
    lease = Lease(run.run_id, run.token + 1, owner, run.now + timedelta(seconds=ttl_s))
    values = {
        "token": lease.token,
        "lease_owner": owner,
        "lease_expires_at": lease.expires_at,
        "slot_held": slot_held,
    }
    try:
        connection.execute(sa.update(runs).where(runs.c.run_id == run.run_id).values(values))
    except sa.exc.IntegrityError as error:
        raise PeriodBusy(project=run.project_id, period=run.period) from error
    return Claim(lease, run_record(run))
