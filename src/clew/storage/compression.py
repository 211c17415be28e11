"""Source files as the bytes that they hold, whatever they are compressed with."""

# ruff: noqa: PLC0415 - most files are not compressed

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO, cast

from clew.plan.local_files import SourceFile
from clew.storage.source_files import opened_source

if TYPE_CHECKING:
    import pyarrow as pa

_OF_SUFFIX = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
_OF_SPARK = frozenset({".deflate", ".lz4", ".snappy", ".lzo"})


def compression_of(file: SourceFile, option: str | None) -> str:
    """What a file is compressed with: what its rule says, else what its suffix says."""
    return option or _OF_SUFFIX.get(PurePath(file.path).suffix.lower(), "none")


def is_read_by_spark(file: SourceFile, option: str | None) -> bool:
    """Whether Spark decompresses a file by itself, which it decides by the suffix."""
    by_suffix = _OF_SUFFIX.get(PurePath(file.path).suffix.lower(), "none")
    return compression_of(file, option) == by_suffix and by_suffix in {"none", "gzip", "bz2"}


@contextmanager
def decompressed(file: SourceFile, option: str | None = None) -> Iterator[BinaryIO]:
    """The content of a file. OSError or ValueError where it is not compressed in the way that is said.

    So it is where a file breaks off, or has damaged pieces, while the block reads it.
    """
    try:
        yield from _decompressed(file, option)
    except (EOFError, zlib.error) as error:
        raise OSError(f"{file.shown} is damaged: {error}") from None


def _decompressed(file: SourceFile, option: str | None) -> Iterator[BinaryIO]:
    if option is None and PurePath(file.path).suffix.lower() in _OF_SPARK:
        raise ValueError(f"{file.shown} is compressed in a way that is read by Spark only")
    with opened_source(file) as stream:
        match compression_of(file, option):
            case "gzip":
                import gzip

                yield cast(BinaryIO, gzip.GzipFile(fileobj=stream))
            case "bz2":
                import bz2

                yield cast(BinaryIO, bz2.BZ2File(stream))
            case "xz":
                import lzma

                yield from _checked_xz(file, lzma.LZMAFile(stream), lzma.LZMAError)  # noqa: SIM115 - closed with the file that it reads
            case "zstd":
                import pyarrow as pa

                yield cast(BinaryIO, BufferedReader(_Bytes(pa.CompressedInputStream(pa.PythonFile(stream), "zstd"))))
            case "zip":
                yield from _only_member(file, stream)
            case _:
                yield stream


class _Bytes(RawIOBase):
    """A stream of Arrow as Python buffers it."""

    def __init__(self, stream: "pa.NativeFile") -> None:
        self._stream = stream

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a buffer."""
        target = memoryview(buffer)  # type: ignore[arg-type]
        found = self._stream.read(len(target))
        target[: len(found)] = found
        return len(found)


def _checked_xz(file: SourceFile, stream: object, damaged: type[Exception]) -> Iterator[BinaryIO]:
    try:
        yield cast(BinaryIO, stream)
    except damaged as error:
        raise OSError(f"{file.shown} is not xz: {error}") from None


def _only_member(file: SourceFile, stream: BinaryIO) -> Iterator[BinaryIO]:
    import zipfile

    try:
        with zipfile.ZipFile(stream) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise OSError(f"{file.shown} has {len(names)} files in it; a source has one")
            try:
                member = archive.open(names[0])
            except (RuntimeError, NotImplementedError) as error:  # a password, or an unknown compression
                raise OSError(f"{file.shown} cannot be decompressed: {error}") from None
            with member:
                yield cast(BinaryIO, member)
    except zipfile.BadZipFile as error:
        raise OSError(f"{file.shown} is not a zip file: {error}") from None
