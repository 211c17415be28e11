"""Remote files that stay open for a reader: opening one takes a request, and small ones are kept as a whole.

What is kept is bounded: the file that was used longest ago goes first.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.storage.block_digests import NotAsWritten
from clew.storage.parts import PartFile
from clew.storage.remote_blocks import BlockCache, RemoteBlocks, SharedFile, WholeFile
from clew.storage.root import StorageKey, StorageRoot

if TYPE_CHECKING:
    from pyarrow import NativeFile

    from clew.storage.local_copies import LocalCopies

SMALL = 1 << 20
"""Bytes up to which a file is read at once."""
_MOST_FILES = 256
_MOST_BYTES = 64 << 20
"""Of small files, all together."""


PlaceOf = Callable[[PartFile], tuple[StorageRoot, StorageKey]]
"""Where a file lies: below the storage root, or where a table has it."""


class SharedFiles:
    """The open files of a trace. May be used by several threads."""

    def __init__(self, place_of: PlaceOf, copies: "LocalCopies | None" = None) -> None:
        self._place_of = place_of
        self._copies = copies
        self._lock = threading.Lock()
        self._blocks = BlockCache()
        self._files: OrderedDict[str, SharedFile] = OrderedDict()
        self._kept: dict[str, int] = {}

    def opened(self, file: PartFile) -> SharedFile | None:
        """A file that has the size it was written with; None where the root opens files itself at no cost.

        A small one also has its content, where its digest is known. Raises NotAsWritten, and OSError where it cannot be
        read.
        """
        with self._lock:
            known = self._files.get(file.path)
            if known is not None:
                self._files.move_to_end(file.path)
                return known
        copied = self._copy(file)
        if copied is not None:
            return self._remember(file.path, copied, file.size)
        root, key = self._place_of(file)
        opened = root.shared(key)
        if opened is None:
            return None
        size = opened.size()
        if size != file.size:
            raise NotAsWritten(f"it has {size:,} bytes, {file.size:,} were written")
        if size > SMALL:
            return self._remember(file.path, _in_blocks(file, opened, self._blocks), 0)
        try:
            content = self._content(file, opened)
        finally:
            opened.close()
        return self._remember(file.path, content, size)

    def _content(self, file: PartFile, opened: "NativeFile") -> SharedFile:
        try:
            content = opened.read_buffer()
        except OSError as error:
            root, key = self._place_of(file)
            raise root.reason(key, error) from None
        if not file.sha256:
            return WholeFile(memoryview(content))
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise NotAsWritten("its content is not what was written")
        if self._copies is not None:
            self._copies.put(_name(file), content.to_pybytes())
        return WholeFile(memoryview(content))

    def _copy(self, file: PartFile) -> SharedFile | None:
        """A small file of which this machine has a copy."""
        has_name = self._copies is not None and file.size <= SMALL and file.sha256
        content = self._copies.get(_name(file)) if self._copies is not None and has_name else None
        if content is None or hashlib.sha256(content).hexdigest() != file.sha256:
            return None
        return WholeFile(memoryview(content))

    def _remember(self, path: str, opened: SharedFile, kept: int) -> SharedFile:
        with self._lock:
            found = self._files.setdefault(path, opened)
            self._kept.setdefault(path, kept)
            while len(self._files) > _MOST_FILES or sum(self._kept.values()) > _MOST_BYTES:
                # Not closed here: another thread may be reading it. It is closed when nobody has it any more.
                oldest, _ = self._files.popitem(last=False)
                del self._kept[oldest]
            return found


def _in_blocks(file: PartFile, opened: "NativeFile", cache: BlockCache) -> SharedFile:
    """A large file of which every block that is read is compared with its digest, where there are any."""

    def read_at(position: int, count: int) -> bytes:
        return bytes(opened.read_at(count, position))

    return RemoteBlocks(file.path, file.size, read_at, file.blocks, cache)


def _name(file: PartFile) -> str:
    return f"file {file.sha256}"
