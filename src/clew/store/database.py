"""A database as the stores use it: transactions for reading and for writing, its clock, its locks."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from clew.runs.clock import Clock
from clew.store.errors import driver_errors
from clew.store.types import Moment


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
        """Let nobody else into a transaction with the same lock until this one ends."""
        ...

    def close(self) -> None:
        """Give back all connections."""
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
        """A transaction that changes nothing."""
        with driver_errors(self.place), self._transactions.read() as connection:
            yield connection

    @contextmanager
    def write(self, *, lock: str | None = None) -> Iterator[sa.Connection]:
        """A transaction that commits at its end, alone in its lock if one is named."""
        with driver_errors(self.place), self._transactions.write() as connection:
            if lock is not None:
                self.lock(connection, lock)
            yield connection

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Let nobody else into a transaction with the same lock until this one ends."""
        self._transactions.lock(connection, name)

    def now(self) -> sa.ColumnElement[object]:
        """The present moment, for use in a statement."""
        if callable(self._now):
            return sa.literal(self._now(), Moment)
        return self._now

    def clock_time(self) -> datetime | None:
        """The present moment by the clock of the caller, or None where the server's counts."""
        return self._now() if callable(self._now) else None

    def close(self) -> None:
        """Give back all connections."""
        self._transactions.close()
