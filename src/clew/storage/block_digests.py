"""Digests of blocks of a file, so that a reader can check what it reads without reading the rest.

A description names the digest of the whole file and, for files that are read in pieces, those of its blocks, in order.
Both are computed in one pass over the file.
"""

import hashlib
import io
from collections.abc import Callable, Iterable

from clew.deferred import dataclass
from clew.storage.root import StorageKey, StorageRoot

BLOCK = 1 << 20
"""Bytes of a block; the last one may be shorter. Files that are no larger have no digests of blocks."""


class NotAsWritten(Exception):
    """A file that differs from what was written, with the difference."""


def not_as_written(number: int) -> NotAsWritten:
    """The error that names a block by its first byte."""
    return NotAsWritten(f"its content from byte {number * BLOCK:,} on is not what was written")


@dataclass(frozen=True, slots=True)
class FileDigests:
    """The digests of a file, in hex."""

    sha256: str
    blocks: tuple[str, ...]
    """Of its blocks in order; none for a file that is read at once."""


def digests_of(chunks: Iterable[bytes]) -> FileDigests:
    """The digests of content that comes in blocks."""
    whole, blocks = hashlib.sha256(), list[str]()
    for block in chunks:
        whole.update(block)
        blocks.append(hashlib.sha256(block).hexdigest())
    return FileDigests(whole.hexdigest(), tuple(blocks) if len(blocks) > 1 else ())


def digests_of_file(root: StorageRoot, key: StorageKey) -> FileDigests:
    """The digests of a file below a storage root."""
    with root.open(key) as file:
        return digests_of(iter(lambda: file.read(BLOCK), b""))


ReadAt = Callable[[int, int], bytes]
"""Gives bytes of a file, by position and number."""


class PositionedFile(io.RawIOBase):
    """Something that is read by position, as Python's and Arrow's readers take a file."""

    def __init__(self, read_at: ReadAt, size: int) -> None:
        super().__init__()
        self._read_at, self._size = read_at, size
        self._position = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read anywhere."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Bytes from here on."""
        start = self._position
        end = self._size if size < 0 else min(self._size, start + size)
        if end <= start:
            return b""
        found = self._between(start, end)
        self._position = start + len(found)
        return found

    def readall(self) -> bytes:
        """The rest."""
        return self.read()

    def _between(self, start: int, end: int) -> bytes:
        return self._read_at(start, end - start)


class CheckedBlocks(PositionedFile):
    """A file, opened for reading, of which every byte that anyone gets has the digest that it was written with.

    A block is read as a whole and checked when someone first needs some of it. `checked` outlives the file object: the
    numbers of blocks that were found right since the file was last changed. NotAsWritten where one is not.
    """

    def __init__(self, read_at: ReadAt, size: int, blocks: tuple[str, ...], checked: set[int]) -> None:
        super().__init__(read_at, size)
        self._blocks, self._checked = blocks, checked

    def _between(self, start: int, end: int) -> bytes:
        """Bytes, of which the blocks that were not checked yet are read as a whole, all in one go."""
        unchecked = [number for number in range(start // BLOCK, -(-end // BLOCK)) if number not in self._checked]
        if not unchecked:
            return self._read_at(start, end - start)
        first, last = min(start, unchecked[0] * BLOCK), max(end, min(self._size, (unchecked[-1] + 1) * BLOCK))
        content = self._read_at(first, last - first)
        for number in unchecked:
            begin = number * BLOCK - first
            self._check(number, content[begin : begin + BLOCK])
        return content[start - first : end - first]

    def _check(self, number: int, block: bytes) -> None:
        if hashlib.sha256(block).hexdigest() != self._blocks[number]:
            raise not_as_written(number)
        self._checked.add(number)

    def check_all(self) -> None:
        """Check every block that was not checked yet."""
        for number in range(len(self._blocks)):
            if number not in self._checked:
                self._check(number, self._read_at(number * BLOCK, min(BLOCK, self._size - number * BLOCK)))
