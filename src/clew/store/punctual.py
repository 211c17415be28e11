"""Connections to PostgreSQL that give up when no answer comes.

The server's own timeouts do not help if the server, or the network on the way to it, falls silent.
"""

import threading
import time
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from clew.runs.deadline import time_left

T = TypeVar("T")

_LOOK_S = 0.05
_MARGIN_S = 1.0
"""How much longer the client waits than the server takes to cancel a statement, so that its reason arrives."""


class PunctualConnection(psycopg.Connection[Any]):
    """Closes itself if the server does not answer in time."""

    patience_s: float = 5.0
    """How long an answer may take outside a budget."""

    def wait(self, gen: PQGen[T], interval: float = _LOOK_S, timeout: float | None = None) -> T:
        """Do a piece of work that waits for the server. Raises OperationalError if the server stays silent."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        left = time_left(self.patience_s)
        try:
            return super().wait(_bounded(gen, time.monotonic() + left), min(interval, _LOOK_S))
        except _Silence as silence:
            # It may be in the middle of an answer, so no one can use it again.
            self.close()
            raise psycopg.OperationalError(f"no answer in {left:.1f} s") from silence


class _Silence(Exception):
    """The time is over."""


def _bounded(gen: PQGen[T], ends_at: float) -> Generator[Any, Any, T]:
    """The same work, which ends with `_Silence` if nothing arrives in time. The driver looks at every interval."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= ends_at:
                raise _Silence
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


def connect_in_time(
    arguments: tuple[Any, ...], parameters: dict[str, Any], *, patience_s: float, connect_s: float
) -> PunctualConnection:
    """A connection. Raises OperationalError if there is none in time, whatever the name server or the server does."""
    outcome: Future[PunctualConnection] = Future()
    left = time_left(connect_s)

    def connect() -> None:
        try:
            outcome.set_result(PunctualConnection.connect(*arguments, **parameters))
        except Exception as error:  # noqa: BLE001 - raised in the waiting thread
            outcome.set_exception(error)

    threading.Thread(target=connect, name="connecting", daemon=True).start()
    try:
        connection = outcome.result(timeout=left)
    except TimeoutError as error:
        outcome.add_done_callback(_close_late)
        raise psycopg.OperationalError(f"no connection in {left:.1f} s") from error
    connection.patience_s = patience_s + _MARGIN_S
    return connection


def _close_late(outcome: "Future[PunctualConnection]") -> None:
    if outcome.exception() is None:
        outcome.result().close()
