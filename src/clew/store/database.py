"""A database as the stores use it: transactions for reading and writing, its clock, its locks.

Errors of database drivers become ours here; no other module knows their codes.
"""

# ruff: noqa: PLC0415 - the driver of PostgreSQL is imported by those who have one

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import sqlalchemy as sa
from sqlalchemy import exc

from clew import budgets
from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.runs import (
    STORE_BROKEN_PROMISE,
    STORE_FULL,
    STORE_REFUSED_VALUE,
    STORE_UNAVAILABLE,
    STORE_UNREADABLE,
)
from clew.runs.clock import Clock
from clew.store.reading import SqlRow
from clew.store.schema import Moment
from clew.store.sqlite_errors import from_sqlite

if TYPE_CHECKING:
    import psycopg


_POSTGRESQL_AWAY = (
    "08",  # connection
    "25006",  # read-only: a standby after a failover
    "40001",  # serialization
    "40P01",  # deadlock
    "53",  # resources
    "55P03",  # lock not to be had in time
    "57",  # shut down, cancelled, starting up
    "58",  # system
)
_POSTGRESQL_FULL = "53100"
_POSTGRESQL_NOT_OURS = ("28", "3D")
_POSTGRESQL_VALUE = "22"


@contextmanager
def driver_errors(place: str) -> Iterator[None]:
    """Turns whatever a driver raises inside into one of our errors."""
    try:
        yield
    except exc.TimeoutError as error:
        raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="no free connection")) from error
    except exc.DBAPIError as error:
        budgets.check()
        raise _converted(error.orig, place) from error


def _converted(error: BaseException | None, place: str) -> ClewError:
    reason = str(error).strip().split("\n")[0]
    if isinstance(error, sqlite3.Error):
        return from_sqlite(error, place)
    postgresql = sys.modules.get("psycopg")
    if postgresql is not None and isinstance(error, postgresql.Error):
        return _from_postgresql(error, reason, place)
    return EngineBug(STORE_BROKEN_PROMISE.anywhere(reason=reason))


def _from_postgresql(error: "psycopg.Error", reason: str, place: str) -> ClewError:
    import psycopg

    state = error.sqlstate
    if state is None:
        if isinstance(error, psycopg.DataError):
            return UserError(STORE_REFUSED_VALUE.anywhere(reason=reason))
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return TransientFailure(STORE_UNAVAILABLE.anywhere(reason=reason))
        return EngineBug(STORE_BROKEN_PROMISE.anywhere(reason=reason))
    if state == _POSTGRESQL_FULL:
        return TransientFailure(STORE_FULL.anywhere(reason=reason))
    if state.startswith(_POSTGRESQL_AWAY):
        return TransientFailure(STORE_UNAVAILABLE.anywhere(reason=reason))
    if state.startswith(_POSTGRESQL_NOT_OURS):
        return UserError(STORE_UNREADABLE.anywhere(place=place, reason=reason))
    if state.startswith(_POSTGRESQL_VALUE):
        return UserError(STORE_REFUSED_VALUE.anywhere(reason=reason))
    return EngineBug(STORE_BROKEN_PROMISE.anywhere(reason=reason))


class Transactions(Protocol):
    """What differs between the databases."""

    @property
    def place(self) -> str:
        """The database as a message names it, without credentials."""
        ...

    def read(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that sees one state of the database and changes nothing."""
        ...

    def write(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that commits at its end."""
        ...

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Keep all other transactions with the same lock waiting until this one ends."""
        ...

    def interruption(self, connection: sa.Connection) -> Callable[[], None]:
        """What ends the statement that a connection is at. Any thread may call it, again and again."""
        ...

    def stored_moment(self, moment: datetime) -> object:
        """A moment as the driver takes it."""
        ...

    def close(self) -> None:
        """Return all connections."""
        ...


class Database:
    """A database with its errors converted and its clock chosen.

    Without a clock of the caller's, moments come from the database server where there is one: leases then do not
    depend on whether the clocks of the workers agree.
    """

    def __init__(self, transactions: Transactions, *, now: sa.ColumnElement[object] | Clock) -> None:
        self._transactions = transactions
        self._now = now

    @property
    def place(self) -> str:
        """The database as a message names it."""
        return self._transactions.place

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that changes nothing. It is interrupted when the budget of the question at hand is over."""
        with driver_errors(self.place), self._transactions.read() as connection, self._interruptible(connection):
            yield connection

    @contextmanager
    def _interruptible(self, connection: sa.Connection) -> Iterator[None]:
        """A connection that may have been interrupted is closed: the interrupt may come late, to what follows."""
        try:
            with budgets.watched(self._transactions.interruption(connection)):
                yield
        except BaseException:
            budget = budgets.current()
            if budget is not None and budget.is_over:
                connection.invalidate()
            raise

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of one statement as the driver gives them, in a transaction of its own."""
        with self.read() as connection:
            return connection.execute(sa.text(statement), parameters).mappings().all()

    def stored_moment(self, moment: datetime) -> object:
        """A moment as a parameter of `rows`."""
        return self._transactions.stored_moment(moment)

    def read_clock(self) -> datetime:
        """The present moment, by the clock that dates events."""
        with self.read() as connection:
            return PlainSteps(connection, self).now()

    @contextmanager
    def write(self, *, lock: str | None = None) -> Iterator[sa.Connection]:
        """A transaction that commits at its end, alone in its lock if one is named."""
        with driver_errors(self.place), self._transactions.write() as connection:
            if lock is not None:
                self.lock(connection, lock)
            yield connection

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Keep all other transactions with the same lock waiting until this one ends."""
        self._transactions.lock(connection, name)

    def now(self) -> sa.ColumnElement[object]:
        """The current time, for use in a statement."""
        if callable(self._now):
            return sa.literal(self._now(), Moment)
        return self._now

    def clock_time(self) -> datetime | None:
        """The current time by the clock of the caller; None if the server's clock is used."""
        return self._now() if callable(self._now) else None

    def close(self) -> None:
        """Return all connections."""
        self._transactions.close()


class PlainSteps:
    """A transaction of SQLAlchemy for statements in plain SQL."""

    def __init__(self, connection: sa.Connection, database: Database) -> None:
        self._connection = connection
        self._database = database

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of a statement."""
        return self._connection.execute(sa.text(statement), parameters).mappings().all()

    def run(self, statement: str, parameters: Sequence[Mapping[str, object]]) -> None:
        """Do a statement once for each of several parameters."""
        self._connection.execute(sa.text(statement), parameters)

    def stored_moment(self, moment: datetime) -> object:
        """A moment as a parameter."""
        return self._database.stored_moment(moment)

    def now(self) -> datetime:
        """The present moment, by the clock that dates everything in the database."""
        now = self._connection.execute(sa.select(self._database.now())).scalar_one()
        assert isinstance(now, datetime)  # noqa: S101 -- for the type checker
        return now
