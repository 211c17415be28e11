"""The state store of a simulation: the real one on SQLite, behind a wire that fails.

Every statement runs, with its checks of tokens and its triggers. A transaction is one step for all others, as the
database would have it; before and behind it anything may happen.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

import sqlalchemy as sa

from clew.runs.deadline import time_left
from clew.store.database import Database
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.sqlite import SqliteTransactions
from tests.simulation.kernel import EPOCH, Crash, Kernel, Process

PATIENCE_S = 3.0
"""How long one call waits for an answer of the store."""

OnCommit = Callable[[Process | None, str], None]
_Begins = Callable[[], AbstractContextManager[sa.Connection]]


class _RollBack(Exception):
    """Ends a transaction without a trace."""


def _driver_error(name: str, reason: str) -> sa.exc.DBAPIError:
    error = sqlite3.OperationalError(reason)
    error.sqlite_errorname = name
    return sa.exc.DBAPIError(None, None, error)


class KeptConnections:
    """A connection for reading and one for writing that stay open.

    The real ones come from a pool for each transaction, which is a tenth of the time of a simulation. Here one
    transaction is under way at a time; a second one inside it gets a connection from the pool.
    """

    def __init__(self, inner: SqliteTransactions) -> None:
        self._inner = inner
        self._kept = dict[str, sa.Connection]()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with self._begun("read", self._inner.read) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        with self._begun("write", self._inner.write) as connection:
            yield connection

    @contextmanager
    def _begun(self, kind: str, from_pool: _Begins) -> Iterator[sa.Connection]:
        connection = self._kept.get(kind)
        if connection is None:
            with from_pool() as first:
                yield first
                self._kept[kind] = first.engine.connect()
            return
        if connection.in_transaction():
            with from_pool() as other:
                yield other
            return
        with connection.begin():
            yield connection

    def close(self) -> None:
        for connection in self._kept.values():
            connection.close()
        self._kept.clear()


class FailingTransactions:
    """The transactions of one process."""

    def __init__(self, inner: SqliteTransactions, kept: KeptConnections, kernel: Kernel, on_commit: OnCommit) -> None:
        self._inner = inner
        self._kept = kept
        self._kernel = kernel
        self._on_commit = on_commit

    @property
    def place(self) -> str:
        return "the simulated store"

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that changes nothing."""
        kernel = self._kernel
        kernel.call("store", f"read {_caller()}")
        self._reach()
        with kernel.sheltered(), self._kept.read() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that commits at its end, or not, or does and nobody is told."""
        kernel = self._kernel
        if kernel.task is None:
            with self._inner.write() as connection:
                yield connection
            return
        what = _caller()
        kernel.call("store", f"write {what}")
        self._reach(lambda: None)
        outcome = self._fate()
        process = kernel.process
        try:
            with kernel.sheltered(), self._kept.write() as connection:
                yield connection
                if outcome in {"store full", "commit lost", "dies before"}:
                    raise _RollBack  # noqa: TRY301 - it leaves the transaction, which rolls back
        except _RollBack:
            if outcome == "dies before":
                self._die()
            if outcome == "store full":
                raise _driver_error("SQLITE_FULL", "database or disk is full") from None
            raise _driver_error("SQLITE_IOERR", "the connection was lost at the commit") from None
        kernel.say(f"store.committed {what}")
        self._on_commit(process, what)
        if outcome == "dies after":
            self._die()
        if outcome == "commit unknown":
            if kernel.random.random() < 0.3:
                kernel.sleep(time_left(PATIENCE_S))
            raise _driver_error("SQLITE_IOERR", "the connection was lost behind the commit")

    def _fate(self) -> str:
        """What becomes of a transaction that is about to begin."""
        kernel = self._kernel
        if kernel.strikes("crash"):
            return kernel.random.choice(["dies before", "dies after"])
        for kind in ("store full", "commit lost", "commit unknown"):
            if kernel.strikes(kind):
                return kind
        return "commits"

    def _die(self) -> None:
        process = self._kernel.process
        assert process is not None
        self._kernel.kill(process)
        raise Crash

    def _reach(self, _about: object = None) -> None:
        """The way to the store."""
        kernel, process = self._kernel, self._kernel.process
        if process is None:
            return
        if process.is_cut_off("store"):
            kernel.say("the store is out of reach")
            kernel.sleep(min(time_left(PATIENCE_S), kernel.random.choice([0.01, PATIENCE_S])))
            raise _driver_error("SQLITE_CANTOPEN", "the store is out of reach")
        if kernel.strikes("store refuses"):
            raise _driver_error("SQLITE_BUSY", "the store is busy")
        if kernel.strikes("store silent"):
            kernel.sleep(time_left(PATIENCE_S))
            raise _driver_error("SQLITE_IOERR", "the store does not answer")
        if kernel.strikes("store slow"):
            kernel.sleep(min(time_left(PATIENCE_S), kernel.random.uniform(0.2, PATIENCE_S)))

    def lock(self, connection: sa.Connection, name: str) -> None:
        self._inner.lock(connection, name)

    def interruption(self, connection: sa.Connection) -> Callable[[], None]:
        return self._inner.interruption(connection)

    def stored_moment(self, moment: datetime) -> object:
        return self._inner.stored_moment(moment)

    def close(self) -> None:
        """It is shared."""


def _caller() -> str:
    """The method of a store that a transaction is for."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("clew.store.") and name not in {"clew.store.database", "clew.store.access"}:
            return f"{name.rpartition('.')[2]}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "?"


class DatabaseFile:
    """One file in memory, emptied between seeds, with the statements that were compiled for it."""

    def __init__(self) -> None:
        shared = "/dev/shm"
        self.folder = Path(
            tempfile.mkdtemp(prefix="clew-simulation-", dir=shared if os.access(shared, os.W_OK) else None)
        )
        self.path = self.folder / "state.db"
        self.transactions = SqliteTransactions(self.path, busy_timeout_s=1.0)
        self.kept = KeptConnections(self.transactions)
        database = Database(self.transactions, now=lambda: EPOCH)
        migrate(database, MIGRATIONS)
        self._empty = sqlite3.connect(":memory:")
        with sqlite3.connect(self.path) as connection:
            connection.backup(self._empty)
        connection.close()

    def clear(self) -> None:
        """As it was when it was made."""
        connection = sqlite3.connect(self.path)
        self._empty.backup(connection)
        connection.close()

    def close(self) -> None:
        self.kept.close()
        self.transactions.close()
        self._empty.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def database_file() -> Iterator[DatabaseFile]:
    """A database for many simulations, one after the other."""
    file = DatabaseFile()
    try:
        yield file
    finally:
        file.close()
