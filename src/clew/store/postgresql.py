"""PostgreSQL: a server that many machines share."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.events.codec import canonical_json

_CONNECT_TIMEOUT_S = 5
_RESTED_S = 1.0
_ABANDONED_MS = 60_000
"""After this time the server ends a transaction whose client has fallen silent, and its locks are free."""


class PostgresqlTransactions:
    """Transactions on a server, READ COMMITTED: appending to a run locks the run's row first."""

    def __init__(self, url: sa.URL, *, busy_timeout_s: float, pool_size: int = 8) -> None:
        milliseconds = max(1, int(busy_timeout_s * 1000))
        options = (
            f"-c lock_timeout={milliseconds} -c statement_timeout={milliseconds} "
            f"-c idle_in_transaction_session_timeout={_ABANDONED_MS}"
        )
        given = url.query.get("options")
        if given:
            options = f"{given if isinstance(given, str) else ' '.join(given)} {options}"
        self._place = url.render_as_string(hide_password=True)
        self._engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
            connect_args={"options": options, "connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "clew"},
            json_serializer=canonical_json,
            pool_size=pool_size,
            max_overflow=24,
            pool_timeout=busy_timeout_s,
        )
        _be_punctual(self._engine, busy_timeout_s)
        _test_after_rest(self._engine)
        self._reader = self._engine.execution_options(postgresql_readonly=True)

    @property
    def place(self) -> str:
        """The address without its password."""
        return self._place

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that the server itself keeps from writing."""
        with self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction."""
        with self._engine.begin() as connection:
            yield connection

    def lock(self, connection: sa.Connection, name: str) -> None:
        """An advisory lock until the transaction ends."""
        number = int.from_bytes(hashlib.sha256(f"clew:{name}".encode()).digest()[:8], "big", signed=True)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))

    def interruption(self, connection: sa.Connection) -> Callable[[], None]:
        """What asks the server to end the statement that a connection is at. No one waits for its answer."""
        driver: Any = connection.connection.driver_connection
        asked = threading.Event()

        def ask() -> None:
            if not asked.is_set():
                asked.set()
                threading.Thread(target=driver.cancel, name="cancelling", daemon=True).start()

        return ask

    def stored_moment(self, moment: datetime) -> object:
        """The server has a type for moments."""
        return moment

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _be_punctual(engine: sa.Engine, patience_s: float) -> None:
    """Give up on a server that does not answer, within the budget of the caller if there is one."""
    from clew.store.punctual import connect_in_time  # noqa: PLC0415 - the driver, for those who have such a store

    @sa.event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, arguments: Any, parameters: dict[str, Any]) -> object:  # noqa: ANN401
        return connect_in_time(tuple(arguments), parameters, patience_s=patience_s, connect_s=float(_CONNECT_TIMEOUT_S))


def _test_after_rest(engine: sa.Engine) -> None:
    """Test a connection before use, unless it was in use a moment ago: a test is a round trip, and events are many."""

    @sa.event.listens_for(engine, "checkin")
    def _given_back(_connection: object, record: sa.pool.ConnectionPoolEntry) -> None:
        record.info["given_back"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def _taken(connection: Any, record: sa.pool.ConnectionPoolEntry, _proxy: object) -> None:  # noqa: ANN401
        rested = time.monotonic() - record.info.get("given_back", time.monotonic())
        if rested < _RESTED_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DisconnectionError from error
