"""The files of a path source in an object store, found and read without Spark.

A store has no folders and cannot match patterns, so the keys below the part of a path that has no wildcard are listed
and compared. What a path means is the same as for files of this machine (see `plan/local_files`).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from clew.deferred import dataclass
from clew.definitions import FilesDatasource
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.plan.local_files import SourceFile, local_files, local_folder
from clew.plan.resolution import ResolvedSource
from clew.storage.root import StorageKey, StorageRoot

RootOf = Callable[[FilesDatasource], StorageRoot]
"""The root of a datasource, with what is needed to read it."""

_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class RemoteSourceFile(SourceFile):
    """A file in an object store."""

    root: StorageRoot
    key: StorageKey


def source_files(
    datasource: FilesDatasource, workspace_root: Path, root_of: RootOf, source: ResolvedSource
) -> list[SourceFile]:
    """The files of a source, sorted by name. UserError where its root cannot be read."""
    folder = local_folder(datasource, workspace_root)
    found = local_files(folder, source) if folder is not None else _remote_files(root_of(datasource), source)
    return sorted(found, key=lambda file: file.shown)


def opened_source(file: SourceFile) -> AbstractContextManager[BinaryIO]:
    """A source file, to be read from its beginning."""
    return file.root.open(file.key) if isinstance(file, RemoteSourceFile) else Path(file.path).open("rb")


def _remote_files(root: StorageRoot, source: ResolvedSource) -> Iterator[SourceFile]:
    try:
        for key, size in _matches(root, source.location):
            yield RemoteSourceFile(root.spark_uri(key), key, size, is_local=False, root=root, key=key)
    except OSError as error:
        problem = f'cannot list {source.location} in "{source.datasource_id}": {error.strerror or error}'
        raise UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem)) from None


def _matches(root: StorageRoot, location: str) -> Iterator[tuple[StorageKey, int]]:
    """The files that a path means. One that exists as it is written is not taken for a pattern."""
    plain = location.strip("/")
    if not plain or location.startswith("/"):
        return
    if root.exists(plain):
        yield plain, root.stat(plain).size
        return
    below = [(file.key, file.size) for file in root.files(plain) if _is_data(file.key[len(plain) + 1 :])]
    if below:
        yield from below
    elif _WILDCARD.search(plain):
        pattern = _pattern(plain)
        for file in root.files(_fixed_folder(plain)):
            match = pattern.match(file.key)
            if match is not None and _is_data(file.key[match.end() :].lstrip("/")) and not _is_hidden(match[0]):
                yield file.key, file.size


def _fixed_folder(pattern: str) -> StorageKey:
    fixed = list[str]()
    for part in pattern.split("/"):
        if _WILDCARD.search(part):
            break
        fixed.append(part)
    return "/".join(fixed)


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern for the beginning of a key: a file, or a folder whose files are meant."""
    parts = [".*" if part == "**" else _segment(part) for part in text.split("/")]
    joined = "/".join(parts).replace(".*/", "(?:.*/)?")
    return re.compile(rf"{joined}(?=/|$)")


def _segment(text: str) -> str:
    """One name with wildcards, as the shell takes them."""
    found, position = "", 0
    while position < len(text):
        char = text[position]
        end = text.find("]", position + 2) if char == "[" else -1
        if char == "*":
            found += "[^/]*"
        elif char == "?":
            found += "[^/]"
        elif end > 0:
            inside = text[position + 1 : end]
            negated = inside.startswith("!")
            found += f"[{'^' if negated else ''}{re.escape(inside[negated:]).replace(chr(92) + '-', '-')}]"
            position = end
        else:
            found += re.escape(char)
        position += 1
    return found


def _is_data(below: str) -> bool:
    """Whether a file in a folder is data: no name on the way to it starts with a dot or an underscore."""
    return not any(_is_hidden(part) for part in below.split("/") if part)


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith((".", "_"))
