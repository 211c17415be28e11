"""A storage root in an object store, read and written without a JVM through pyarrow's file systems.

An object appears as a whole when its upload ends, and never changes: that is all that `root` asks of a place. A store
cannot append, so each line of a log is an object. It has no folders either: objects whose names end in a slash, which
other programs and pyarrow itself leave as markers of folders, are not files and do not make a folder exist.
"""

# ruff: noqa: PLC0415 - pyarrow is imported when a store is used: most commands never do

import dataclasses
import errno
import hashlib
import io
import secrets
import shutil
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, BinaryIO, cast

from clew.deferred import dataclass
from clew.definitions.storage_addresses import AZURE, GCS, HDFS, S3, RemoteAddress
from clew.storage.layout import is_unfinished, temporary_name
from clew.storage.root import RemoteSource, StorageKey, StoredFile
from clew.storage.store_access import NO_SETTINGS, StoreAccess, duckdb_name, file_system, path_of, spark_uri
from clew.storage.store_errors import explained, explanation

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

    from clew.storage.local_copies import LocalCopies
    from clew.storage.root import OpenStore
    from clew.storage.store_reach import StoreReach

_CHUNK = 8 << 20
_READ_AHEAD = 1 << 20
_ON_THE_WAY = 32 << 20
"""Bytes of an upload that wait in memory for the store."""
_AT_ONCE = 16
"""Requests at the same time, where many small objects are read."""
_TOO_LARGE = "larger than the maximum allowable size"
"""What S3 says where a file of more than 5 GB is to be copied with one request, which is all that pyarrow makes."""
_TOLD = {S3: ("ETag", "Last-Modified"), AZURE: ("ETag", "Last-Modified"), GCS: ("generation", "updated")}
"""Where a store says of an object what changes with every write, and when that was. HDFS says nothing of the kind."""


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """Files below an address of an object store."""

    place: RemoteAddress
    access: StoreAccess = NO_SETTINGS
    copies: "LocalCopies | None" = field(default=None, repr=False, compare=False)
    """Where this machine keeps copies of what was read."""
    listings: "Listings | None" = field(default=None, repr=False, compare=False)
    """What was listed already, for someone who looks at many folders at one moment."""
    reach: "StoreReach | None" = field(default=None, compare=False)
    """The settings of the datasource that it belongs to."""
    stores: "OpenStore | None" = field(default=None, repr=False, compare=False)
    """Opens other stores, for files of tables."""

    @property
    def address(self) -> str:
        """The address, without credentials: it has none in it."""
        return str(self.place)

    def below(self, folder: StorageKey) -> "ObjectStorage":
        """A folder of the root as a root."""
        return ObjectStorage(self._at(folder), self.access, self.copies, reach=self.reach, stores=self.stores)

    @property
    def _store(self) -> "FileSystem":
        return file_system(self.place.scheme, self.place.store, self.access)

    def _at(self, key: StorageKey) -> RemoteAddress:
        if key.startswith("/") or ".." in key.split("/"):
            raise FileNotFoundError(errno.ENOENT, "it is not below the storage root", key)
        return self.place.below(key.rstrip("/"))

    def _path(self, key: StorageKey) -> str:
        return path_of(self._at(key))

    def _explained(self, key: StorageKey) -> AbstractContextManager[None]:
        return explained(self._at(key), self._probe)

    def _probe(self) -> None:
        """A listing of nothing: it needs no more than the credentials, and its answer has a body."""
        from pyarrow.fs import FileSelector

        self._store.get_file_info(FileSelector(self._path(".clew-probe"), allow_not_found=True))

    # One file

    def read_bytes(self, key: StorageKey) -> bytes:
        """The content of a file."""
        with self.open(key) as file:
            return file.read()

    def stat(self, key: StorageKey) -> StoredFile:
        """Size and age of a file."""
        if self.place.scheme in _TOLD:
            return self._headed(key)
        found = self._look(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "it does not exist", str(self._at(key)))
        return _stored(key, found)

    def etag(self, key: StorageKey) -> str | None:
        """What the store itself says of an object, and changes with every write of it; None on HDFS."""
        return self._headed(key).version if self.place.scheme in _TOLD else None

    def _headed(self, key: StorageKey) -> StoredFile:
        """A file as its store describes it. Times are whole seconds in S3, in which an object can be written twice."""
        with self._opened(key) as file, self._explained(key):
            told, size = file.metadata(), file.size()
        version, modified = (told[name].decode() for name in _TOLD[self.place.scheme])
        return StoredFile(key, size, datetime.fromisoformat(modified).timestamp(), version.strip('"'))

    def exists(self, key: StorageKey) -> bool:
        """Whether there is a file with this key."""
        return self._look(key) is not None

    def _look(self, key: StorageKey) -> "FileInfo | None":
        """A file; None where there is none. FileNotFoundError where not even the bucket is there."""
        with self._explained(key):
            found = self._store.get_file_info(self._path(key))
            if not found.is_file:
                self._require_store()
                return None
            return found

    def _require_store(self) -> None:
        """Libraries take a bucket that does not exist for an empty one."""
        from pyarrow.fs import FileType

        top = path_of(RemoteAddress(self.place.scheme, self.place.store, ""))
        if self._store.get_file_info(top).type is FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, "NoSuchBucket", top)

    def sha256(self, key: StorageKey) -> str:
        """The digest of a file of any size."""
        digest = hashlib.sha256()
        with self._opened(key) as file, self._explained(key):
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    def write_new(self, key: StorageKey, data: bytes) -> bool:
        """Write an immutable file. False where it was there already.

        Not all stores can write only if nothing is there, so this looks first. Writers that race with other content
        may both be told that they were first, which is why each has names of its own (see `drafts`).
        """
        if self.exists(key):
            return self._is_same(key, data)
        # Azure shows an object empty before it has its content, and empties it for every writer that begins it again.
        # HDFS shows a file as it grows.
        folder, slash, name = key.rpartition("/")
        written = f"{folder}{slash}{temporary_name(name)}" if self.place.scheme in {AZURE, HDFS} else key
        with self._explained(key), self._store.open_output_stream(self._path(written), compression=None) as stream:
            stream.write(data)
        return written == key or self._moved(written, key, data)

    def _moved(self, written: StorageKey, key: StorageKey, data: bytes) -> bool:
        """Give a file its name, as far as the store can. False where one with the same content has it already."""
        with self._explained(key):
            if self.place.scheme == HDFS:
                try:
                    self._store.move(self._path(written), self._path(key))
                except FileExistsError:
                    self._store.delete_file(self._path(written))
                    return self._is_same(key, data)
                return True
            self._store.copy_file(self._path(written), self._path(key))
            self._store.delete_file(self._path(written))
        return True

    def _is_same(self, key: StorageKey, data: bytes) -> bool:
        if self.read_bytes(key) != data:
            raise FileExistsError(errno.EEXIST, f"{key.rpartition('/')[2]} exists with other content", key)
        return False

    def write_secret(self, key: StorageKey, data: bytes) -> bool:
        """The same for a file whose writers race with other content: all but one learn that they have lost.

        Who may read it is for the policy of the bucket to say.
        """
        return self.write_new(key, data) and (self.read_bytes(key) == data or self._is_same(key, data))

    @contextmanager
    def create(self, key: StorageKey) -> Iterator[BinaryIO]:
        """Write a file of any size. It is kept on this machine until it is complete, and then uploaded at once."""
        import pyarrow as pa

        path = self._path(key)
        with tempfile.NamedTemporaryFile(prefix="clew-", suffix=".upload") as spool:
            yield cast("BinaryIO", spool)
            spool.flush()
            size = spool.tell() if spool.seekable() else 0
            with self._explained(key), self._store.open_output_stream(path, compression=None) as stream:
                # In one call: a stream that is left in the middle is closed by its library, and the file is there.
                if size:
                    stream.write(pa.memory_map(spool.name).read_buffer())

    def upload(self, key: StorageKey, chunks: Iterable[bytes]) -> None:
        """Write a file of any size as its bytes come. No more than a few parts of it are in memory."""
        with self._explained(key), self._store.open_output_stream(self._path(key), compression=None) as stream:
            waiting = 0
            for chunk in chunks:
                stream.write(chunk)
                waiting += len(chunk)
                if waiting >= _ON_THE_WAY:
                    stream.flush()  # waits for what is on its way: the library itself takes any number of parts
                    waiting = 0

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        """Copy a file inside the store; one that is too large for that, by way of this machine."""
        with self._explained(source):
            try:
                self._store.copy_file(self._path(source), self._path(key))
            except OSError as error:
                if _TOO_LARGE not in str(error):
                    raise
            else:
                return
        with self.open(source) as file, self.create(key) as copied:
            shutil.copyfileobj(file, copied, _CHUNK)

    @contextmanager
    def open(self, key: StorageKey) -> Iterator[BinaryIO]:
        """Read a file of any size. It can seek."""
        with (
            self._opened(key) as file,
            io.BufferedReader(_Remote(file, lambda: self._explained(key)), _READ_AHEAD) as reader,
        ):
            yield cast("BinaryIO", reader)

    @contextmanager
    def _opened(self, key: StorageKey) -> "Iterator[NativeFile]":
        file = self.opened(key)
        try:
            yield file
        finally:
            file.close()

    def opened(self, key: StorageKey) -> "NativeFile":
        """A file that several threads may read from; the caller closes it."""
        with self._explained(key):
            try:
                return self._store.open_input_file(self._path(key))
            except FileNotFoundError:
                self._require_store()
                raise

    def add_line(self, key: StorageKey, line: str) -> None:
        """Add a line to a log, as an object whose name says when."""
        self.write_new(f"{key}/{time.time_ns():020}-{secrets.token_hex(8)}", line.encode())

    def lines(self, key: StorageKey) -> Sequence[str]:
        """The lines of a log, oldest first by the clocks of those who wrote them."""
        names = [file.key for file in self.files(key) if not is_unfinished(file.name)]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return [content.decode(errors="replace") for content in threads.map(self.read_bytes, names)]

    # Many files

    def listing_once(self) -> "ObjectStorage":
        """The same root, which lists what is below each of its folders once, and remembers it."""
        return dataclasses.replace(self, listings=Listings(self._files_now))

    def files(self, folder: StorageKey) -> Iterator[StoredFile]:
        """All files below a folder, however deep, by key."""
        yield from self._files_now(folder) if self.listings is None else self.listings.below(folder)

    def _files_now(self, folder: StorageKey) -> list[StoredFile]:
        root = self._path("")
        start = len(root) + 1 if root else 0
        found = [_stored(each.path[start:], each) for each in self._listed(folder) if each.is_file]
        return sorted(found, key=lambda file: file.key)

    def _listed(self, folder: StorageKey) -> "list[FileInfo]":
        from pyarrow.fs import FileSelector

        with self._explained(folder):
            found = self._store.get_file_info(FileSelector(self._path(folder), recursive=True, allow_not_found=True))
            if not found:
                self._require_store()
            return cast("list[FileInfo]", found)

    def folders(self, folder: StorageKey) -> Sequence[str]:
        """The names of the folders in a folder, in order: those that have a file below them."""
        start = len(folder.rstrip("/")) + 1 if folder else 0
        names = (file.key[start:].partition("/") for file in self.files(folder))
        return sorted({name for name, slash, _ in names if slash})

    def size(self, key: StorageKey) -> int:
        """Bytes of a file, or of all files below a folder; 0 where there is nothing."""
        if self.listings is not None:
            return self.listings.size(key)
        found = self._look(key) if key else None
        return int(found.size) if found is not None else sum(file.size for file in self.files(key))

    def remove(self, key: StorageKey) -> None:
        """Remove a file, or everything below a folder. Doing it again changes nothing."""
        from pyarrow.fs import FileType

        path = self._path(key)
        with self._explained(key):
            try:
                match self._store.get_file_info(path).type:
                    case FileType.File:
                        self._store.delete_file(path)
                    case FileType.Directory:
                        self._store.delete_dir(path)
                    case _:
                        self._require_store()
            except FileNotFoundError as error:
                if error.strerror == "NoSuchBucket":
                    raise

    # For those who read and write tables

    def spark_uri(self, key: StorageKey) -> str:
        """Where Spark reads a file or a folder."""
        return spark_uri(self._at(key))

    def source(self, key: StorageKey) -> RemoteSource:
        """A file for DuckDB, which `duckdb_files` opens for it."""
        return RemoteSource(duckdb_name(self._at(key)), self, key)

    def shared(self, key: StorageKey) -> "NativeFile":
        """A file that several threads may read from."""
        return self.opened(key)

    def open_parquet(self, key: StorageKey, footer: "pq.FileMetaData | None" = None) -> "pq.ParquetFile":
        """Open a Parquet file; the caller closes it. What belongs together is read in one request."""
        import pyarrow.parquet as pq

        file = self.opened(key)
        try:
            with self._explained(key):
                return pq.ParquetFile(file, metadata=footer, pre_buffer=True, page_checksum_verification=True)
        except BaseException:
            file.close()
            raise

    def reason(self, key: StorageKey, error: OSError) -> OSError:
        """What an error means that came up while somebody read a file that was opened here."""
        return explanation(error, self._at(key))


class Listings:
    """The files below the folders at the top of a root, each listed when it is first asked for."""

    def __init__(self, listed: Callable[[StorageKey], list[StoredFile]]) -> None:
        self._listed = listed
        self._files: dict[StorageKey, list[StoredFile]] = {}

    def below(self, folder: StorageKey) -> list[StoredFile]:
        """All files below a folder, however deep, by key."""
        files = self._below_top(folder)
        start = f"{folder.rstrip('/')}/" if folder else ""
        first = bisect_left(files, start, key=lambda file: file.key)
        return list(takewhile(lambda file: file.key.startswith(start), islice(files, first, None)))

    def size(self, key: StorageKey) -> int:
        """Bytes of a file, or of all files below a folder."""
        is_file = (file.size for file in self._below_top(key) if file.key == key)
        return next(is_file, sum(file.size for file in self.below(key)))

    def _below_top(self, key: StorageKey) -> list[StoredFile]:
        top = key.partition("/")[0]
        if top not in self._files:
            self._files[top] = self._listed(top)
        return self._files[top]


class _Remote(io.RawIOBase):
    """A remote file as Python's own readers take it."""

    def __init__(self, file: "NativeFile", explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._file, self._explained = file, explained

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        with self._explained():
            return int(self._file.readinto(buffer))

    def readall(self) -> bytes:
        """All the rest with one request, not in the small steps in which Python would ask for it."""
        with self._explained():
            return bytes(self._file.read())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())


def _stored(key: StorageKey, found: "FileInfo") -> StoredFile:
    modified = found.mtime_ns or 0
    return StoredFile(key, int(found.size), modified / 1e9, f"{modified}-{found.size}")
