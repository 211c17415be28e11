"""Version 8: entries of the outbox belong to an environment of a tenant, and no event is replaced by its id."""

from collections.abc import Sequence
from typing import ClassVar


class Version8:
    """Adds the owner to the outbox, taken from the run of each entry, and widens a guard of SQLite."""

    version: ClassVar[int] = 8

    def sqlite(self) -> Sequence[str]:
        """The columns, the index and the guard for SQLite."""
        return (*_OWNERS, *_SQLITE_GUARD)

    def postgresql(self) -> Sequence[str]:
        """The columns and the index for PostgreSQL, which has no REPLACE."""
        return _OWNERS


_OWNERS = (
    "ALTER TABLE outbox ADD COLUMN tenant_id VARCHAR(255) NOT NULL DEFAULT ''",
    "ALTER TABLE outbox ADD COLUMN environment_id VARCHAR(255) NOT NULL DEFAULT ''",
    """
    UPDATE outbox SET
        tenant_id = COALESCE((SELECT runs.tenant_id FROM runs WHERE runs.run_id = outbox.run_id), ''),
        environment_id = COALESCE((SELECT runs.environment_id FROM runs WHERE runs.run_id = outbox.run_id), '')
    """,
    "DROP INDEX ix_outbox_due",
    """
    CREATE INDEX ix_outbox_due ON outbox (tenant_id, environment_id, sink, due_at, entry_id) WHERE dead_since IS NULL
    """,
)

_SQLITE_GUARD = (
    "DROP TRIGGER run_events_are_never_replaced",
    """
    CREATE TRIGGER run_events_are_never_replaced BEFORE INSERT ON run_events
    WHEN EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_id = NEW.run_id
                 AND (e.run_seq = NEW.run_seq OR e.idempotency_key = NEW.idempotency_key
                      OR e.event_id = NEW.event_id))
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
)
