"""Remote files for DuckDB: it reads the footer of a file, and then what a query needs of the row groups it needs.

DuckDB would fetch extensions for object stores from the internet, which Clew never does. It also takes a file system
written in Python; this one has the files that a query names, under names that start with `clew://`.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractFileSystem

from clew.deferred import dataclass
from clew.storage.remote_blocks import SharedFile
from clew.storage.scan_ahead import ColumnChunks, Scan

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class QueriedFile:
    """A file that queries read."""

    file: SharedFile
    chunks: ColumnChunks | None = None
    """Where its columns lie, for reading ahead."""


class RemoteFiles(AbstractFileSystem):  # type: ignore[misc]
    """The files that queries were given, each opened once. May be used by several threads."""

    protocol = "clew"
    cachable = False

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._openers: dict[str, Callable[[], QueriedFile]] = {}
        self._files: dict[str, QueriedFile] = {}
        connection.register_filesystem(self)

    def give(self, name: str, opener: Callable[[], QueriedFile]) -> None:
        """Let queries read a file by a name."""
        with self._lock:
            self._openers.setdefault(self._strip_protocol(name), opener)

    def forget(self) -> None:
        """Let go of all files."""
        with self._lock:
            self._openers, self._files = {}, {}

    def _file(self, name: str) -> QueriedFile:
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
        found = self._file(path)
        return _Reading(Scan(found.file, found.chunks))

    def info(self, path: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """Size and kind of a file."""
        return {"name": path, "size": self._file(path).file.size, "type": "file"}

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
    """Positions in a file: DuckDB's threads share it, and each goes to a place before it reads there."""

    closed = False
    mode = "rb"

    def __init__(self, file: Scan) -> None:
        self._file = file
        # By the ids of threads: Python's own thread-local values do not outlast a call from a thread of DuckDB.
        self._positions: dict[int, int] = {}

    def read(self, count: int = -1) -> bytes:
        position = self.tell()
        found = self._file.read_at(position, count if count >= 0 else self._file.size - position)
        self._positions[threading.get_ident()] = position + len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        position = offset + (0, self.tell(), self._file.size)[whence]
        self._positions[threading.get_ident()] = position
        return position

    def tell(self) -> int:
        return self._positions.get(threading.get_ident(), 0)

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The file stays open for other readers, until the connection is closed."""
