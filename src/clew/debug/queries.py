"""Questions to DuckDB about files, in databases that are gone afterwards."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.trace import TRACE_INTEGRITY_ERROR
from clew.trace.sql import Sql

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""Nothing is fetched from anywhere."""


class Questions:
    """A database with some rows in it, read once, that several questions are put to."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection

    def keep(self, table: str, rows: Sql) -> Sql:
        """Read rows into a table; SQL for that table."""
        self._connection.execute((f"CREATE TEMP TABLE {table} AS " + rows).text, list(rows.parameters))
        return Sql(f"SELECT * FROM {table}")  # noqa: S608 - a name of ours

    def ask(self, sql: Sql | str) -> "pa.Table":
        """The rows that a query gives."""
        import duckdb

        query = Sql(sql) if isinstance(sql, str) else sql
        try:
            return self._connection.sql(query.text, params=list(query.parameters)).to_arrow_table()
        except duckdb.Error as error:
            raise EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=str(error))) from error

    def records(self, sql: Sql | str) -> list[dict[str, Any]]:
        """The same as Python values."""
        found: list[dict[str, Any]] = self.ask(sql).to_pylist()
        return found


@contextmanager
def questions() -> Iterator[Questions]:
    """A database that is gone afterwards."""
    import duckdb

    configuration = {**_CONFIGURATION, "temp_directory": tempfile.gettempdir()}
    with duckdb.connect(":memory:", config=configuration) as connection:
        yield Questions(connection)


def ask(sql: Sql | str) -> "pa.Table":
    """The rows that one query gives."""
    with questions() as asked:
        return asked.ask(sql)
