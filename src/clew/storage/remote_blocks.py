"""Large remote files, read in blocks: several requests at once, what lies side by side in one, and nothing twice.

Every block is compared with its digest as it comes. Those that were read last stay in memory, within a bound that all
files of a trace share.
"""

# ruff: noqa: PLC0415 - pyarrow is imported when something is read

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from clew.deferred import dataclass
from clew.storage.block_digests import BLOCK, NotAsWritten, PositionedFile, ReadAt, not_as_written

if TYPE_CHECKING:
    from pyarrow import NativeFile

_AT_ONCE = 16
"""Requests at the same time, of all traces of a process, beside those of the threads that wait."""
_MOST_BLOCKS = 8
"""Blocks of one request. More would keep others waiting; fewer cost more in requests than they gain in time."""
_MOST_BYTES = 64 << 20

Span = tuple[int, int]
"""Bytes of a file: where they begin, and where they end."""


class SharedFile(Protocol):
    """A remote file that any number of threads read at once."""

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    def read_at(self, position: int, count: int) -> bytes:
        """Some of its bytes."""
        ...

    def fetch(self, spans: Iterable[Span]) -> None:
        """Have bytes ready that are about to be read. Raises what reading them would."""
        ...

    def fetch_ahead(self, spans: Iterable[Span]) -> None:
        """Begin to read bytes that may be needed, and do not wait for them."""
        ...

    def for_arrow(self) -> "NativeFile":
        """The file as Arrow reads it."""
        ...


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A small file, of which everything is here."""

    content: "memoryview"

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.content)

    def read_at(self, position: int, count: int) -> bytes:
        """Some of its bytes."""
        return bytes(self.content[position : position + count])

    def fetch(self, spans: Iterable[Span]) -> None:
        """Nothing has to be read."""

    def fetch_ahead(self, spans: Iterable[Span]) -> None:
        """Nothing has to be read."""

    def for_arrow(self) -> "NativeFile":
        """The file as Arrow reads it."""
        import pyarrow as pa

        return pa.BufferReader(pa.py_buffer(self.content))


class BlockCache:
    """Blocks that were read last, and those that are on their way. May be used by several threads."""

    def __init__(self, limit: int = _MOST_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._coming: dict[tuple[str, int], Future[bytes]] = {}
        self._held = 0

    def claim(self, file: str, numbers: Iterable[int]) -> "tuple[dict[int, Future[bytes]], list[int]]":
        """Blocks of a file, as they are or come, and the numbers of those that the caller has to get for everyone."""
        found, missing = dict[int, Future[bytes]](), list[int]()
        with self._lock:
            for number in numbers:
                key = (file, number)
                known = self._coming.get(key)
                if known is None:
                    known = Future()
                    if (block := self._blocks.get(key)) is not None:
                        self._blocks.move_to_end(key)
                        known.set_result(block)
                    else:
                        self._coming[key] = known
                        missing.append(number)
                found[number] = known
        return found, missing

    def arrived(self, file: str, number: int, block: bytes) -> None:
        """A claimed block is there."""
        with self._lock:
            key = (file, number)
            self._blocks[key] = block
            self._held += len(block)
            while self._held > self._limit:
                _, oldest = self._blocks.popitem(last=False)
                self._held -= len(oldest)
            waiting = self._coming.pop(key)
        waiting.set_result(block)

    def failed(self, file: str, number: int, error: BaseException) -> None:
        """A claimed block cannot be had. Whoever needs it later tries again."""
        with self._lock:
            waiting = self._coming.pop((file, number))
        waiting.set_exception(error)


@dataclass(frozen=True, slots=True)
class RemoteBlocks:
    """A large file."""

    path: str
    size: int
    source: ReadAt = field(repr=False)
    digests: Sequence[str] = field(repr=False)
    """Of its blocks; none for a file of an older Clew, whose pages have checksums."""
    cache: BlockCache = field(repr=False)

    def read_at(self, position: int, count: int) -> bytes:
        """Some of its bytes. Raises NotAsWritten, and OSError where they cannot be read."""
        end = min(self.size, position + count)
        if end <= position:
            return b""
        numbers = _numbers([(position, end)])
        blocks = self._got(self._claimed(numbers), numbers)
        first = numbers[0] * BLOCK
        if len(blocks) == 1:
            return blocks[0][position - first : end - first]
        blocks[0] = blocks[0][position - first :]
        blocks[-1] = blocks[-1][: end - numbers[-1] * BLOCK]
        return b"".join(blocks)

    def fetch(self, spans: Iterable[Span]) -> None:
        """Have bytes ready that are about to be read."""
        numbers = _numbers(spans)
        if len(numbers) * BLOCK <= _MOST_BYTES // 2:
            self._got(self._claimed(numbers), numbers)

    def fetch_ahead(self, spans: Iterable[Span]) -> None:
        """Begin to read bytes that may be needed. A reader that does need them learns what is wrong with them."""
        self._claimed(_numbers(spans), is_urgent=False)

    def for_arrow(self) -> "NativeFile":
        """The file as Arrow reads it. Each has a position of its own, so that readers do not wait for each other."""
        import pyarrow as pa

        return pa.PythonFile(PositionedFile(self.read_at, self.size), mode="r")

    @staticmethod
    def _got(coming: "dict[int, Future[bytes]]", numbers: Sequence[int]) -> list[bytes]:
        return [coming[number].result() for number in numbers]

    def _claimed(self, numbers: Sequence[int], *, is_urgent: bool = True) -> "dict[int, Future[bytes]]":
        """Blocks that are here or come. Requests for what is missing are made at once; one of them by this thread."""
        found, missing = self.cache.claim(self.path, numbers)
        runs = _runs(missing)
        own = runs.pop() if runs and is_urgent else None
        for run in runs:
            self._read_beside(run)
        if own is not None:
            self._read(own)
        return found

    def _read_beside(self, run: range) -> None:
        try:
            _readers(os.getpid()).submit(self._read, run)
        except RuntimeError:  # a process that is about to end takes no more work
            self._read(run)

    def _read(self, run: range) -> None:
        """Read blocks that lie side by side, with one request, and hand them to those who wait."""
        left = list(run)
        try:
            for number, block in zip(run, self._content(run), strict=True):
                self._require(number, block)
                self.cache.arrived(self.path, left.pop(0), block)
        except BaseException as error:  # noqa: BLE001 - it is raised where the block is needed
            for number in left:
                self.cache.failed(self.path, number, error)

    def _content(self, run: range) -> list[bytes]:
        start, end = run.start * BLOCK, min(self.size, run.stop * BLOCK)
        content = self.source(start, end - start)
        if len(content) != end - start:
            raise NotAsWritten(f"it ends before byte {end:,}")
        return [content[at : at + BLOCK] for at in range(0, end - start, BLOCK)]

    def _require(self, number: int, block: bytes) -> None:
        if self.digests and hashlib.sha256(block).hexdigest() != self.digests[number]:
            raise not_as_written(number)


def _numbers(spans: Iterable[Span]) -> list[int]:
    """The blocks that bytes lie in, in order."""
    return sorted({number for start, end in spans for number in range(start // BLOCK, -(-end // BLOCK))})


def _runs(numbers: Sequence[int]) -> list[range]:
    """Blocks that lie side by side, no more than one request should bring."""
    runs = list[range]()
    for number in numbers:
        if runs and runs[-1].stop == number and len(runs[-1]) < _MOST_BLOCKS:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


@lru_cache(maxsize=1)
def _readers(process: int) -> ThreadPoolExecutor:
    """The threads that read; a process that was forked off has none of its parent's."""
    del process
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="clew-blocks")
