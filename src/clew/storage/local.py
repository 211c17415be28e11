"""A storage root in a folder of this machine, or of a file system that several machines mount."""

# ruff: noqa: PLC0415 - pyarrow is imported when something is read with it: most commands never do

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from clew.deferred import dataclass
from clew.storage.layout import temporary_name
from clew.storage.root import StorageKey, StoredFile
from clew.storage.whole_lines import append_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from clew.storage.root import OpenStore

T = TypeVar("T")

_TRIES = 20
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""What file systems without hard links say."""
_FOR_ALL, _FOR_THE_OWNER = 0o666, 0o600
"""Modes of files, before what the process takes away from them."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """Files below a folder."""

    folder: Path
    stores: "OpenStore | None" = field(default=None, repr=False, compare=False)
    """Opens the stores that files of tables lie in."""

    @property
    def address(self) -> str:
        """The folder."""
        return str(self.folder)

    def below(self, folder: StorageKey) -> "LocalStorage":
        """A folder of the root as a root."""
        return LocalStorage(self._path(folder), self.stores)

    @property
    def copies(self) -> None:
        """None: reading a file costs nothing here."""

    @property
    def reach(self) -> None:
        """None: a folder needs no settings."""

    def _path(self, key: StorageKey) -> Path:
        if key.startswith("/") or ".." in key.split("/"):
            raise FileNotFoundError(errno.ENOENT, "it is not below the storage root", key)
        return self.folder / key

    # One file

    def read_bytes(self, key: StorageKey) -> bytes:
        """The content of a file."""
        return self._path(key).read_bytes()

    def stat(self, key: StorageKey) -> StoredFile:
        """Size and age of a file."""
        return _stored(key, self._path(key).stat())

    def exists(self, key: StorageKey) -> bool:
        """Whether there is a file with this key."""
        return self._path(key).is_file()

    def sha256(self, key: StorageKey) -> str:
        """The digest of a file of any size."""
        return sha256_of_file(self._path(key))

    def etag(self, key: StorageKey) -> None:
        """None: a file system knows nothing about content."""
        del key

    def write_new(self, key: StorageKey, data: bytes) -> bool:
        """Write an immutable file, and return when it is safe. False where it was there already."""
        return _written_once(self._path(key), data, _FOR_ALL)

    def write_secret(self, key: StorageKey, data: bytes) -> bool:
        """The same for a file that other users of the machine may not read."""
        return _written_once(self._path(key), data, _FOR_THE_OWNER)

    @contextmanager
    def create(self, key: StorageKey) -> Iterator[BinaryIO]:
        """Write a file of any size."""
        path = self._path(key)
        try:
            with _in_folder(path.parent, lambda: path.open("xb")) as file:
                yield file
        except FileExistsError:
            raise
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def upload(self, key: StorageKey, chunks: Iterable[bytes]) -> None:
        """Write a file of any size as its bytes come."""
        with self.create(key) as file:
            file.writelines(chunks)

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        """Copy a file: beside its place first, so that it appears as a whole."""
        path = self._path(key)
        staged = path.with_name(temporary_name(path.name))
        try:
            _in_folder(path.parent, lambda: shutil.copyfile(self._path(source), staged))
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)

    def open(self, key: StorageKey) -> BinaryIO:
        """Read a file of any size."""
        return self._path(key).open("rb")

    def add_line(self, key: StorageKey, line: str) -> None:
        """Add a line to a log, and return when it is on the disk."""
        append_line(self._path(key), line.encode())

    def lines(self, key: StorageKey) -> Sequence[str]:
        """The lines of a log, oldest first."""
        path = self._path(key)
        return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []

    # Many files

    def files(self, folder: StorageKey) -> Iterator[StoredFile]:
        """All files below a folder, however deep, by key. One that goes meanwhile is left out."""
        for path in sorted(self._path(folder).rglob("*")):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    yield _stored(path.relative_to(self.folder).as_posix(), path.stat())

    def folders(self, folder: StorageKey) -> Sequence[str]:
        """The names of the folders in a folder, in order."""
        path = self._path(folder)
        return sorted(each.name for each in path.iterdir() if each.is_dir()) if path.is_dir() else []

    def listing_once(self) -> "LocalStorage":
        """The root itself: looking into a folder costs nothing here."""
        return self

    def size(self, key: StorageKey) -> int:
        """Bytes of a file, or of all files below a folder; 0 where there is nothing."""
        return size_of_path(self._path(key))

    def remove(self, key: StorageKey) -> None:
        """Remove a file, or everything below a folder."""
        path = self._path(key)
        remove_path(path)
        _checksum(path).unlink(missing_ok=True)
        if self.folder in path.parent.parents:
            with suppress(OSError):
                path.parent.rmdir()

    # For those who read and write tables

    def spark_uri(self, key: StorageKey) -> str:
        """The path: Spark runs on the same machine."""
        return str(self._path(key))

    def source(self, key: StorageKey) -> str:
        """The path."""
        return str(self._path(key))

    def shared(self, key: StorageKey) -> None:
        """Opening a file costs nothing here."""
        del key

    def reason(self, key: StorageKey, error: OSError) -> OSError:
        """The error itself: the system says what is wrong."""
        del key
        return error

    def open_parquet(self, key: StorageKey, footer: "pq.FileMetaData | None" = None) -> "pq.ParquetFile":
        """Open a Parquet file; the caller closes it."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self._path(key), metadata=footer, page_checksum_verification=True)


# What files outside a storage root need too: outputs, and what jobs send


def sha256_of_file(path: Path) -> str:
    """The digest of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with all that is in it. Doing it again changes nothing."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size_of_path(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 where there is nothing."""
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file() and not each.is_symlink())


def _stored(key: StorageKey, found: os.stat_result) -> StoredFile:
    # Whoever changes a file can set its time of change back, but not that of its inode.
    identity = f"{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}-{found.st_size}"
    return StoredFile(key, found.st_size, found.st_mtime, identity)


def _written_once(path: Path, data: bytes, mode: int) -> bool:
    if path.exists():
        _require_same(path, data)
        return False
    staged = _written_beside(path, data, mode)
    try:
        return _linked(staged, path, data)
    finally:
        staged.unlink(missing_ok=True)


def _require_same(path: Path, data: bytes) -> None:
    if path.read_bytes() != data:
        raise FileExistsError(errno.EEXIST, f"{path.name} exists with other content", str(path))


def _written_beside(path: Path, data: bytes, mode: int) -> Path:
    staged = path.with_name(temporary_name(path.name))

    def write() -> Path:
        with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123 - the mode is its own
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return staged

    return _in_folder(path.parent, write)


def _linked(staged: Path, path: Path, data: bytes) -> bool:
    """A link is created once and complete, even with concurrent writers."""
    try:
        path.hardlink_to(staged)
    except FileExistsError:
        _require_same(path, data)
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            _require_same(path, data)
            return False
        staged.replace(path)
    return True


def _in_folder(folder: Path, write: Callable[[], T]) -> T:
    """Write into a folder, created again if another process has meanwhile removed it because it was empty."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            return write()
    return write()


def _make_folder(folder: Path) -> None:
    """Make a folder, even where another process removes the one above it meanwhile because it was empty."""
    _in_folder(folder, lambda: None)


def _checksum(path: Path) -> Path:
    """The file in which Spark keeps the checksums of another."""
    return path.with_name(f".{path.name}.crc")
