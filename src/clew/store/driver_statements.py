"""Statements that the driver gets as they are, in a transaction of SQLAlchemy.

For what runs once for every event, SQLAlchemy takes longer than the database. Errors are raised as it would raise them,
so that callers need not know which of the two did a statement.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.events.codec import iso

_PARAMETER = re.compile(r":(\w+)")


class DriverStatement:
    """A statement in plain SQL, in which a parameter stands as `:name`."""

    def __init__(self, text: str, *, postgresql: str | None = None) -> None:
        self._sqlite = text
        self._postgresql = _PARAMETER.sub(r"%(\1)s", postgresql or text)

    def rows(self, connection: sa.Connection, parameters: Mapping[str, object]) -> Sequence[tuple[Any, ...]]:
        """The rows of the statement."""
        found: Sequence[tuple[Any, ...]] = self._done(connection, parameters).fetchall()
        return found

    def run(self, connection: sa.Connection, parameters: Mapping[str, object]) -> None:
        """Do the statement."""
        self._done(connection, parameters)

    def _done(self, connection: sa.Connection, parameters: Mapping[str, object]) -> Any:  # noqa: ANN401 - a cursor of a driver
        driver: Any = connection.connection.driver_connection
        dialect = connection.dialect
        try:
            return driver.execute(self._sqlite if dialect.name == "sqlite" else self._postgresql, parameters)
        except dialect.loaded_dbapi.IntegrityError as error:
            raise sa.exc.IntegrityError(None, None, error) from error
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, driver, None):
                connection.invalidate(error)
            raise sa.exc.DBAPIError(None, None, error) from error


def stored_moment(connection: sa.Connection, moment: datetime | None) -> object:
    """A moment as a parameter."""
    return iso(moment) if moment is not None and connection.dialect.name == "sqlite" else moment
