"""A state store in a SQLite file, for those who read it and record that they did: the driver alone.

SQLAlchemy takes longer to import than a command takes to look at a run.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from clew import budgets
from clew.auth.access_log import AccessRecord
from clew.events.chain import KeySource
from clew.events.codec import iso
from clew.runs.clock import utc_now
from clew.runs.deadline import time_left
from clew.store.ledger_chain import add_notes, last_entry
from clew.store.owner import Owner
from clew.store.read_only_files import is_read_only, read_only_uri
from clew.store.read_records import add_reads
from clew.store.reading import SqlRow
from clew.store.schema_version import NEWEST
from clew.store.sqlite_errors import from_sqlite
from clew.store.sqlite_waiting import WRITER_PRAGMAS, begin_writing

_PATIENCE_S = 3.0


class SqliteFile:
    """Rows of a file that has the current schema. Threads take turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_read_only = is_read_only(path)
        self._turn = threading.Lock()
        with self._errors():
            self._connection = self._connected()
            self._connection.execute("PRAGMA query_only=ON")

    def _connected(self) -> sqlite3.Connection:
        # Readers of a log write to the file beside it that says how far they are, so it is opened for that if possible.
        address = read_only_uri(self._path) if self.is_read_only else f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        return connection

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of one statement, interrupted when the budget of the question at hand is over."""
        patience_ms = int(min(_PATIENCE_S, time_left(_PATIENCE_S)) * 1000)
        with self._turn, self._errors(), budgets.watched(self._connection.interrupt):
            self._connection.execute(f"PRAGMA busy_timeout={patience_ms}")
            return [dict(row) for row in self._connection.execute(statement, parameters)]

    @contextmanager
    def writing(self) -> Iterator["SqliteTransaction"]:
        """A transaction that commits at its end, the only one that writes to the file."""
        with self._turn, self._errors(), closing(self._connected()) as connection:
            for pragma in WRITER_PRAGMAS:
                connection.execute(pragma)
            begin_writing(connection, _PATIENCE_S)
            with connection:
                yield SqliteTransaction(connection)

    def stored_moment(self, moment: datetime) -> object:
        """Text that sorts like the moments."""
        return iso(moment)

    def read_clock(self) -> datetime:
        """The clock of this machine, as there is no server."""
        return utc_now()

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            budgets.check()
            raise from_sqlite(error, str(self._path)) from error


class SqliteTransaction:
    """A write transaction on a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of a statement."""
        return [dict(row) for row in self._connection.execute(statement, parameters)]

    def run(self, statement: str, parameters: Sequence[Mapping[str, object]]) -> None:
        """Do a statement once for each of several parameters."""
        self._connection.executemany(statement, parameters)

    def stored_moment(self, moment: datetime) -> object:
        """Text that sorts like the moments."""
        return iso(moment)

    def now(self) -> datetime:
        """The clock of this machine, as there is no server."""
        return utc_now()


class FileAccessLog:
    """Adds records of who has read what to a file. The ledger must have begun."""

    def __init__(self, file: SqliteFile, owner: Owner, key: KeySource) -> None:
        self._file = file
        self._owner = owner
        self._key = key

    def add(self, *records: AccessRecord) -> None:
        """Store all records or none."""
        key = self._key()
        with self._file.writing() as transaction:
            last = last_entry(transaction, self._owner, key)
            notes = add_reads(transaction, self._owner.environment_id, records)
            add_notes(transaction, self._owner, key, last, notes)

    def has_begun(self) -> bool:
        """Whether the ledger has entries. The first ones are about all that was there before."""
        asked = {"tenant": self._owner.tenant_id, "environment": self._owner.environment_id}
        statement = "SELECT 1 FROM ledger WHERE tenant_id = :tenant AND environment_id = :environment LIMIT 1"
        return bool(self._file.rows(statement, asked))


def readable_file(path: Path) -> SqliteFile | None:
    """A state store with the current schema; None where it must be created, upgraded or refused, as writers do."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    file = SqliteFile(path)
    try:
        is_current = _version(file) == NEWEST
    except BaseException:
        file.close()
        raise
    if is_current:
        return file
    file.close()
    return None


def _version(file: SqliteFile) -> int:
    if not file.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'", {}):
        return 0
    return int(file.rows("SELECT COALESCE(MAX(version), 0) AS version FROM schema_version", {})[0]["version"])
