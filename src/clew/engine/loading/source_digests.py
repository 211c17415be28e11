"""Digests of the files that a dataset is read from, taken while Spark reads them.

A pinned input names what it was read from by content, so that anyone can tell later whether a file is still the one
that the rows came from.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.sources import changed_meanwhile, unavailable
from clew.engine.loading.uploads import UploadedFile
from clew.plan.local_files import SourceFile
from clew.storage.local import sha256_of_file
from clew.storage.parts import SourceRead
from clew.storage.source_files import RemoteSourceFile

_LARGE = 64 << 20
"""Bytes from which a file in a store is not read twice: there the store's own word for its content counts."""


class DigestsOfSources:
    """Reads files beside Spark, in a thread. A file that changes meanwhile is refused."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self._files = files
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="digests")
        self._digests: list[Future[SourceRead]] = []

    def __enter__(self) -> "DigestsOfSources":
        self._before = [state_of(file) for file in self._files]
        self._digests = [self._threads.submit(digest_of, file) for file in self._files]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def read(self) -> tuple[SourceRead, ...]:
        """What was read. Called when Spark has read the files too."""
        found = tuple(each.result() for each in self._digests)
        for file, before in zip(self._files, self._before, strict=True):
            if state_of(file) != before:
                raise changed_meanwhile(file.shown)
        return found


def state_of(file: SourceFile) -> tuple[int, int | str]:
    """What tells whether a file was written to."""
    if isinstance(file, UploadedFile):
        return file.size, ""  # a copy that nobody else knows
    try:
        if isinstance(file, RemoteSourceFile):
            stored = file.root.stat(file.key)
            return stored.size, stored.version
        found = Path(file.path).stat()
    except OutOfReach:
        raise
    except OSError as error:
        raise unavailable(f"{file.shown} cannot be read: {error.strerror}") from None
    return found.st_size, found.st_mtime_ns


def digest_of(file: SourceFile) -> SourceRead:
    """A file by its content."""
    if isinstance(file, UploadedFile):
        return file.read
    try:
        if isinstance(file, RemoteSourceFile) and file.size > _LARGE and (etag := file.root.etag(file.key)):
            return SourceRead(file.shown, file.size, f"etag:{etag}")
        digest = file.root.sha256(file.key) if isinstance(file, RemoteSourceFile) else sha256_of_file(Path(file.path))
    except OutOfReach:
        raise
    except OSError as error:
        raise unavailable(f"{file.shown} cannot be read: {error.strerror}") from None
    return SourceRead(file.shown, file.size, f"sha256:{digest}")
