"""Brings a database to the present version of the schema, once, however many processes open it at the same time."""

from collections.abc import Sequence

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import STORE_TOO_NEW
from clew.store.database import Database
from clew.store.migrations.migration import Migration

_VERSION_TABLE = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL PRIMARY KEY)"
_PATIENCE = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'"
"""A migration may take longer than an event may."""


def migrate(database: Database, migrations: Sequence[Migration]) -> int:
    """Apply the steps that are missing, all in one transaction; the version that the schema now has."""
    newest = migrations[-1].version
    found = _present_version(database)
    if found < newest:
        with database.write() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(_PATIENCE)
            database.lock(connection, "schema")
            connection.exec_driver_sql(_VERSION_TABLE)
            found = _version(connection)
            for step in migrations:
                if step.version > found:
                    _apply(connection, step)
            found = max(found, newest)
    if found > newest:
        raise UserError(STORE_TOO_NEW.anywhere(found=found, known=newest))
    return found


def _apply(connection: sa.Connection, step: Migration) -> None:
    statements = step.postgresql() if connection.dialect.name == "postgresql" else step.sqlite()
    for statement in statements:
        connection.exec_driver_sql(statement)
    connection.execute(sa.text("INSERT INTO schema_version (version) VALUES (:version)"), {"version": step.version})


def _present_version(database: Database) -> int:
    with database.read() as connection:
        return _version(connection) if sa.inspect(connection).has_table("schema_version") else 0


def _version(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.text("SELECT COALESCE(MAX(version), 0) FROM schema_version")) or 0)
