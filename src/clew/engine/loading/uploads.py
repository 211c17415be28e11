"""Source files that only this process can see, copied to storage, from where Spark reads them.

A cluster without a shared disk sees nothing but the storage root. A copy lies in the folder of one attempt, which is
removed when the dataset is pinned; rows, messages and explanations name the file as it was found. What was copied is
what the digest is of, so that rows and record agree even if the file is written to meanwhile.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clew.deferred import dataclass
from clew.engine.loading.sources import unavailable
from clew.engine.loading.text_rows import FoundFile
from clew.plan.local_files import SourceFile
from clew.storage.drafts import Draft
from clew.storage.parts import SourceRead
from clew.storage.source_files import RemoteSourceFile

_CHUNK = 4 << 20
_SUFFIX = re.compile(r"\.[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class UploadedFile(RemoteSourceFile):
    """A copy in storage, and what was read when it was made."""

    read: SourceRead


def uploaded(found: Sequence[FoundFile], unseen: Sequence[SourceFile], transfer: Draft) -> list[FoundFile]:
    """The files of a dataset, with copies in the place of those that executors do not see."""
    hidden = {file.path for file in unseen}
    return [
        replace(each, file=_copied(each.file, transfer, number)) if each.file.path in hidden else each
        for number, each in enumerate(found)
    ]


def _copied(file: SourceFile, transfer: Draft, number: int) -> UploadedFile:
    """Copy a file. Its suffix stays: it tells Spark how the file is compressed."""
    suffix = Path(file.path).suffix
    key = f"{transfer.folder}/sources/{number:05}{suffix if _SUFFIX.fullmatch(suffix) else ''}"
    reading = _Reading(file)
    transfer.root.upload(key, reading.chunks())
    read = SourceRead(file.shown, reading.size, f"sha256:{reading.digest.hexdigest()}")
    root = transfer.root
    return UploadedFile(root.spark_uri(key), file.shown, reading.size, is_local=False, root=root, key=key, read=read)


class _Reading:
    """A file that is read once, piece by piece, with its size and digest."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.size = 0
        self.digest = hashlib.sha256()

    def chunks(self) -> Iterator[bytes]:
        """The content. UserError where it cannot be read, or changes meanwhile."""
        path = Path(self._file.path)
        try:
            with path.open("rb") as opened:
                before = path.stat()
                while chunk := opened.read(_CHUNK):
                    self.size += len(chunk)
                    self.digest.update(chunk)
                    yield chunk
                after = path.stat()
        except OSError as error:
            raise unavailable(f"{self._file.shown} cannot be read: {error.strerror}") from None
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or self.size != after.st_size:
            hint = "run again when no other process writes to it"
            raise unavailable(f"{self._file.shown} changed while it was being read", hint)
