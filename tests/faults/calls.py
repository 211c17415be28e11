"""The calls of a run at which something can go wrong, counted, and the one that does.

The names by which Python's libraries and Clew call files, databases and Spark are exchanged while a run is under way.
What the JVM does with files by itself is not seen; what it asks an object store for is, in the proxy before the store.
"""

import builtins
import errno
import io
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

import clew.store.sqlite

WRITING = ("open to write", "write", "mkdir", "link", "rename", "replace", "fsync", "truncate")
"""Calls on files that a full disk refuses."""


@dataclass
class Calls:
    """Counts the calls of one kind below a folder, and says which of them fails, and how."""

    kind: str
    folder: Path
    nth: int = 0
    """The call that fails; 0: none."""
    fault: str = ""
    only: Callable[[str], bool] = lambda _name: True
    """Whether a call is of those that the fault can happen to."""
    count: int = 0
    seen: list[str] = field(default_factory=list)
    """The names of the calls, in order."""
    struck: str | None = None
    """The call that failed, as it is named to people."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fails(self, name: str, about: object = "") -> bool:
        """Whether this call is the one."""
        if not self.only(name):
            return False
        with self._lock:
            self.count += 1
            self.seen.append(name)
            if self.count != self.nth:
                return False
            self.struck = f"{name} {self._short(about)}".rstrip()
            return True

    def is_below(self, path: object) -> bool:
        """Whether a path, or an open file, belongs to the run."""
        if isinstance(path, int):
            try:
                path = Path(f"/proc/self/fd/{path}").readlink()
            except OSError:
                return False
        if not isinstance(path, str | os.PathLike):
            return False
        name = os.fspath(path)
        return isinstance(name, str) and Path(name).absolute().is_relative_to(self.folder)

    def _short(self, about: object) -> str:
        text = " ".join(str(about).split())
        return text.replace(f"{self.folder}/", "")[:100]


@contextmanager
def _exchanged(*names: tuple[Any, str, Callable[[Any], Any]]) -> Iterator[None]:
    undo = list[Callable[[], None]]()
    try:
        for owner, name, around in names:
            before = vars(owner)[name]
            setattr(owner, name, around(before))
            undo.append(lambda owner=owner, name=name, before=before: setattr(owner, name, before))  # type: ignore[misc]
        yield
    finally:
        for each in reversed(undo):
            each()


# Files

FILE_FAULTS = ("error", "full")


class _Written:
    """A file that is being written, with writes that may stop in the middle."""

    def __init__(self, inner: Any, calls: Calls, path: object) -> None:
        self._inner, self._calls, self._path = inner, calls, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> "_Written":
        self._inner.__enter__()
        return self

    def __exit__(self, *about: Any) -> Any:
        return self._inner.__exit__(*about)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)

    def write(self, data: Any) -> Any:
        if self._calls.fails("write", self._path):
            self._inner.write(data[: len(data) // 2])
            self._inner.flush()
            raise _refused(self._calls, self._path)
        return self._inner.write(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)


def _refused(calls: Calls, path: object) -> OSError:
    number = errno.ENOSPC if calls.fault == "full" else errno.EIO
    return OSError(number, os.strerror(number), None if isinstance(path, int) else str(path))


@contextmanager
def files(calls: Calls) -> Iterator[None]:
    """Count the calls on files below the folder."""

    def opened(before: Any) -> Any:
        def call(file: Any, mode: Any = "r", *more: Any, **named: Any) -> Any:
            if not calls.is_below(file):
                return before(file, mode, *more, **named)
            is_writing = isinstance(mode, str) and any(letter in mode for letter in "wxa+")
            if not isinstance(file, int) and calls.fails("open to write" if is_writing else "open to read", file):
                raise _refused(calls, file)
            found = before(file, mode, *more, **named)
            return _Written(found, calls, file) if is_writing else found

        return call

    def opened_by_number(before: Any) -> Any:
        def call(path: Any, flags: int, *more: Any, **named: Any) -> Any:
            name = "open to write" if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else "open to read"
            if calls.is_below(path) and calls.fails(name, path):
                raise _refused(calls, path)
            return before(path, flags, *more, **named)

        return call

    def written(before: Any) -> Any:
        def call(descriptor: int, data: Any) -> Any:
            if calls.is_below(descriptor) and calls.fails("write", Path(f"/proc/self/fd/{descriptor}").readlink()):
                if calls.fault == "full":
                    return before(descriptor, bytes(data)[: len(data) // 2])
                raise _refused(calls, descriptor)
            return before(descriptor, data)

        return call

    def plain(name: str) -> Callable[[Any], Any]:
        def around(before: Any) -> Any:
            def call(path: Any = ".", *more: Any, **named: Any) -> Any:
                place = named["dir_fd"] if named.get("dir_fd") is not None else path
                others = [each for each in more[:1] if name in {"link", "rename", "replace"}]
                if any(map(calls.is_below, [place, *others])) and calls.fails(name, path):
                    raise _refused(calls, path)
                return before(path, *more, **named)

            return call

        return around

    names = ("mkdir", "link", "rename", "replace", "unlink", "rmdir", "stat", "scandir", "listdir", "fsync")
    with _exchanged(
        (io, "open", opened),
        (builtins, "open", opened),
        (os, "open", opened_by_number),
        (os, "write", written),
        *((os, name, plain(name)) for name in names),
    ):
        yield


# Databases

SQL_FAULTS = ("refused", "full", "unknown")


def _from_driver(calls: Calls, connection: Any) -> Exception:
    """What the driver of the database raises where it is full, or where the way to it breaks."""
    if isinstance(connection, sqlite3.Connection):
        is_full = calls.fault == "full"
        error = sqlite3.OperationalError("database or disk is full" if is_full else "disk I/O error")
        error.sqlite_errorname = "SQLITE_FULL" if is_full else "SQLITE_IOERR"
        return error
    psycopg = sys.modules["psycopg"]
    if calls.fault == "full":
        full: Exception = psycopg.errors.DiskFull("could not extend file: No space left on device")
        return full
    connection.close()
    away: Exception = psycopg.OperationalError("the connection is lost")
    return away


@contextmanager
def sql(calls: Calls) -> Iterator[None]:
    """Count statements, the beginnings of write transactions, and commits."""

    def executed(before: Any) -> Any:
        def call(self: Any, cursor: Any, statement: Any, *more: Any, **named: Any) -> Any:
            if calls.fails("execute", statement):
                raise _from_driver(calls, cursor.connection)
            return before(self, cursor, statement, *more, **named)

        return call

    def committed(before: Any) -> Any:
        def call(self: Any, connection: Any) -> Any:
            if not calls.fails("commit"):
                return before(self, connection)
            driver = getattr(connection, "driver_connection", connection)
            if calls.fault == "unknown":
                before(self, connection)
            elif calls.fault == "full":
                self.do_rollback(connection)
            raise _from_driver(calls, driver)

        return call

    def begun(before: Any) -> Any:
        def call(connection: Any, patience_s: float) -> Any:
            if calls.fails("begin"):
                raise _from_driver(calls, connection)
            return before(connection, patience_s)

        return call

    with _exchanged(
        (DefaultDialect, "do_execute", executed),
        (DefaultDialect, "do_executemany", executed),
        (DefaultDialect, "do_commit", committed),
        (clew.store.sqlite, "begin_writing", begun),
    ):
        yield


# Spark

SPARK_FAULTS = ("error", "cut")
_ACTIONS = frozenset(
    {"collectToPython", "collectAsArrowToPython", "toPythonIterator", "tailToPython", "count", "isEmpty", "head"}
    | {"save", "parquet", "csv", "json", "text", "orc", "jdbc", "saveAsTable", "insertInto", "load", "sql"}
)
"""Methods of Java with which Python starts work on Spark or looks at sources."""


@contextmanager
def spark(calls: Calls) -> Iterator[None]:
    """Count what is asked of Spark: jobs, and looks at sources."""
    from py4j.java_gateway import JavaMember  # type: ignore[import-untyped]
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkRuntimeError

    def called(before: Any) -> Any:
        def call(self: Any, *arguments: Any) -> Any:
            if self.name in _ACTIONS and calls.fails(self.name, ", ".join(map(str, arguments[:1]))):
                if calls.fault == "cut":
                    raise Py4JNetworkError("Answer from Java side is empty")
                raise PySparkRuntimeError("Job aborted due to stage failure: an executor was lost")
            return before(self, *arguments)

        return call

    with _exchanged((JavaMember, "__call__", called)):
        yield


KINDS: dict[str, tuple[tuple[str, ...], Callable[[Calls], Any]]] = {
    "file": (FILE_FAULTS, files),
    "sql": (SQL_FAULTS, sql),
    "spark": (SPARK_FAULTS, spark),
}
"""What can be counted in this process, with what can happen to it."""


def possible(kind: str, fault: str) -> Callable[[str], bool]:
    """The calls of a kind that a fault can happen to."""
    if (kind, fault) == ("file", "full"):
        return lambda name: name in WRITING
    if (kind, fault) == ("sql", "unknown"):
        return lambda name: name == "commit"
    if (kind, fault) == ("sql", "full"):
        return lambda name: name != "begin"
    return lambda _name: True
