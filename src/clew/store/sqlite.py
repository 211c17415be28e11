"""SQLite: one file, many readers, one writer at a time."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.runs import STORE_READ_ONLY, STORE_UNAVAILABLE, STORE_UNREADABLE
from clew.events.codec import canonical_json, iso
from clew.runs.deadline import time_left
from clew.storage.private_folders import create_private_file
from clew.store.database import driver_errors
from clew.store.read_only_files import is_read_only, read_only_uri
from clew.store.sqlite_waiting import WRITER_PRAGMAS, begin_writing

_READER_PRAGMAS = ("PRAGMA query_only=ON",)


class SqliteTransactions:
    """Transactions on a database file.

    Writers begin with BEGIN IMMEDIATE: a transaction that first reads and then wants to write would otherwise find, too
    late to wait, that another process has written in between. Readers never wait for writers (WAL).
    """

    def __init__(self, path: Path, *, busy_timeout_s: float) -> None:
        self._is_read_only = is_read_only(path)
        if not self._is_read_only:
            _make_folder(path)
        self._path = path
        self._writing = threading.Lock()
        self._patience_s = busy_timeout_s
        self._writer = _engine(path, begin=_BeginWriting(busy_timeout_s), timeout_s=0.0, pragmas=WRITER_PRAGMAS)
        self._reader = _engine(
            path, begin=_BeginReading(busy_timeout_s), timeout_s=busy_timeout_s, pragmas=_READER_PRAGMAS
        )
        if not self._is_read_only:
            self._switch_to_wal()

    @property
    def place(self) -> str:
        """The file."""
        return str(self._path)

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A consistent view of the file."""
        with self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """The only write transaction on the file. Threads of one process queue in order, processes by waiting."""
        if self._is_read_only:
            raise UserError(STORE_READ_ONLY.anywhere(place=self._path))
        # Without a budget, threads wait for each other; the file itself is waited for with patience.
        if not self._writing.acquire(timeout=time_left(threading.TIMEOUT_MAX)):
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="another thread writes"))
        try:
            with self._writer.begin() as connection:
                yield connection
        finally:
            self._writing.release()

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Nothing to do: a write transaction is alone anyway."""

    def interruption(self, connection: sa.Connection) -> Callable[[], None]:
        """What ends the statement that a connection is at."""
        return _driver(connection).interrupt

    def stored_moment(self, moment: datetime) -> object:
        """Text that sorts like the moments."""
        return iso(moment)

    def close(self) -> None:
        """Close all connections; the last one folds the log into the file."""
        self._reader.dispose()
        self._writer.dispose()

    def _switch_to_wal(self) -> None:
        """The journal mode is kept in the file. While another process switches it, SQLite refuses without waiting."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                with driver_errors(self.place), self._writer.connect() as connection, _as_sqlalchemy_would():
                    _driver(connection).execute("PRAGMA journal_mode=WAL")
                    return
            except TransientFailure:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private_file(path)
    except OSError as error:
        reason = f"its folder cannot be made: {error.strerror or error}"
        raise UserError(STORE_UNREADABLE.anywhere(place=path, reason=reason)) from error


@contextmanager
def _as_sqlalchemy_would() -> Iterator[None]:
    """Statements given to the driver directly fail with the driver's errors; wrap them like the others."""
    try:
        yield
    except sqlite3.Error as error:
        raise sa.exc.DBAPIError(None, None, error) from error


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    driver_connection = connection.connection.driver_connection
    assert isinstance(driver_connection, sqlite3.Connection)  # noqa: S101 -- for the type checker
    return driver_connection


class _BeginWriting:
    """Waits for the write lock."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s

    def __call__(self, connection: sa.Connection) -> None:
        with _as_sqlalchemy_would():
            begin_writing(_driver(connection), self._patience_s)


class _BeginReading:
    """Leaves the waiting to SQLite, for as long as the caller has time."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s

    def __call__(self, connection: sa.Connection) -> None:
        patience_s = min(self._patience_s, time_left(self._patience_s))
        with _as_sqlalchemy_would():
            _driver(connection).execute(f"PRAGMA busy_timeout={int(patience_s * 1000)}")
            _driver(connection).execute("BEGIN")


def _engine(
    path: Path, *, begin: Callable[[sa.Connection], None], timeout_s: float, pragmas: tuple[str, ...]
) -> sa.Engine:
    def connected() -> sqlite3.Connection:
        address, is_uri = (read_only_uri(path), True) if is_read_only(path) else (str(path), False)
        return sqlite3.connect(address, uri=is_uri, timeout=timeout_s, check_same_thread=False)

    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        creator=connected,
        json_serializer=canonical_json,
        pool_size=8,
        max_overflow=24,
    )

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(pragma)

    sa.event.listen(engine, "begin", begin)
    return engine
