"""What Clew needs from a storage root: little enough that an object store can provide all of it.

Things are named by keys: strings such as `runs/<run>/input/<dataset>/<attempt>/part.json`, relative to the root, with
slashes. Files are immutable: every writer has names that no other writer can have (see `drafts`), so nothing is ever
renamed or replaced, and a file is there for readers only because an event names it. A folder is a common prefix of
keys: it exists as long as there is something below it.

Every operation raises OSError if the place itself does not respond, and FileNotFoundError if there is nothing at a key.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Protocol

from clew.deferred import dataclass
from clew.storage.store_reach import StoreReach

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyarrow import NativeFile

    from clew.storage.local_copies import LocalCopies

StorageKey = str
"""A name below a storage root: `folder/file`, never absolute, never with `..`."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it."""

    key: StorageKey
    size: int
    modified: float
    """Seconds since 1970."""
    version: str
    """Differs whenever the content was written again, such as an ETag."""

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]


class RemoteSource(str):
    """The name that a query has for a file which DuckDB cannot open by itself, with the root that opens it."""

    __slots__ = ("key", "root")
    root: "StorageRoot"
    key: StorageKey

    def __new__(cls, name: str, root: "StorageRoot", key: StorageKey) -> "RemoteSource":
        """A name for a file."""
        found = super().__new__(cls, name)
        found.root, found.key = root, key
        return found


class StorageRoot(Protocol):
    """Files below one address."""

    @property
    def address(self) -> str:
        """Where the root is, as messages name it."""
        ...

    def below(self, folder: StorageKey) -> "StorageRoot":
        """A folder of the root as a root."""
        ...

    @property
    def copies(self) -> "LocalCopies | None":
        """Where this machine keeps copies of what was read; None where reading costs nothing, or none are wanted."""
        ...

    @property
    def reach(self) -> StoreReach | None:
        """The settings of the datasource that the root belongs to; None where those of the environment reach it."""
        ...

    @property
    def stores(self) -> "OpenStore | None":
        """Opens other stores of the environment, for files of tables; None where the platform's settings must do."""
        ...

    # One file

    def read_bytes(self, key: StorageKey) -> bytes:
        """The content of a file."""
        ...

    def stat(self, key: StorageKey) -> StoredFile:
        """Size and age of a file."""
        ...

    def exists(self, key: StorageKey) -> bool:
        """Whether there is a file with this key."""
        ...

    def sha256(self, key: StorageKey) -> str:
        """The digest of a file of any size."""
        ...

    def etag(self, key: StorageKey) -> str | None:
        """What the store has worked out from the content of a file when it was written; None where it says nothing."""
        ...

    def write_new(self, key: StorageKey, data: bytes) -> bool:
        """Write an immutable file, and return when it is safe. False where it was there already.

        Any number of writers may race with the same content. FileExistsError where other content is there.
        """
        ...

    def write_secret(self, key: StorageKey, data: bytes) -> bool:
        """The same for a file that other users of the machine may not read."""
        ...

    def create(self, key: StorageKey) -> AbstractContextManager[BinaryIO]:
        """Write a file of any size. It appears when the context ends without an error.

        The name must be the writer's alone: what happens to a file that is there already is not defined.
        """
        ...

    def upload(self, key: StorageKey, chunks: Iterable[bytes]) -> None:
        """Write a file of any size as its bytes come: with little memory, and without a copy on this machine.

        Where it fails in the middle, a file that is cut short may be left. So this is for names that count for nothing
        until the writer says that all of it is there.
        """
        ...

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        """Copy a file, inside the store where it can do that. Readers of `key` see the file before or the new one.

        FileNotFoundError where there is no source, and then nothing has changed.
        """
        ...

    def open(self, key: StorageKey) -> AbstractContextManager[BinaryIO]:
        """Read a file of any size. It can seek."""
        ...

    def add_line(self, key: StorageKey, line: str) -> None:
        """Add a line to a log, and return when it is safe."""
        ...

    def lines(self, key: StorageKey) -> Sequence[str]:
        """The lines of a log, oldest first; none where nothing was added. The last may be cut short by a crash."""
        ...

    # Many files

    def files(self, folder: StorageKey) -> Iterator[StoredFile]:
        """All files below a folder, however deep, by key."""
        ...

    def folders(self, folder: StorageKey) -> Sequence[str]:
        """The names of the folders in a folder, in order."""
        ...

    def listing_once(self) -> "StorageRoot":
        """The same root for someone who looks at many folders at one moment: what is in them is asked for once."""
        ...

    def size(self, key: StorageKey) -> int:
        """Bytes of a file, or of all files below a folder; 0 where there is nothing."""
        ...

    def remove(self, key: StorageKey) -> None:
        """Remove a file, or everything below a folder. Doing it again changes nothing."""
        ...

    # For those who read and write tables

    def spark_uri(self, key: StorageKey) -> str:
        """Where Spark reads a file or a folder."""
        ...

    def source(self, key: StorageKey) -> str:
        """A file for DuckDB: its path, or a RemoteSource."""
        ...

    def shared(self, key: StorageKey) -> "NativeFile | None":
        """A file that stays open for many readers, where opening one takes a request; None where it costs nothing."""
        ...

    def reason(self, key: StorageKey, error: OSError) -> OSError:
        """What an error means that a library raised while it read a file."""
        ...

    def open_parquet(self, key: StorageKey, footer: "pq.FileMetaData | None" = None) -> "pq.ParquetFile":
        """Open a Parquet file; the caller closes it. The checksums of its pages are verified."""
        ...


OpenStore = Callable[[str, StoreReach | None], StorageRoot]
"""Opens an address of a store by the settings of a datasource; without them, by those of the environment."""
