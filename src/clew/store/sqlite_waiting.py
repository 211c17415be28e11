"""Waiting for the one write lock of a SQLite file."""

import random
import sqlite3
import time

from clew.runs.deadline import time_left

_LOOK_AGAIN_S = (0.0002, 0.002)

WRITER_PRAGMAS = (
    # FULL syncs the log at every commit: an event that was acknowledged survives a power cut.
    "PRAGMA synchronous=FULL",
    "PRAGMA recursive_triggers=ON",
    "PRAGMA foreign_keys=ON",
)


def begin_writing(connection: sqlite3.Connection, patience_s: float) -> None:
    """Begin a write transaction, waiting for the lock in short steps of random length.

    SQLite's own waiting grows to a tenth of a second between looks, so that of several busy processes the one that has
    waited longest looks least often.
    """
    deadline = time.monotonic() + min(patience_s, time_left(patience_s))
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(*_LOOK_AGAIN_S))  # noqa: S311 -- spreads lookers, guards nothing
        else:
            return
