"""What the driver of SQLite raises, as our errors."""

import sqlite3

from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.runs import (
    STORE_BROKEN_PROMISE,
    STORE_FULL,
    STORE_REFUSED_VALUE,
    STORE_UNAVAILABLE,
    STORE_UNREADABLE,
)

_AWAY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL", "SQLITE_READONLY")
_NOT_OURS = ("SQLITE_NOTADB", "SQLITE_CORRUPT")


def from_sqlite(error: sqlite3.Error, place: str) -> ClewError:
    """Our error for one of the driver."""
    reason = str(error).strip().split("\n")[0]
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return TransientFailure(STORE_FULL.anywhere(reason=reason))
    if name.startswith(_AWAY):
        return TransientFailure(STORE_UNAVAILABLE.anywhere(reason=reason))
    if name.startswith(_NOT_OURS):
        return UserError(STORE_UNREADABLE.anywhere(place=place, reason=reason))
    if name == "SQLITE_TOOBIG" or isinstance(error, sqlite3.DataError):
        return UserError(STORE_REFUSED_VALUE.anywhere(reason=reason))
    return EngineBug(STORE_BROKEN_PROMISE.anywhere(reason=reason))
