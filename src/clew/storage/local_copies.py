"""Copies of what never changes, kept on this machine: small things that were read from an object store.

A command that starts anew would otherwise read the same descriptions, footers and small files again. Names say what the
content is (a digest), so nothing can be out of date. Processes share the folder: a copy appears as a whole, is checked
whenever it is read, and may go at any time. Whoever cannot use the folder reads from the store.

Copies are readable by their owner alone. Secrets, captures, and rows of runs that read personal or secret columns never
become copies; callers see to that.
"""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE

FOLDER_VARIABLE = "CLEW_CACHE_DIR"
SIZE_VARIABLE = "CLEW_CACHE_MB"
_USUAL_MB = 256
_MOST_MB = 1 << 20

_SHELVES = "0123456789abcdef"
"""Folders over which copies are spread by their names, each with its part of the room: little to look through."""
_LOCK = ".lock"
_BLOCK = 4096
"""Bytes that even the smallest file takes."""
_LONGEST_UNUSED_S = 7 * 24 * 3600
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class LocalCopies:
    """A folder of copies that together take no more than so many bytes. May be used by several processes."""

    folder: Path
    limit: int

    def get(self, name: str) -> bytes | None:
        """The copy with a name; None where there is none, or one that is damaged."""
        path = self._path(name)
        try:
            found = path.read_bytes()
            content = found[_DIGEST:]
            if found[:_DIGEST] == hashlib.sha256(content).digest():
                os.utime(path)  # those that were used longest ago go first
                return content
            path.unlink(missing_ok=True)
        except OSError:
            pass
        return None

    def put(self, name: str, content: bytes) -> None:
        """Keep a copy, and make room for it. Where that cannot be done at once, it is not done."""
        size = _taken(_DIGEST + len(content))
        room = self.limit // len(_SHELVES)
        path = self._path(name)
        if size > room:
            return
        with suppress(OSError), self._shelf(path.parent) as is_free:
            if is_free and not path.exists():
                _make_room(path.parent, room - size)
                _write(path, hashlib.sha256(content).digest() + content)

    def through(self, name: str, read: Callable[[], bytes]) -> bytes:
        """The copy with a name, or what is read now, of which a copy is kept."""
        found = self.get(name)
        if found is None:
            found = read()
            self.put(name, found)
        return found

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()
        return self.folder / digest[0] / digest

    @contextmanager
    def _shelf(self, shelf: Path) -> Iterator[bool]:
        """A folder to write in; False where another process does so right now, or other users could."""
        for folder in (self.folder, shelf):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(folder):
                yield False
                return
        lock = os.open(shelf / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(lock)


def _is_private(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _make_room(shelf: Path, room: int) -> None:
    """Remove what was used longest ago, what was not used for long, and what a process left that did not finish."""
    copies = list[tuple[float, int, str]]()
    for entry in os.scandir(shelf):
        if entry.name == _LOCK:
            continue
        found = entry.stat(follow_symlinks=False)
        is_whole = not entry.name.startswith(".")
        copies.append((found.st_mtime if is_whole else 0.0, _taken(found.st_size), entry.path))
    copies.sort()
    held, oldest = sum(size for _, size, _ in copies), time.time() - _LONGEST_UNUSED_S
    for used, size, path in copies:
        if held <= room and used >= oldest:
            break
        os.unlink(path)  # noqa: PTH108 - a name from the listing
        held -= size


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all. Nobody else writes in this folder meanwhile."""
    staged = path.with_name(f".{path.name}")
    with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - its mode
        file.write(content)
    staged.replace(path)


def _taken(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def local_copies(variables: Mapping[str, str]) -> LocalCopies | None:
    """The copies that the variables of a process ask for; None where none are kept. UserError for a bad number."""
    given = variables.get(SIZE_VARIABLE, "").strip() or str(_USUAL_MB)
    if not given.isascii() or not given.isdigit() or int(given) > _MOST_MB:
        problem = f'{SIZE_VARIABLE} is "{given}", but must be a whole number of megabytes up to {_MOST_MB:,}'
        raise UserError(INVALID_VALUE.anywhere(problem=problem, hint=f"{SIZE_VARIABLE}=0 keeps nothing"))
    return _copies_in(_folder(variables), int(given) << 20)


@lru_cache(maxsize=8)
def _copies_in(folder: Path | None, limit: int) -> LocalCopies | None:
    return LocalCopies(folder, limit) if folder is not None and limit else None


def _folder(variables: Mapping[str, str]) -> Path | None:
    chosen = variables.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    usual = variables.get("XDG_CACHE_HOME") or (f"{variables['HOME']}/.cache" if variables.get("HOME") else None)
    return Path(usual) / "clew" / "copies" if usual else None
