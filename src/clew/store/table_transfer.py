"""Tables of PostgreSQL as sources and destinations of runs, in batches, by COPY."""

import io
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Literal

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.diagnostics.foreign_words import without_quoted
from clew.lang.types import Kind, Type
from clew.plan.datasets import TableAddress

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CONNECT_TIMEOUT_S = 10
_BATCH_BYTES = 4 * 1024 * 1024
_AWAY = ("08", "53", "57", "58")
_ABOUT_VALUES = ("22", "23")
"""Classes of errors whose messages quote values: those of data, and of constraints."""
"""Classes of transient errors: connection, resources, shutdown, system."""
_DONE_TABLE = "clew_written"
"""What was written, so that a retry after a lost answer writes nothing twice."""

_TYPES = {
    Kind.STRING: "text",
    Kind.INTEGER: "bigint",
    Kind.DOUBLE: "double precision",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.NULL: "text",
}


class PostgresqlTables:
    """Reads and writes tables of PostgreSQL. Every call uses a separate connection."""

    def columns(self, address: TableAddress) -> tuple[str, ...]:
        """The names of the table's columns, in order."""
        with _connected(address) as connection:
            cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(_name(address)))
            return tuple(column.name for column in cursor.description or ())

    def read(
        self, address: TableAddress, columns: Sequence[str], where: tuple[str, Sequence[str]] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows as batches of texts; `where` is a column and the values it may have."""
        statement = _copy_out(address, columns, where)
        with _connected(address) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
            chunks = _Chunks(iter(copy))
            try:
                stream = io.BufferedReader(chunks, _BATCH_BYTES)
                if stream.peek(1):
                    yield from _batches(stream, columns)
            finally:
                chunks.stop()

    def write(
        self,
        address: TableAddress,
        columns: Sequence[tuple[str, Type]],
        batches: Iterable[pa.RecordBatch],
        *,
        mode: Literal["overwrite", "append"],
        once: str,
    ) -> int:
        """Write the batches in one transaction and give the number of rows.

        Writers of the same table wait for each other, or two that overwrite it at once would leave both their rows.
        """
        with _connected(address) as connection:
            _create_notes(connection, address)
            _wait_for_others(connection, _name(address))
            done = _done_before(connection, address, once)
            if done is not None:
                return done
            connection.execute(_create(address, columns))
            if mode == "overwrite":
                connection.execute(sql.SQL("DELETE FROM {}").format(_name(address)))
            rows = _copy_in(connection, address, [name for name, _ in columns], batches)
            connection.execute(
                sql.SQL("INSERT INTO {} (once, rows) VALUES (%s, %s)").format(_done_name(address)), (once, rows)
            )
            return rows


@contextmanager
def _connected(address: TableAddress) -> Iterator[psycopg.Connection]:
    """A transaction on a connection; errors are reported in one line, without the password."""
    try:
        with psycopg.connect(
            address.url, password=address.password, connect_timeout=_CONNECT_TIMEOUT_S, application_name="clew"
        ) as connection:
            connection.execute("SET DateStyle = 'ISO'; SET TimeZone = 'UTC'; SET extra_float_digits = 1")
            yield connection
    except psycopg.Error as error:
        raise _converted(error, address) from None


def _converted(error: psycopg.Error, address: TableAddress) -> ClewError:
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if address.password:
        reason = reason.replace(address.password, "***")
    if (error.sqlstate or "").startswith(_ABOUT_VALUES):
        reason = without_quoted(reason)
    diagnostic = SOURCE_UNAVAILABLE.anywhere(problem=f"the table {address.table} cannot be used: {reason}")
    state = error.sqlstate
    if state is not None:
        return TransientFailure(diagnostic) if state.startswith(_AWAY) else UserError(diagnostic)
    refused = "authentication failed" in reason or "no password" in reason or "does not exist" in reason
    is_away = isinstance(error, psycopg.OperationalError) and not refused
    return TransientFailure(diagnostic) if is_away else UserError(diagnostic)


def _name(address: TableAddress) -> sql.Identifier:
    """The table, optionally with a schema and a dot in front."""
    if address.schema is not None:
        return sql.Identifier(address.schema, address.table)
    return sql.Identifier(*address.table.split(".", 1))


def _done_name(address: TableAddress) -> sql.Identifier:
    """The table of what was written is in the same schema as the table itself."""
    schema = address.schema or (address.table.split(".", 1)[0] if "." in address.table else None)
    return sql.Identifier(_DONE_TABLE) if schema is None else sql.Identifier(schema, _DONE_TABLE)


def _copy_out(address: TableAddress, columns: Sequence[str], where: tuple[str, Sequence[str]] | None) -> sql.Composed:
    texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in columns)
    query = sql.SQL("SELECT {} FROM {}").format(texts, _name(address))
    if where is not None:
        values = sql.SQL(", ").join(map(sql.Literal, where[1]))
        query += sql.SQL(" WHERE {} IN ({})").format(sql.Identifier(where[0]), values)
    return sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)


class _Chunks(io.RawIOBase):
    """The pieces that the server sends, as a stream.

    Arrow reads ahead in a separate thread. When the reader of the batches stops early, that thread must have let go
    of the connection before it is closed, or both wait for each other.
    """

    def __init__(self, chunks: Iterator[bytes | bytearray | memoryview]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._lock = threading.Lock()
        self._is_stopped = False

    def stop(self) -> None:
        """Wait for a read in progress; after that the stream has ended."""
        with self._lock:
            self._is_stopped = True

    def readable(self) -> bool:
        """A stream to read from."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """As much of the next piece as fits."""
        with self._lock:
            if self._is_stopped:
                return 0
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
        view = memoryview(buffer)
        taken = min(len(view), len(self._rest))
        view[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken


def _batches(stream: IO[bytes], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """COPY writes NULL as nothing and an empty string as a pair of quotes."""
    reader = csv.open_csv(
        stream,
        read_options=csv.ReadOptions(column_names=list(columns), block_size=_BATCH_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    yield from reader


def _create_notes(connection: psycopg.Connection, address: TableAddress) -> None:
    """In a separate transaction, so that nothing waits for a long write to another table."""
    _wait_for_others(connection, _done_name(address))
    connection.execute(
        sql.SQL(
            "CREATE TABLE IF NOT EXISTS {} (once text PRIMARY KEY, rows bigint NOT NULL, "
            "written_at timestamptz NOT NULL DEFAULT now())"
        ).format(_done_name(address))
    )
    connection.commit()


def _wait_for_others(connection: psycopg.Connection, name: sql.Identifier) -> None:
    """Until this transaction ends, no other one passes here with the same name."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name.as_string(),))


def _done_before(connection: psycopg.Connection, address: TableAddress, once: str) -> int | None:
    statement = sql.SQL("SELECT rows FROM {} WHERE once = %s").format(_done_name(address))
    found = connection.execute(statement, (once,)).fetchone()
    return None if found is None else int(found[0])


def _create(address: TableAddress, columns: Sequence[tuple[str, Type]]) -> sql.Composed:
    definitions = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_type_name(type_))) for name, type_ in columns
    )
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(_name(address), definitions)


def _type_name(type_: Type) -> str:
    return f"numeric({type_.precision},{type_.scale})" if type_.kind is Kind.DECIMAL else _TYPES[type_.kind]


def _copy_in(
    connection: psycopg.Connection, address: TableAddress, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> int:
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(_name(address), columns)
    rows = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in batches:
            text = io.BytesIO()
            csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
            copy.write(text.getbuffer())
            rows += batch.num_rows
    return rows
