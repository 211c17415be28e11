"""Text files that Spark cannot read as they are, copied to storage as plain UTF-8 with the same lines.

Spark knows few compressions and encodings, and cannot leave out lines before records that go over several lines. The
copy lies in the folder of one attempt and is removed when the dataset is pinned. Skipped lines become blank ones, so
that every line keeps its number. The digest on record is that of the file itself.
"""

from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.csv_files import CsvOptions, is_one_byte
from clew.engine.loading.source_digests import digest_of, state_of
from clew.engine.loading.sources import mismatch, unavailable
from clew.engine.loading.text_rows import FoundFile
from clew.engine.loading.uploads import UploadedFile
from clew.plan.local_files import SourceFile
from clew.plan.resolution import ResolvedSource
from clew.storage.compression import decompressed, is_read_by_spark
from clew.storage.drafts import Draft

_CHUNK = 4 << 20
_OF_RECORDS = frozenset({"utf-16", "utf-32", "utf-16-le", "utf-16-be"})
"""Encodings that Spark reads where records go over several lines."""
_TEXT_FORMATS = frozenset({"csv", "jsonl", "json", "fixed_width"})


def prepared(
    sources: tuple[ResolvedSource, ...], found: Sequence[FoundFile], transfer: Draft
) -> tuple[tuple[ResolvedSource, ...], list[FoundFile]]:
    """The sources and their files as Spark can read them."""
    if sources[0].format not in _TEXT_FORMATS:
        return sources, list(found)
    options = CsvOptions.of(sources[0])
    compression = sources[0].options.get("compression")
    blanked = options.skip_lines if options.is_multiline else 0
    all_of_them = bool(blanked) or not _is_readable(options, sources[0].format)
    files = [
        replace(each, file=_copied(each.file, options, compression, blanked, transfer, number))
        if all_of_them or not is_read_by_spark(each.file, compression)
        else each
        for number, each in enumerate(found)
    ]
    changed = {"compression"} | ({"encoding"} if all_of_them else set()) | ({"skip_lines"} if blanked else set())
    return tuple(replace(each, options=_without(each.options, changed)) for each in sources), files


def _is_readable(options: CsvOptions, format_: str) -> bool:
    if options.encoding in {"utf-8", "ascii"}:
        return True
    if format_ in {"jsonl", "json"}:
        return False
    return is_one_byte(options.encoding) or (options.is_multiline and options.encoding in _OF_RECORDS)


def _without(options: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in names}


def _copied(
    file: SourceFile, options: CsvOptions, compression: str | None, blanked: int, transfer: Draft, number: int
) -> UploadedFile:
    before = state_of(file)
    read = digest_of(file)
    key = f"{transfer.folder}/prepared/{number:05}.txt"
    try:
        transfer.root.upload(key, _utf8(file, options, compression, blanked))
        size = transfer.root.stat(key).size
    except UnicodeDecodeError as error:
        problem = f'{file.shown} is not text in the encoding "{options.encoding}": {error.reason}'
        raise mismatch(problem, "name its encoding in the option `encoding`") from None
    except OutOfReach:
        raise
    except (EOFError, OSError) as error:
        raise unavailable(f"{file.shown} cannot be read: {error}") from None
    if state_of(file) != before:
        raise unavailable(
            f"{file.shown} changed while it was being read", "run again when no other process writes to it"
        )
    root = transfer.root
    return UploadedFile(root.spark_uri(key), file.shown, size, is_local=False, root=root, key=key, read=read)


def _utf8(file: SourceFile, options: CsvOptions, compression: str | None, blanked: int) -> Iterator[bytes]:
    """The content in pieces. A mark of the byte order is no part of it.

    Blanked lines end as they did: Spark's parser takes the end of the first line for that of all.
    """
    decoder = getincrementaldecoder(options.encoding)()
    left, is_start, ended_with_return = blanked, True, False
    with decompressed(file, compression) as stream:
        while True:
            chunk = stream.read(_CHUNK)
            text = decoder.decode(chunk, final=not chunk)
            if is_start and text:
                text, is_start = text.removeprefix("\ufeff"), False
            while left and text:
                if ended_with_return and text.startswith("\n"):
                    text, ended_with_return = text[1:], False
                    yield b"\n"
                    continue
                end = min((found for found in (text.find("\n"), text.find("\r")) if found >= 0), default=-1)
                if end < 0:
                    text = ""
                    break
                ended_with_return = text[end] == "\r"
                yield text[end].encode()
                text, left = text[end + 1 :], left - 1
            if text:
                yield text.encode()
            if not chunk:
                return
