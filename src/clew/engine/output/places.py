"""Where the files of an output go: what a destination must be able to do, and folders of this machine.

A retry never doubles rows and a reader never sees half of an output: a folder is exchanged for another in one operation
of the file system, a file replaced by another, and files that are added carry the name of their run and step.
"""

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import BinaryIO, Protocol

from clew.deferred import dataclass
from clew.engine.output.attempts import OutputAttempt, attempt_of_folder, attempt_of_piece
from clew.engine.output.conflicts import conflict, told_as_conflict
from clew.engine.output.listed_names import LISTED, listing
from clew.plan.operations import OutputStep
from clew.storage.roots import storage_at
from clew.storage.tables.table_places import TablePlace

NAMES_OF_OUTPUTS = ("part-", "_", ".")
"""How the names begin that Spark and Clew give to files of an output."""

RunIsUnderWay = Callable[[str], bool]
"""Whether a run may still publish: it is neither over nor unknown."""


@dataclass(frozen=True, slots=True)
class StagedPiece:
    """A file that Spark has written for an output."""

    name: str
    """Below the folder of the attempt; with the folders of partitions, where there are any."""
    uri: str
    """Where Spark reads it."""
    open: Callable[[], AbstractContextManager[BinaryIO]]
    published: str | None = None
    """What it is called at the destination, where its name says what is in it."""


class OutputPlace(Protocol):
    """A destination, and the folder of one attempt to write to it."""

    @property
    def shown(self) -> str:
        """The destination as the user knows it."""
        ...

    @property
    def attempt(self) -> OutputAttempt:
        """Who is writing."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the format, with the values of secrets."""
        ...

    @property
    def spark_uri(self) -> str:
        """The destination as Spark reaches it."""
        ...

    @property
    def table_place(self) -> TablePlace:
        """The destination as the folder of a table."""
        ...

    @property
    def staging_uri(self) -> str:
        """Where Spark writes files until they are published."""
        ...

    @property
    def is_one_file(self) -> bool:
        """Whether the output is one file, not a folder of them."""
        ...

    def require_room(self, step: OutputStep, *, can_be_extended: bool) -> None:
        """Report obvious obstacles before anything is computed."""
        ...

    def pieces(self) -> list[StagedPiece]:
        """The files that were written, by name."""
        ...

    def create_piece(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write a file beside those of Spark."""
        ...

    def has_others(self) -> bool:
        """Whether the file that is there holds anything that this run and step did not add."""
        ...

    def publish_folder(self, step: OutputStep, pieces: Sequence[StagedPiece]) -> None:
        """Make files visible, in this order: in place of what is there, or added to it."""
        ...

    def publish_file(self, step: OutputStep, pieces: Sequence[StagedPiece], header: bytes) -> None:
        """Make files visible as one: in place of what is there, or added to it."""
        ...

    def abandon(self) -> None:
        """Remove what was written and not published."""
        ...


@dataclass(frozen=True, slots=True)
class LocalOutput:
    """A destination in a folder of this machine, or of a file system that several machines mount."""

    path: Path
    shown: str
    attempt: OutputAttempt
    is_under_way: RunIsUnderWay
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def spark_uri(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def table_place(self) -> TablePlace:
        """The destination as the folder of a table."""
        return TablePlace(storage_at(self.path), str(self.path))

    @property
    def staging_uri(self) -> str:
        """The folder of the attempt, beside the destination."""
        return str(self._staging)

    @property
    def _staging(self) -> Path:
        return self.path.with_name(self.attempt.folder_for(self.path.name))

    @property
    def is_one_file(self) -> bool:
        """Whether the path has a suffix."""
        return bool(self.path.suffix)

    def require_room(self, step: OutputStep, *, can_be_extended: bool) -> None:
        """Report obvious obstacles, and make the folder around the destination."""
        if self.is_one_file and self.path.is_dir():
            raise conflict(step, f"cannot write {self.shown}: it is a folder")
        if not self.is_one_file and self.path.exists() and not self.path.is_dir():
            raise conflict(step, f"cannot write {self.shown}: it is a file, and the output is a folder")
        if self.is_one_file and step.mode == "append" and not can_be_extended and self.has_others():
            hint = "write to a folder, to which files can be added"
            name = (step.destination.format or "parquet").capitalize()
            raise conflict(step, f"cannot append to {self.shown}: a {name} file cannot be extended", hint)
        with told_as_conflict(step, self.shown):
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def pieces(self) -> list[StagedPiece]:
        """The files that were written, by name."""
        found = ((path.relative_to(self._staging).as_posix(), path) for path in self._staging.rglob("part-*"))
        return [StagedPiece(name, str(path), _opener(path)) for name, path in sorted(found)]

    def create_piece(self, name: str) -> BinaryIO:
        """Write a file beside those of Spark."""
        return (self._staging / name).open("xb")

    def has_others(self) -> bool:
        """Whether the file that is there holds anything that this run and step did not add."""
        return AppendedFile(self.path, self.attempt.owner).has_others()

    def publish_folder(self, step: OutputStep, pieces: Sequence[StagedPiece]) -> None:
        """Make files visible, in place of what is there or added to it."""
        with told_as_conflict(step, self.shown):
            self._take_away_others()
            if step.mode == "append":
                self._add(pieces)
            else:
                self._replace(pieces)
        self.abandon()

    def publish_file(self, step: OutputStep, pieces: Sequence[StagedPiece], header: bytes) -> None:
        """Make files visible as one, in place of what is there or added to it."""
        with told_as_conflict(step, self.shown):
            self._take_away_others()
            complete = self._staging / f"complete{self.path.suffix}"
            appended = AppendedFile(self.path, self.attempt.owner)
            with complete.open("wb") as file:
                if step.mode == "append":
                    appended.copy_others(file.write)
                if file.tell() == 0:
                    file.write(header)
                start = file.tell()
                for piece in pieces:
                    with piece.open() as opened:
                        shutil.copyfileobj(opened, file)
                end = file.tell()
                file.flush()
                os.fsync(file.fileno())
            if step.mode == "append":
                appended.note(self._staging, start, end)
            else:
                appended.forget(self._staging)
            complete.replace(self.path)
        self.abandon()

    def abandon(self) -> None:
        """Remove the folder of the attempt."""
        shutil.rmtree(self._staging, ignore_errors=True)

    def _take_away_others(self) -> None:
        """Remove the folders of earlier attempts and of runs that are over.

        A worker that has lost its run may be frozen just before it publishes. All it can do then is to move what lies
        in its folder, so that it can do nothing once the folder is gone. It is renamed first: it goes as a whole.
        """
        for path in list(self.path.parent.iterdir()):
            other = attempt_of_folder(path.name, self.path.name)
            if other is None or other == self.attempt:
                continue
            is_same_run = other.run_id == self.attempt.run_id
            if self.attempt.supersedes(other) or (not is_same_run and not self.is_under_way(other.run_id)):
                gone = path.with_name(f"{path.name}.superseded")
                try:
                    path.rename(gone)
                except FileNotFoundError:
                    continue
                shutil.rmtree(gone, ignore_errors=True)

    def _replace(self, pieces: Sequence[StagedPiece]) -> None:
        if any(piece.published for piece in pieces):
            _by_value(self._staging, pieces)
            names = [piece.published for piece in pieces if piece.published is not None]
            (self._staging / LISTED).write_bytes(listing(self.attempt.run_id, self.attempt.seq, names))
        elif not any("/" in piece.name for piece in pieces):
            _in_order(self._staging, pieces)
        if self.path.exists():
            exchange(self._staging, self.path)
        else:
            self._staging.rename(self.path)

    def _add(self, pieces: Sequence[StagedPiece]) -> None:
        """Add files under names that only this attempt uses, after removing those of earlier ones."""
        if not self._staging.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._staging))
        self.path.mkdir(parents=True, exist_ok=True)
        for path in list(self.path.rglob("part-*")):
            earlier = attempt_of_piece(path.name)
            if earlier is not None and self.attempt.supersedes(earlier):
                path.unlink(missing_ok=True)
        for number, piece in enumerate(pieces):
            suffix = "".join(Path(piece.name).suffixes[-2:])
            target = (self.path / piece.name).with_name(self.attempt.piece(number, suffix))
            target.parent.mkdir(parents=True, exist_ok=True)
            Path(piece.uri).rename(target)


def _opener(path: Path) -> Callable[[], AbstractContextManager[BinaryIO]]:
    return lambda: path.open("rb")


def _by_value(staging: Path, pieces: Sequence[StagedPiece]) -> None:
    """Give files the names of what is in them, and remove the folders that Spark has made for it."""
    for piece in pieces:
        (staging / piece.name).rename(staging / (piece.published or piece.name))
    for folder in {piece.name.partition("/")[0] for piece in pieces if "/" in piece.name}:
        shutil.rmtree(staging / folder)


def _in_order(staging: Path, pieces: Sequence[StagedPiece]) -> None:
    """Number files that were added later behind the first ones: most readers take files in the order of their names."""
    names = [piece.name for piece in pieces]
    for number, name in enumerate(names):
        if names[: number + 1] != sorted(names[: number + 1]):
            names[number] = f"part-{number:05}-{name.split('-', 2)[2]}"
            (staging / name).rename(staging / names[number])


_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2)."""
_HERE = -100
"""AT_FDCWD."""
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


def exchange(new: Path, there: Path) -> None:
    """Put a folder in the place of another in one operation; the other is then where the new one was.

    Where the file system cannot do that, the other is moved away first, and back if the new one has gone meanwhile.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        _moved_aside(new, there)
        return
    if rename(_HERE, os.fsencode(new), _HERE, os.fsencode(there), _EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in _UNSUPPORTED:
        raise OSError(code, os.strerror(code), str(new))
    _moved_aside(new, there)


def _moved_aside(new: Path, there: Path) -> None:
    if not new.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(new))
    aside = new.with_name(f"{new.name}.old")
    there.rename(aside)
    try:
        new.rename(there)
    except OSError:
        aside.rename(there)
        raise
    aside.rename(new)


class AppendedFile:
    """Which bytes of a file which run has added, kept in a file beside it, so that a retry removes its own first."""

    def __init__(self, target: Path, owner: str) -> None:
        self._target = target
        self._owner = owner
        self._notes = target.with_name(f".{target.name}.appended.json")
        self._kept = list[tuple[str, int, int]]()

    def has_others(self) -> bool:
        """Whether the file holds anything that this owner did not add."""
        size = self._target.stat().st_size if self._target.exists() else 0
        return size > sum(end - start for owner, start, end in self._noted(size) if owner == self._owner)

    def copy_others(self, write: Callable[[bytes], int]) -> None:
        """Copy what the file holds, without what this owner added to it before."""
        if not self._target.exists():
            return
        size = self._target.stat().st_size
        position, removed = 0, 0
        with self._target.open("rb") as old:
            for owner, start, end in self._noted(size):
                if owner == self._owner:
                    _copy(old, write, start - position)
                    old.seek(end)
                    position, removed = end, removed + end - start
                else:
                    self._kept.append((owner, start - removed, end - removed))
            _copy(old, write, size - position)

    def note(self, staging: Path, start: int, end: int) -> None:
        """Remember what this owner is about to add. A note about bytes that were never written counts for nothing.

        It comes from the folder of the attempt: who has lost that folder can note nothing.
        """
        self._put(staging, [*self._kept, (self._owner, start, end)])

    def forget(self, staging: Path) -> None:
        """The file is about to be replaced as a whole."""
        if self._notes.exists():
            self._put(staging, [])

    def _put(self, staging: Path, entries: Sequence[tuple[str, int, int]]) -> None:
        noted = staging / self._notes.name
        noted.write_text(json.dumps(entries), encoding="utf-8")
        noted.replace(self._notes)

    def _noted(self, size: int) -> list[tuple[str, int, int]]:
        if not self._notes.exists():
            return []
        entries = json.loads(self._notes.read_text(encoding="utf-8"))
        return [(owner, start, end) for owner, start, end in entries if end <= size]


def _copy(source: BinaryIO, write: Callable[[bytes], int], count: int) -> None:
    while count > 0 and (chunk := source.read(min(count, 1 << 20))):
        write(chunk)
        count -= len(chunk)
