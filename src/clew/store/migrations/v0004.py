"""Version 4: API tokens, browser sessions, and who has read which rows."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types


class Version4:
    """Adds three tables, and guards that keep the access log as it is."""

    version: ClassVar[int] = 4

    def sqlite(self) -> Sequence[str]:
        """The tables and triggers for SQLite."""
        return (*_tables(SQLITE_TYPES), *_SQLITE_GUARDS)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return (*_tables(POSTGRESQL_TYPES), *_POSTGRESQL_GUARDS)


def _tables(types: Types) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE api_tokens (
            token_id VARCHAR(64) NOT NULL PRIMARY KEY,
            environment_id VARCHAR(255) NOT NULL,
            tenant_id VARCHAR(255) NOT NULL,
            name VARCHAR(255) NOT NULL,
            role VARCHAR(16) NOT NULL,
            secret_digest VARCHAR(64) NOT NULL,
            created_at {types.moment} NOT NULL,
            created_by VARCHAR(255) NOT NULL,
            expires_at {types.moment} NOT NULL,
            revoked_at {types.moment}
        )
        """,
        f"""
        CREATE TABLE browser_sessions (
            session_digest VARCHAR(64) NOT NULL PRIMARY KEY,
            environment_id VARCHAR(255) NOT NULL,
            tenant_id VARCHAR(255) NOT NULL,
            name VARCHAR(255) NOT NULL,
            role VARCHAR(16) NOT NULL,
            token_id VARCHAR(64),
            created_at {types.moment} NOT NULL,
            expires_at {types.moment} NOT NULL
        )
        """,
        f"""
        CREATE TABLE access_log (
            entry_id {types.entry_id},
            environment_id VARCHAR(255) NOT NULL,
            tenant_id VARCHAR(255) NOT NULL,
            actor VARCHAR(255) NOT NULL,
            role VARCHAR(16) NOT NULL,
            token_id VARCHAR(64),
            subject VARCHAR(32) NOT NULL,
            subject_id VARCHAR(255) NOT NULL,
            detail TEXT NOT NULL,
            read_at {types.moment} NOT NULL
        )
        """,
        "CREATE INDEX ix_access_log_tenant ON access_log (environment_id, tenant_id, entry_id)",
        "CREATE INDEX ix_access_log_subject ON access_log (subject_id, entry_id)",
    )


_SQLITE_GUARDS = (
    """
    CREATE TRIGGER access_log_never_changes BEFORE UPDATE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is append-only'); END
    """,
    """
    CREATE TRIGGER access_log_stays BEFORE DELETE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is append-only'); END
    """,
)

_POSTGRESQL_GUARDS = (
    """
    CREATE FUNCTION access_log_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the access log is append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER access_log_row_guard BEFORE UPDATE OR DELETE ON access_log
    FOR EACH ROW EXECUTE FUNCTION access_log_guard()
    """,
    """
    CREATE TRIGGER access_log_truncate_guard BEFORE TRUNCATE ON access_log
    FOR EACH STATEMENT EXECUTE FUNCTION access_log_guard()
    """,
)
