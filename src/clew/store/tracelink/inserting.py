"""Many rows of numbers into a table, those that are there already left out, as quickly as each database can."""

from collections.abc import Sequence

import sqlalchemy as sa


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[object, ...]]) -> int:
    """Insert rows whose values are in the order of the table's columns; how many were not there before."""
    if not rows:
        return 0
    columns = ", ".join(table.c.keys())
    if connection.dialect.name == "postgresql":
        arrays = ", ".join(f"%s::{_array_type(column)}[]" for column in table.c)
        statement = f"INSERT INTO {table.name} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
        return connection.exec_driver_sql(statement, tuple(map(list, zip(*rows, strict=True)))).rowcount
    places = ", ".join("?" for _ in table.c)
    statement = f"INSERT INTO {table.name} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def _array_type(column: sa.Column[object]) -> str:
    return "bigint" if isinstance(column.type, sa.Integer) else "text"
