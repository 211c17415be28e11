"""Version 5: captures and postlude jobs, waiting, going on and done."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types


class Version5:
    """Adds one table, which is queue and index at once."""

    version: ClassVar[int] = 5

    def sqlite(self) -> Sequence[str]:
        """The table for SQLite."""
        return _statements(SQLITE_TYPES)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return _statements(POSTGRESQL_TYPES)


def _statements(types: Types) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE captures (
            capture_id VARCHAR(64) NOT NULL PRIMARY KEY,
            environment_id VARCHAR(255) NOT NULL,
            tenant_id VARCHAR(255) NOT NULL,
            run_id VARCHAR(255) NOT NULL,
            slot VARCHAR(255) NOT NULL,
            kind VARCHAR(16) NOT NULL,
            request_id VARCHAR(255) NOT NULL,
            breakpoint VARCHAR(1000) NOT NULL,
            seq INTEGER NOT NULL,
            status VARCHAR(16) NOT NULL,
            request {types.json} NOT NULL,
            ticket {types.json},
            result {types.json},
            reserved_bytes BIGINT NOT NULL,
            attempts INTEGER NOT NULL,
            due_at {types.moment} NOT NULL,
            token BIGINT NOT NULL,
            lease_owner VARCHAR(255),
            lease_expires_at {types.moment},
            created_at {types.moment} NOT NULL,
            started_at {types.moment},
            completed_at {types.moment},
            expires_at {types.moment},
            UNIQUE (run_id, slot)
        )
        """,
        "CREATE INDEX ix_captures_newest ON captures (environment_id, created_at, capture_id)",
        "CREATE INDEX ix_captures_request ON captures (environment_id, request_id)",
        "CREATE INDEX ix_captures_open ON captures (environment_id, due_at) WHERE completed_at IS NULL",
        "CREATE INDEX ix_captures_expiring ON captures (environment_id, expires_at) WHERE status = 'ready'",
    )
