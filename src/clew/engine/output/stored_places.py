"""Destinations of outputs in object stores, where nothing can be renamed and no folder replaced at once.

Files are copied from the folder of the attempt to names that only this attempt uses, and a marker, `_SUCCESS`, is
copied last. While an output is being replaced there is no marker; under one there is never a mixture of two outputs.
Whoever publishes takes the folders of earlier attempts away first, so that a worker that was overtaken has nothing left
to copy. If it was frozen right before it removes the marker, it removes that of the output which has taken its place;
it learns so from its next request, and puts it back.

Files that are named after values have the same names in every attempt. Each attempt lists its own in a file that only
it writes, before it copies the first, so that a retry and the next run know them as files of an output.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import field
from pathlib import PurePosixPath
from typing import BinaryIO

from clew.deferred import dataclass
from clew.engine.output.attempts import OutputAttempt, attempt_of_folder, attempt_of_piece
from clew.engine.output.conflicts import conflict, told_as_conflict
from clew.engine.output.listed_names import LISTED, listed_in, listing
from clew.engine.output.places import NAMES_OF_OUTPUTS, RunIsUnderWay, StagedPiece
from clew.plan.operations import OutputStep
from clew.storage.root import StorageKey, StorageRoot, StoredFile
from clew.storage.tables.table_places import TablePlace

MARKER = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """A destination below the root of an object store."""

    root: StorageRoot
    key: StorageKey
    shown: str
    attempt: OutputAttempt
    is_under_way: RunIsUnderWay
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def spark_uri(self) -> str:
        """The destination as Spark reaches it."""
        return self.root.spark_uri(self.key)

    @property
    def table_place(self) -> TablePlace:
        """The destination as the folder of a table."""
        folder = self.root.below(self.key)
        return TablePlace(folder, folder.address)

    @property
    def staging_uri(self) -> str:
        """The folder of the attempt, beside the destination."""
        return self.root.spark_uri(self._staging)

    @property
    def _name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def _beside(self) -> StorageKey:
        """The folder that the destination lies in, with a slash behind it."""
        return self.key.removesuffix(self._name)

    @property
    def _staging(self) -> StorageKey:
        return f"{self._beside}{self.attempt.folder_for(self._name)}"

    @property
    def _list(self) -> StorageKey:
        return f"{self.key}/{LISTED}-{self.attempt.owner}.{self.attempt.fence}.{self.attempt.attempt}"

    @property
    def is_one_file(self) -> bool:
        """Whether the name has a suffix."""
        return bool(PurePosixPath(self.key).suffix)

    def require_room(self, step: OutputStep, *, can_be_extended: bool) -> None:
        """Report obvious obstacles before anything is computed."""
        del can_be_extended
        with told_as_conflict(step, self.shown):
            if not self.is_one_file and self.root.exists(self.key):
                problem = f"cannot write {self.shown}: it is a file, and the output is a folder"
                raise conflict(step, problem)
            if self.is_one_file and step.mode == "append" and self.root.exists(self.key):
                hint = "write to a folder, to which files can be added"
                raise conflict(step, f"cannot append to {self.shown}: a stored file cannot be extended", hint)
            stranger = next(self._strangers(), None) if step.mode == "overwrite" and not self.is_one_file else None
            if stranger is not None:
                problem = f"an output to {self.shown} would delete {stranger}, which no output wrote"
                hint = "choose a folder that nothing else is in, or move the file elsewhere"
                raise conflict(step, problem, hint)

    def _strangers(self) -> Iterator[StorageKey]:
        """Files at the destination that no output names like this: replacing it would delete them."""
        ours = {f"{self.key}/{name}" for each in self._lists() for name in listed_in(self._content(each.key))}
        for file in self.root.files(self.key):
            if not file.name.startswith(NAMES_OF_OUTPUTS) and file.key not in ours:
                yield file.key

    def _lists(self) -> list[StoredFile]:
        """The lists of files that outputs have named after values."""
        return [file for file in self.root.files(self.key) if file.name.startswith(LISTED)]

    def _content(self, key: StorageKey) -> bytes:
        with suppress(FileNotFoundError), self.root.open(key) as opened:
            return opened.read()
        return b""

    def pieces(self) -> list[StagedPiece]:
        """The files that were written, by name."""
        found = [file for file in self.root.files(self._staging) if file.name.startswith("part-")]
        named = sorted((file.key.removeprefix(f"{self._staging}/"), file.key) for file in found)
        return [StagedPiece(name, self.root.spark_uri(key), self._opener(key)) for name, key in named]

    def _opener(self, key: StorageKey) -> Callable[[], AbstractContextManager[BinaryIO]]:
        return lambda: self.root.open(key)

    def create_piece(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write a file beside those of Spark."""
        return self.root.create(f"{self._staging}/{name}")

    def has_others(self) -> bool:
        """Files in object stores are replaced as a whole: there is nothing to add to."""
        return False

    def publish_folder(self, step: OutputStep, pieces: Sequence[StagedPiece]) -> None:
        """Copy files to the destination, in place of what is there or added to it, and the marker last."""
        with told_as_conflict(step, self.shown):
            self._take_away_others()
            self._require_there(pieces)
            replaced = self._replaced(step)
            names = [piece.published or self._name_of(number, piece) for number, piece in enumerate(pieces)]
            with self.root.create(f"{self._staging}/{MARKER}") as marker:
                marker.write(listing(self.attempt.run_id, self.attempt.seq, names))
            by_value = [piece.published for piece in pieces if piece.published is not None]
            if by_value:
                with self.root.create(self._list) as file:
                    file.write(listing(self.attempt.run_id, self.attempt.seq, by_value))
            self.root.remove(f"{self.key}/{MARKER}")
            try:
                for piece, name in zip(pieces, names, strict=True):
                    self.root.copy(f"{self._staging}/{piece.name}", f"{self.key}/{name}")
            except FileNotFoundError:
                self._retreat(step, names)
                raise
            # What an earlier attempt had on its way when its folder was taken away may have arrived since.
            for key in {*replaced, *self._superseded(self._there())}:
                if key.removeprefix(f"{self.key}/") not in names:
                    self.root.remove(key)
            self.root.copy(f"{self._staging}/{MARKER}", f"{self.key}/{MARKER}")
        self.abandon()

    def publish_file(self, step: OutputStep, pieces: Sequence[StagedPiece], header: bytes) -> None:
        """Put files together, and copy the result over what is there: readers see the one or the other."""
        with told_as_conflict(step, self.shown):
            self._take_away_others()
            complete = f"{self._staging}/complete{PurePosixPath(self.key).suffix}"
            with self.root.create(complete) as file:
                file.write(header)
                for piece in pieces:
                    with piece.open() as opened:
                        shutil.copyfileobj(opened, file)
            try:
                # Sending it takes a while, and makes a folder that was taken away in the meantime anew.
                self._require_there(pieces)
                self.root.copy(complete, self.key)
            finally:
                self.abandon()

    def _require_there(self, pieces: Sequence[StagedPiece]) -> None:
        """Raise FileNotFoundError where the folder of the attempt was taken away."""
        for piece in pieces:
            self.root.stat(f"{self._staging}/{piece.name}")

    def abandon(self) -> None:
        """Remove the folder of the attempt."""
        self.root.remove(self._staging)

    def _name_of(self, number: int, piece: StagedPiece) -> str:
        """A name that only this attempt uses, in the folder of the partition where there is one."""
        folder, slash, name = piece.name.rpartition("/")
        return f"{folder}{slash}{self.attempt.piece(number, _suffix(name))}"

    def _replaced(self, step: OutputStep) -> list[StorageKey]:
        """What the output takes the place of: everything, or what earlier attempts have added."""
        there = self._there()
        return [file.key for file in there] if step.mode == "overwrite" else self._superseded(there)

    def _there(self) -> list[StoredFile]:
        return [file for file in self.root.files(self.key) if file.name != MARKER]

    def _superseded(self, files: Iterable[StoredFile]) -> list[StorageKey]:
        """What earlier attempts at this output have copied."""
        earlier = ((file.key, attempt_of_piece(file.name)) for file in files)
        return [key for key, other in earlier if other is not None and self.attempt.supersedes(other)]

    def _others(self) -> Iterator[tuple[StorageKey, OutputAttempt]]:
        """The folders of other attempts beside the destination."""
        for name in self.root.folders(self._beside.rstrip("/")):
            other = attempt_of_folder(name, self._name)
            if other is not None and other != self.attempt:
                yield f"{self._beside}{name}", other

    def _take_away_others(self) -> None:
        """Remove the folders of earlier attempts and of runs that are over. Who has lost one can copy nothing."""
        for folder, other in self._others():
            is_over = other.run_id != self.attempt.run_id and not self.is_under_way(other.run_id)
            if is_over or self.attempt.supersedes(other):
                self.root.remove(folder)

    def _retreat(self, step: OutputStep, names: Sequence[str]) -> None:
        """Undo what was done by an attempt that was overtaken: remove its files, and put back the marker of the output
        that is there now, if it is there as a whole.

        While another is publishing there must be no marker, and whoever publishes has a folder. Files that are named
        after values stay: they are those of whoever has overtaken it.
        """
        for name in names:
            if attempt_of_piece(PurePosixPath(name).name) is not None:
                self.root.remove(f"{self.key}/{name}")
        self.root.remove(self._list)
        self.abandon()
        there, lists = self._there(), self._lists()
        if lists:
            newest_list = self._content(max(lists, key=lambda file: file.modified).key)
            names_there = {file.key.removeprefix(f"{self.key}/") for file in there}
            if listed_in(newest_list) <= names_there and not any(self._others()):
                self._put_back(newest_list)
            return
        newest = attempt_of_piece(max(there, key=lambda file: file.modified).name) if there else None
        whole = [file.name for file in there if newest is not None and attempt_of_piece(file.name) == newest]
        if newest is None or any(self._others()) or (step.mode == "overwrite" and len(whole) < len(there)):
            return
        self._put_back(listing(newest.run_id, newest.seq, whole))

    def _put_back(self, marker: bytes) -> None:
        with suppress(FileExistsError):
            self.root.write_new(f"{self.key}/{MARKER}", marker)


def _suffix(name: str) -> str:
    return "".join(PurePosixPath(name).suffixes[-2:])
