"""Remote files for DuckDB: it reads the footer of a file, and then what a query needs of the row groups it needs.

DuckDB would fetch extensions for object stores from the internet, which Clew never does. It also takes a file system
written in Python; this one has the files that a query names, under names that start with `clew://`.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractFileSystem

if TYPE_CHECKING:
    import duckdb
    from pyarrow import NativeFile


class RemoteFiles(AbstractFileSystem):  # type: ignore[misc]
    """The files that queries were given, each opened once. May be used by several threads."""

    protocol = "clew"
    cachable = False

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._openers: dict[str, Callable[[], NativeFile]] = {}
        self._files: dict[str, NativeFile] = {}
        connection.register_filesystem(self)

    def give(self, name: str, opener: Callable[[], "NativeFile"]) -> None:
        """Let queries read a file by a name."""
        with self._lock:
            self._openers.setdefault(self._strip_protocol(name), opener)

    def forget(self) -> None:
        """Let go of all files."""
        with self._lock:
            self._openers, self._files = {}, {}

    def _file(self, name: str) -> "NativeFile":
        name = self._strip_protocol(name)  # some callers have stripped it already
        with self._lock:
            known, opener = self._files.get(name), self._openers.get(name)
        if known is not None:
            return known
        if opener is None:
            raise FileNotFoundError(name)
        opened = opener()
        with self._lock:
            return self._files.setdefault(name, opened)

    # What DuckDB calls

    def _open(self, path: str, mode: str = "rb", **_: Any) -> "_Reading":  # noqa: ANN401
        if mode != "rb":
            raise PermissionError(path)
        return _Reading(self._file(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """Size and kind of a file."""
        return {"name": path, "size": self._file(path).size(), "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:  # noqa: ANN401
        """A query names only files that are there."""
        del path
        return True

    def glob(self, path: str, **_: Any) -> list[str]:  # noqa: ANN401
        """The name itself: names are no patterns."""
        return [path]

    def modified(self, path: str) -> datetime:
        """Files never change."""
        del path
        return datetime(1970, 1, 1, tzinfo=UTC)


class _Reading:
    """A position in a file that several readers share."""

    closed = False
    mode = "rb"

    def __init__(self, file: "NativeFile") -> None:
        self._file, self._position = file, 0

    def read(self, count: int = -1) -> bytes:
        wanted = count if count >= 0 else self._file.size() - self._position
        found = bytes(self._file.read_at(wanted, self._position))
        self._position += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._file.size())[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The file stays open for other readers, until the connection is closed."""
