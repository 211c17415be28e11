"""What goes on in a database, counted."""

import sqlalchemy as sa

from clew.runs.activity import HeldLease, OutboxLoad
from clew.store.database import Database
from clew.store.schema import outbox, runs


class SqlActivity:
    """Looks at leases and at the outbox."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def leases(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[HeldLease, ...]:
        """Leases of runs, by owner."""
        statement = (
            sa.select(runs.c.run_id, runs.c.lease_owner, runs.c.token, runs.c.lease_expires_at)
            .add_columns(self._database.now().label("now"))
            .where(runs.c.lease_owner.is_not(None), *_mine(environment_id, tenant_id))
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
            .join(runs, runs.c.run_id == outbox.c.run_id)
            .where(*_mine(environment_id, tenant_id))
            .group_by(outbox.c.sink)
            .order_by(outbox.c.sink)
        )
        with self._database.read() as connection:
            return tuple(OutboxLoad(*row) for row in connection.execute(statement))


def _mine(environment_id: str, tenant_id: str | None) -> list[sa.ColumnElement[bool]]:
    conditions = [runs.c.environment_id == environment_id]
    return conditions if tenant_id is None else [*conditions, runs.c.tenant_id == tenant_id]
