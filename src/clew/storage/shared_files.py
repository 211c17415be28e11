"""Remote files that stay open for a reader: opening one takes a request, and small ones are kept as a whole.

What is kept is bounded: the file that was used longest ago goes first.
"""

# ruff: noqa: PLC0415 - pyarrow is imported when something is read

import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from clew.storage.block_digests import CheckedBlocks, NotAsWritten
from clew.storage.parts import PartFile
from clew.storage.root import StorageRoot

if TYPE_CHECKING:
    from pyarrow import NativeFile

    from clew.storage.local_copies import LocalCopies

SMALL = 1 << 20
"""Bytes up to which a file is read at once."""
_MOST_FILES = 256
_MOST_BYTES = 64 << 20
"""Of small files, all together."""


class SharedFiles:
    """The open files of a storage root. May be used by several threads."""

    def __init__(self, root: StorageRoot, copies: "LocalCopies | None" = None) -> None:
        self._root = root
        self._copies = copies
        self._lock = threading.Lock()
        self._files: OrderedDict[str, NativeFile] = OrderedDict()
        self._kept: dict[str, int] = {}

    def opened(self, file: PartFile) -> "NativeFile | None":
        """A file that has the size it was written with; None where the root opens files itself at no cost.

        A small one also has its content. Raises NotAsWritten, and OSError where it cannot be read.
        """
        with self._lock:
            known = self._files.get(file.path)
            if known is not None:
                self._files.move_to_end(file.path)
                return known
        copied = self._copy(file)
        if copied is not None:
            return self._remember(file.path, copied, file.size)
        opened = self._root.shared(file.path)
        if opened is None:
            return None
        size = opened.size()
        if size != file.size:
            raise NotAsWritten(f"it has {size:,} bytes, {file.size:,} were written")
        if size > SMALL:
            return self._remember(file.path, _checked(file, opened), 0)
        try:
            content = self._content(file, opened)
        finally:
            opened.close()
        return self._remember(file.path, content, size)

    def _content(self, file: PartFile, opened: "NativeFile") -> "NativeFile":
        import pyarrow as pa

        try:
            content = opened.read_buffer()
        except OSError as error:
            raise self._root.reason(file.path, error) from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise NotAsWritten("its content is not what was written")
        if self._copies is not None:
            self._copies.put(_name(file), content.to_pybytes())
        return pa.BufferReader(content)

    def _copy(self, file: PartFile) -> "NativeFile | None":
        """A small file of which this machine has a copy."""
        content = self._copies.get(_name(file)) if self._copies is not None and file.size <= SMALL else None
        if content is None or hashlib.sha256(content).hexdigest() != file.sha256:
            return None
        import pyarrow as pa

        return pa.BufferReader(content)

    def _remember(self, path: str, opened: "NativeFile", kept: int) -> "NativeFile":
        with self._lock:
            found = self._files.setdefault(path, opened)
            self._kept.setdefault(path, kept)
            while len(self._files) > _MOST_FILES or sum(self._kept.values()) > _MOST_BYTES:
                # Not closed here: another thread may be reading it. It is closed when nobody has it any more.
                oldest, _ = self._files.popitem(last=False)
                del self._kept[oldest]
            return found


def _checked(file: PartFile, opened: "NativeFile") -> "NativeFile":
    """A large file of which every block that is read is compared with its digest, where there are any."""
    if not file.blocks:
        return opened
    import pyarrow as pa

    def read_at(position: int, count: int) -> bytes:
        return bytes(opened.read_at(count, position))

    return pa.PythonFile(CheckedBlocks(read_at, file.size, file.blocks, set()), mode="r")


def _name(file: PartFile) -> str:
    return f"file {file.sha256}"
