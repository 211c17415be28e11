"""Transactions for statements in plain SQL, as far as they are the same for every database and driver."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from clew.store.reading import SqlRow


class PlainTransaction(Protocol):
    """A transaction that writes. A parameter stands in a statement as `:name`."""

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of a statement."""
        ...

    def run(self, statement: str, parameters: Sequence[Mapping[str, object]]) -> None:
        """Do a statement once for each of several parameters."""
        ...

    def stored_moment(self, moment: datetime) -> object:
        """A moment as a parameter."""
        ...

    def now(self) -> datetime:
        """The present moment, by the clock that dates everything in the database."""
        ...


def insert_into(table: str, columns: Sequence[str]) -> str:
    """A statement that inserts a row whose values are parameters with the names of the columns."""
    values = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - our own names
