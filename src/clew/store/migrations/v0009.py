"""Version 9: the ledger, one sealed chain of entries for each environment."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types


class Version9:
    """Adds the ledger, to which entries are only ever added."""

    version: ClassVar[int] = 9

    def sqlite(self) -> Sequence[str]:
        """The table and its guards for SQLite."""
        return (*_table(SQLITE_TYPES), *_SQLITE_GUARDS)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return (*_table(POSTGRESQL_TYPES), *_POSTGRESQL_GUARDS)


def _table(types: Types) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE ledger (
            tenant_id VARCHAR(255) NOT NULL,
            environment_id VARCHAR(255) NOT NULL,
            seq BIGINT NOT NULL,
            kind VARCHAR(32) NOT NULL,
            subject_id VARCHAR(255) NOT NULL,
            content {types.json} NOT NULL,
            recorded_at {types.moment} NOT NULL,
            key_id VARCHAR(16) NOT NULL,
            previous_hash VARCHAR(64) NOT NULL,
            hash VARCHAR(64) NOT NULL,
            PRIMARY KEY (tenant_id, environment_id, seq)
        )
        """,
        "CREATE INDEX ix_ledger_subject ON ledger (tenant_id, environment_id, subject_id)",
    )


_SQLITE_GUARDS = (
    """
    CREATE TRIGGER ledger_never_changes BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_is_never_replaced BEFORE INSERT ON ledger
    WHEN EXISTS (SELECT 1 FROM ledger AS e WHERE e.tenant_id = NEW.tenant_id
                 AND e.environment_id = NEW.environment_id AND e.seq = NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
)

_POSTGRESQL_GUARDS = (
    """
    CREATE FUNCTION ledger_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER ledger_never_changes BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION ledger_guard()
    """,
    """
    CREATE TRIGGER ledger_is_never_emptied BEFORE TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_guard()
    """,
)
