"""A storage root in memory. It passes the suite of storage roots, and fails where a simulation wants it to."""

import errno
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, cast

from clew.storage.root import RemoteSource, StorageKey, StoredFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyarrow import NativeFile


@dataclass
class MemoryFiles:
    """The files, and who is told when they change. Shared by all who open the root."""

    clock: Callable[[], float] = time.time
    files: dict[StorageKey, "_Content"] = field(default_factory=dict)
    logs: dict[StorageKey, list[str]] = field(default_factory=dict)
    begins: Callable[[str, StorageKey], None] = lambda _what, _key: None
    """Called before each operation; may raise OSError."""
    ends: Callable[[str, StorageKey], None] = lambda _what, _key: None
    """Called after each operation that changes something; may raise OSError although it is done."""
    room: Callable[[StorageKey, int], int] = lambda _key, size: size
    """How many of so many bytes still fit."""
    changes: Callable[[str, StorageKey], None] = lambda _what, _key: None
    """Told of each file that is changed or removed, before it is."""
    version: int = 0

    def put(self, key: StorageKey, data: bytes) -> None:
        self.version += 1
        if key in self.files:
            self.changes("write", key)
        self.files[key] = _Content(data, self.clock(), self.version)


@dataclass(frozen=True, slots=True)
class _Content:
    data: bytes
    modified: float
    version: int


@dataclass(frozen=True)
class MemoryStorage:
    """Files in memory, below a prefix."""

    shared_files: MemoryFiles
    prefix: str = ""

    @property
    def address(self) -> str:
        return f"memory:/{self.prefix}"

    def below(self, folder: StorageKey) -> "MemoryStorage":
        return MemoryStorage(self.shared_files, f"{self.prefix}{folder.strip('/')}/")

    @property
    def copies(self) -> None:
        return None

    @property
    def reach(self) -> None:
        return None

    @property
    def stores(self) -> None:
        return None

    def _path(self, key: StorageKey) -> str:
        if key.startswith("/") or ".." in key.split("/"):
            raise FileNotFoundError(errno.ENOENT, "it is not below the storage root", key)
        return self.prefix + key

    def _found(self, key: StorageKey) -> _Content:
        found = self.shared_files.files.get(self._path(key))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", key)
        return found

    # One file

    def read_bytes(self, key: StorageKey) -> bytes:
        self.shared_files.begins("read", self._path(key))
        return self._found(key).data

    def stat(self, key: StorageKey) -> StoredFile:
        self.shared_files.begins("stat", self._path(key))
        return _stored(key, self._found(key))

    def exists(self, key: StorageKey) -> bool:
        self.shared_files.begins("stat", self._path(key))
        return self._path(key) in self.shared_files.files

    def sha256(self, key: StorageKey) -> str:
        self.shared_files.begins("read", self._path(key))
        return hashlib.sha256(self._found(key).data).hexdigest()

    def etag(self, key: StorageKey) -> str | None:
        del key
        return None

    def write_new(self, key: StorageKey, data: bytes) -> bool:
        path, shared = self._path(key), self.shared_files
        shared.begins("write", path)
        known = shared.files.get(path)
        if known is not None:
            if known.data != data:
                raise FileExistsError(errno.EEXIST, f"{key} exists with other content", key)
            return False
        if shared.room(path, len(data)) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", key)
        shared.put(path, data)
        shared.ends("write", path)
        return True

    def write_secret(self, key: StorageKey, data: bytes) -> bool:
        return self.write_new(key, data)

    @contextmanager
    def create(self, key: StorageKey) -> Iterator[BinaryIO]:
        """A file that is only there when all of it is, as in an object store."""
        path, shared = self._path(key), self.shared_files
        shared.begins("create", path)
        buffer = BytesIO()
        yield buffer
        data = buffer.getvalue()
        shared.begins("finish", path)
        if shared.room(path, len(data)) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", key)
        shared.put(path, data)
        shared.ends("finish", path)

    def upload(self, key: StorageKey, chunks: Iterable[bytes]) -> None:
        """A file that may be cut short where it fails in the middle."""
        path, shared = self._path(key), self.shared_files
        shared.begins("upload", path)
        data = b""
        for chunk in chunks:
            data += chunk
            shared.put(path, data)
            shared.begins("upload more", path)
        room = shared.room(path, len(data))
        shared.put(path, data[:room])
        if room < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", key)
        shared.ends("upload", path)

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        self.shared_files.begins("copy", self._path(key))
        self.shared_files.put(self._path(key), self._found(source).data)
        self.shared_files.ends("copy", self._path(key))

    def open(self, key: StorageKey) -> AbstractContextManager[BinaryIO]:
        self.shared_files.begins("read", self._path(key))
        return cast("AbstractContextManager[BinaryIO]", BytesIO(self._found(key).data))

    def add_line(self, key: StorageKey, line: str) -> None:
        path = self._path(key)
        self.shared_files.begins("add line", path)
        self.shared_files.logs.setdefault(path, []).append(line)
        self.shared_files.ends("add line", path)

    def lines(self, key: StorageKey) -> Sequence[str]:
        self.shared_files.begins("read", self._path(key))
        return list(self.shared_files.logs.get(self._path(key), []))

    # Many files

    def files(self, folder: StorageKey) -> Iterator[StoredFile]:
        """All files below a folder: those that were there when it was asked."""
        inside = self._path(folder.rstrip("/") + "/") if folder else self.prefix
        self.shared_files.begins("list", inside)
        found = sorted((path, each) for path, each in self.shared_files.files.items() if path.startswith(inside))
        for path, each in found:
            yield _stored(path.removeprefix(self.prefix), each)

    def folders(self, folder: StorageKey) -> Sequence[str]:
        inside = self._path(folder.rstrip("/") + "/") if folder else self.prefix
        self.shared_files.begins("list", inside)
        below = (path.removeprefix(inside) for path in self.shared_files.files if path.startswith(inside))
        return sorted({path.partition("/")[0] for path in below if "/" in path})

    def listing_once(self) -> "MemoryStorage":
        return self

    def size(self, key: StorageKey) -> int:
        path = self._path(key)
        self.shared_files.begins("stat", path)
        found = self.shared_files.files
        if path in found:
            return len(found[path].data)
        return sum(len(each.data) for name, each in found.items() if name.startswith(f"{path}/"))

    def remove(self, key: StorageKey) -> None:
        """File by file, in order: whoever dies meanwhile leaves the rest."""
        path, shared = self._path(key), self.shared_files
        shared.begins("remove", path)
        for each in sorted(name for name in shared.files if name == path or name.startswith(f"{path}/")):
            shared.changes("remove", each)
            shared.files.pop(each, None)
            shared.ends("remove", each)
        shared.logs.pop(path, None)

    # For those who read and write tables

    def spark_uri(self, key: StorageKey) -> str:
        return f"memory:/{self._path(key)}"

    def source(self, key: StorageKey) -> str:
        return RemoteSource(f"memory/{key}", self, key)

    def shared(self, key: StorageKey) -> "NativeFile | None":
        del key
        return None

    def reason(self, key: StorageKey, error: OSError) -> OSError:
        del key
        return error

    def open_parquet(self, key: StorageKey, footer: "pq.FileMetaData | None" = None) -> "pq.ParquetFile":
        import pyarrow.parquet as pq

        self.shared_files.begins("read", self._path(key))
        return pq.ParquetFile(BytesIO(self._found(key).data), metadata=footer, page_checksum_verification=True)


def _stored(key: StorageKey, found: _Content) -> StoredFile:
    return StoredFile(key, len(found.data), found.modified, f"{found.version}-{len(found.data)}")
