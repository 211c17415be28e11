"""DuckDB, for questions about many rows: one in-memory database for each trace, opened on first use."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.diagnostics import EngineBug
from clew.diagnostics.codes.trace import TRACE_INTEGRITY_ERROR
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import PartFile
from clew.storage.row_identity import RowIds
from clew.trace.run_parts import RunParts
from clew.trace.sql import Sql

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""Nothing is fetched from anywhere: what reading needs is built in."""


class TraceDatabase:
    """Answers queries over files. May be used by several threads."""

    def __init__(self, files: TraceFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def query(self, sql: Sql, files: Iterable[PartFile], tables: Mapping[str, "pa.Table"] | None = None) -> "pa.Table":
        """The rows that a query gives. `files` are those it reads, `tables` those it names beside them."""
        import duckdb

        read = list(files)
        for file in read:
            self._files.footer(file)
        cursor = self._cursor()
        try:
            for name, table in (tables or {}).items():
                cursor.register(name, table)
            return cursor.sql(sql.text, params=list(sql.parameters)).to_arrow_table()
        except duckdb.Error as error:
            found = self._files.first_unreadable(read)
            raise found or EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=str(error))) from error
        finally:
            cursor.close()

    def _cursor(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        with self._lock:
            if self._connection is None:
                configuration = {**_CONFIGURATION, "temp_directory": tempfile.gettempdir()}
                self._connection = duckdb.connect(":memory:", config=configuration)
            return self._connection.cursor()

    def close(self) -> None:
        """Free what the database holds."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A run, and what its files are read with."""

    run: RunParts
    row_ids: RowIds
    period: str
    files: TraceFiles
    database: TraceDatabase
