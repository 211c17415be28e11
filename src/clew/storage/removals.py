"""Deletions: the protocol of items that expire, and the record of what was deleted, by whom and why.

The record is lines of JSON below the storage root, which are only ever appended.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from clew.deferred import dataclass
from clew.events.ledger import EntryKind, LedgerNote, LedgerWriter
from clew.storage.layout import REMOVALS
from clew.storage.root import StorageRoot

RUN, DATASET_VERSION, LEFTOVER = "run", "dataset-version", "leftover"
"""Kinds of things that garbage collection knows by itself."""

GRACE = timedelta(hours=1)
"""Recent files are left alone: a worker that seems dead may still be writing."""


@dataclass(frozen=True, slots=True)
class Removable:
    """An item that is no longer needed."""

    kind: str
    """run, dataset-version, leftover, or what a collectable calls its things."""
    name: str
    reason: str
    size: int
    """Bytes that its removal frees."""

    def to_json(self) -> dict[str, object]:
        """The form of `gc --json`."""
        return {"kind": self.kind, "name": self.name, "reason": self.reason, "bytes": self.size}


class Collectable(Protocol):
    """A kind of thing beside runs that gets old, such as captures. It says what may be deleted, and deletes it."""

    @property
    def kind(self) -> str:
        """What its things are called; `run`, `dataset-version` and `leftover` are taken."""
        ...

    def expired(self, now: datetime, without_runs: Collection[str]) -> Sequence[Removable]:
        """What may be deleted once these runs are deleted too."""
        ...

    def remove(self, thing: Removable) -> None:
        """Delete one of them. Doing it again changes nothing."""
        ...


@dataclass(frozen=True, slots=True)
class RemovalRecord:
    """A thing that was removed."""

    at: datetime
    by: str
    environment: str
    thing: Removable

    def to_json(self) -> dict[str, object]:
        """The form of `gc --history --json`, and of the lines."""
        return {"at": self.at.isoformat(), "by": self.by, "environment": self.environment, **self.thing.to_json()}


@dataclass(frozen=True, slots=True)
class Journal:
    """The record of removals below a storage root. It also tells which runs were there and are gone."""

    root: StorageRoot
    ledger: LedgerWriter | None = None
    """Vouches for the lines; None for those who only read."""

    def add(self, record: RemovalRecord) -> None:
        """Write a line, and return when it is on disk. The ledger knows of it first."""
        if self.ledger is not None:
            self.ledger.note(LedgerNote(EntryKind.REMOVED, record.thing.name[:255], record.to_json()))
        self.root.add_line(REMOVALS, json.dumps(record.to_json(), ensure_ascii=False))

    def records(self, environment: str) -> list[RemovalRecord]:
        """What was removed in an environment, newest first."""
        return [record for record in self._read() if record.environment == environment][::-1]

    def removed_runs(self) -> frozenset[str]:
        """The runs that are gone, of every environment that shares the storage root."""
        return frozenset(record.thing.name for record in self._read() if record.thing.kind == RUN)

    def _read(self) -> Iterator[RemovalRecord]:
        """All lines that are whole: the last one may have been cut short when a machine died."""
        for line in self.root.lines(REMOVALS):
            try:
                data = json.loads(line)
                thing = Removable(data["kind"], data["name"], data["reason"], int(data["bytes"]))
                yield RemovalRecord(datetime.fromisoformat(data["at"]), data["by"], data["environment"], thing)
            except (ValueError, KeyError, TypeError):
                continue
