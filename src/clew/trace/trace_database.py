"""DuckDB, for questions about many rows: one in-memory database for each trace, opened on first use."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from clew import budgets
from clew.budgets import QuestionLimits
from clew.deferred import dataclass
from clew.diagnostics import EngineBug
from clew.diagnostics.codes.trace import TRACE_INTEGRITY_ERROR
from clew.diagnostics.foreign_words import without_quoted
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import PartFile
from clew.storage.row_identity import RowIds
from clew.trace.run_parts import RunParts
from clew.trace.sql import Sql

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from clew.storage.duckdb_files import RemoteFiles


_BATCH_ROWS = 100_000
_Result = TypeVar("_Result")


def connected(limits: QuestionLimits | None) -> "duckdb.DuckDBPyConnection":
    """A database in memory that fetches nothing from anywhere: what reading needs is built in."""
    import duckdb

    configuration: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": tempfile.gettempdir(),
    }
    if limits is not None:
        configuration["memory_limit"] = f"{limits.memory_bytes}B"
        configuration["max_temp_directory_size"] = f"{limits.spill_bytes}B"
    return duckdb.connect(":memory:", config=configuration)


def answered(connection: "duckdb.DuckDBPyConnection", sql: Sql) -> "pa.Table":
    """The rows that a query gives, within the budget of the question at hand.

    Raises duckdb.Error where the query fails for another reason.
    """
    return _within_budget(connection, lambda: _fetched(connection, sql))


def _executed(connection: "duckdb.DuckDBPyConnection", sql: Sql) -> None:
    """Do what a statement says, within the budget of the question at hand."""
    _within_budget(connection, lambda: connection.execute(sql.text, list(sql.parameters)))


def _within_budget(connection: "duckdb.DuckDBPyConnection", work: Callable[[], _Result]) -> _Result:
    import duckdb

    try:
        return budgets.interruptibly(work, connection.interrupt)
    except duckdb.InterruptException:
        budgets.check()
        raise
    except duckdb.OutOfMemoryException as error:
        budget = budgets.current()
        raise error if budget is None else budget.out_of_memory() from None


def _fetched(connection: "duckdb.DuckDBPyConnection", sql: Sql) -> "pa.Table":
    """The rows batch by batch, so that an answer that is too large is refused before all of it is there."""
    import pyarrow as pa

    relation, budget = connection.sql(sql.text, params=list(sql.parameters)), budgets.current()
    if budget is None:
        return relation.to_arrow_table()
    reader, batches, held = relation.to_arrow_reader(_BATCH_ROWS), list[pa.RecordBatch](), 0
    try:
        for batch in reader:
            held += batch.nbytes
            budget.hold(batch.nbytes)
            batches.append(batch)
    finally:
        reader.close()
        budget.release(held)
    return pa.Table.from_batches(batches, reader.schema)


class TraceDatabase:
    """Answers queries over files. May be used by several threads."""

    def __init__(self, files: TraceFiles, limits: QuestionLimits | None = None) -> None:
        self._files = files
        self._limits = limits
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._remote: RemoteFiles | None = None

    def query(self, sql: Sql, files: Iterable[PartFile], tables: Mapping[str, "pa.Table"] | None = None) -> "pa.Table":
        """The rows that a query gives. `files` are those it reads, `tables` those it names beside them."""
        return self._asked(answered, sql, files, tables)

    def _asked(
        self,
        ask: "Callable[[duckdb.DuckDBPyConnection, Sql], _Result]",
        sql: Sql,
        files: Iterable[PartFile],
        tables: Mapping[str, "pa.Table"] | None,
    ) -> _Result:
        import duckdb

        read = list(files)
        self.require_whole(read)
        cursor = self._cursor()
        self._give(cursor, sql, read)
        try:
            for name, table in (tables or {}).items():
                cursor.register(name, table)
            return ask(cursor, sql)
        except duckdb.Error as error:
            found = self._files.first_unreadable(read)
            raise found or EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=without_quoted(str(error)))) from error
        finally:
            cursor.close()

    def require_whole(self, files: Iterable[PartFile]) -> None:
        """Raise UserError if a file is not as it was written."""
        read = list(files)
        self._files.open_all(read)
        for file in read:
            self._files.require_whole(file)

    @contextmanager
    def kept(
        self, sql: Sql, files: Iterable[PartFile], tables: Mapping[str, "pa.Table"] | None = None
    ) -> Iterator[str]:
        """The rows that a query gives, as a table for further queries until the block ends; its name."""
        name = f"kept_{uuid.uuid4().hex}"
        self._asked(_executed, f"CREATE TABLE {name} AS " + sql, files, tables)
        try:
            yield name
        finally:
            with self._cursor() as cursor:  # even if the question has no time left
                cursor.execute(f"DROP TABLE {name}")

    def _give(self, cursor: "duckdb.DuckDBPyConnection", sql: Sql, files: Iterable[PartFile]) -> None:
        """Let DuckDB read the remote files of a query."""
        if not sql.remote:
            return
        from clew.storage.duckdb_files import RemoteFiles

        with self._lock:
            if self._remote is None:
                self._remote = RemoteFiles(cursor)
        by_name = {str(self._files.source(file)): file for file in files}
        for source in sql.remote:
            self._remote.give(str(source), partial(self._files.queried, by_name[str(source)]))

    def _cursor(self) -> "duckdb.DuckDBPyConnection":
        with self._lock:
            if self._connection is None:
                self._connection = connected(self._limits)
            return self._connection.cursor()

    def close(self) -> None:
        """Free what the database holds."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._remote is not None:
                self._remote.forget()
                self._remote = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A run, and what its files are read with."""

    run: RunParts
    row_ids: RowIds
    period: str
    files: TraceFiles
    database: TraceDatabase
