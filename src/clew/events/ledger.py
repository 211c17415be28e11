"""Entries of the ledger: what happened in an environment, each sealed together with the one before it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from clew.deferred import dataclass
from clew.events.chain import SealKey
from clew.events.codec import canonical_json, encode
from clew.events.envelope import RawEvent

FIRST = "0" * 64
"""Stands for the hash before the first entry."""


_TABLES_AT_FIRST = ("api_tokens", "browser_sessions", "dataset_versions", "project_versions", "access_log")
"""What the ledger vouched for before its first entry said so."""


class EntryKind(StrEnum):
    """What an entry records."""

    BEGUN = "ledger.begun"
    """With the tables that it vouches for. Once more where a later version of Clew vouches for more of them."""
    ADOPTED = "row.adopted"
    """A row from before the ledger."""
    RUN_ADOPTED = "run.adopted"
    """A run from before the ledger, with the digest of its events so far."""
    RUN_CREATED = "run.created"
    RUN_SIGNALLED = "run.signalled"
    """Someone has asked a run to do something: approvals, cancellations and the others, also refused ones."""
    RUN_ENDED = "run.ended"
    """May follow itself: a run that failed can be continued."""
    RUN_DELETED = "run.deleted"
    DATASET_REGISTERED = "dataset.registered"
    DATASET_FORGOTTEN = "dataset.forgotten"
    PROJECT_ACTIVATED = "project.activated"
    PROJECT_DEACTIVATED = "project.deactivated"
    TOKEN_ADDED = "token.added"  # noqa: S105 - not a password
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - not a password
    SESSION_STARTED = "session.started"
    SESSION_ENDED = "session.ended"
    ROWS_READ = "rows.read"
    EVIDENCE_MADE = "evidence.made"
    """A signed pack about a run was made."""
    REMOVED = "removed"
    """Garbage collection, or someone who asked for it, deleted files."""
    CAPTURE_ADDED = "capture.added"
    CAPTURE_ENDED = "capture.ended"
    """Also when it expired afterwards, or was queued again."""
    CAPTURE_DELETED = "capture.deleted"
    VERIFIED = "verified"
    """A run, or the whole environment, was verified."""


HEADS = frozenset({EntryKind.RUN_SIGNALLED, EntryKind.RUN_ENDED})
"""Entries that say which event of a run was its last one then."""


def tables_of(content: Mapping[str, object]) -> frozenset[str]:
    """The tables that a ledger vouches for, by the content of the last entry with which it has begun."""
    tables = content.get("tables", _TABLES_AT_FIRST)
    return frozenset(map(str, tables)) if isinstance(tables, list | tuple) else frozenset()


@dataclass(frozen=True, slots=True)
class LedgerNote:
    """What is to be recorded."""

    kind: EntryKind
    subject_id: str
    """The run, dataset, project, token, or whatever else it is about."""
    content: Mapping[str, object]


class LedgerWriter(Protocol):
    """Records what is not in the database."""

    def note(self, *notes: LedgerNote) -> object:
        """Add entries."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """An entry as it is stored."""

    tenant_id: str
    environment_id: str
    seq: int
    kind: str
    subject_id: str
    content: Mapping[str, object]
    recorded_at: datetime
    key_id: str
    previous_hash: str
    hash: str = ""

    def sealed(self, own_hash: str) -> "LedgerEntry":
        """The same entry with its hash."""
        return replace(self, hash=own_hash)


def entry_hash(entry: LedgerEntry, key: SealKey) -> str:
    """The hash of an entry as a link after the previous one."""
    content = {name: value for name, value in encode(entry).items() if name != "hash"}
    return key.seal(canonical_json(content))


def problem_with(entry: LedgerEntry, key: SealKey) -> str | None:
    """What is wrong with an entry by itself."""
    if entry.key_id != key.id:
        return "it was sealed with another key"
    return None if entry_hash(entry, key) == entry.hash else "it was changed"


def head_problem(entry: LedgerEntry, events: Iterable[RawEvent]) -> str | None:
    """Whether a history does not have the event that was its last one when an entry was made."""
    said = entry.content
    found = next((event for event in events if event.run_seq == said["last_seq"]), None)
    if found is not None and found.hash == said["last_hash"]:
        return None
    occasion = "with which it ended" if entry.kind == EntryKind.RUN_ENDED else "by which it was told something"
    return f"event {said['last_seq']}, {occasion}, is not the one that was there"


def chain_problems(entries: Iterable[LedgerEntry], key: SealKey) -> tuple[list[str], list[LedgerEntry]]:
    """What is wrong with a whole ledger, and its entries."""
    problems, kept, previous, expected = list[str](), list[LedgerEntry](), FIRST, 1
    for entry in entries:
        if entry.seq != expected:
            problems.append(f"entries {expected} to {entry.seq - 1} are missing")
        elif entry.previous_hash != previous:
            problems.append(f"entry {entry.seq}: the entry before it is not the one that was there")
        found = problem_with(entry, key)
        if found is not None:
            problems.append(f"entry {entry.seq}: {found}")
        previous, expected = entry.hash, entry.seq + 1
        kept.append(entry)
    return problems, kept
