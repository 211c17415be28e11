"""The end of the ledger of an environment: reading its last entry, sealing and adding the next ones, in plain SQL."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import OTHER_SEAL_KEY
from clew.events.chain import SealKey
from clew.events.codec import canonical_json, encode
from clew.events.ledger import FIRST, EntryKind, LedgerEntry, LedgerNote, entry_hash
from clew.store.owner import Owner
from clew.store.plain_sql import PlainTransaction, insert_into
from clew.store.reading import SqlRow, document, moment

ENTRY_FIELDS = (
    *("tenant_id", "environment_id", "seq", "kind", "subject_id", "content", "recorded_at", "key_id"),
    *("previous_hash", "hash"),
)
"""The columns of an entry, which have the names of the fields of `LedgerEntry`."""

_LAST = (
    f"SELECT {', '.join(ENTRY_FIELDS)} FROM ledger"  # noqa: S608 - our own names
    " WHERE tenant_id = :tenant AND environment_id = :environment ORDER BY seq DESC LIMIT 1"
)
_INSERT = insert_into("ledger", ENTRY_FIELDS)


def last_entry(transaction: PlainTransaction, owner: Owner, key: SealKey) -> LedgerEntry | None:
    """The last entry; None where the ledger has not begun. UserError OtherSealKey where another key sealed it."""
    found = transaction.rows(_LAST, {"tenant": owner.tenant_id, "environment": owner.environment_id})
    if not found:
        return None
    if found[0]["key_id"] != key.id:
        raise UserError(OTHER_SEAL_KEY.anywhere(environment=owner.environment_id))
    row = {name: found[0][name] for name in ENTRY_FIELDS}
    return LedgerEntry(**row | {"content": document(row["content"]), "recorded_at": moment(row["recorded_at"])})


def add_notes(
    transaction: PlainTransaction, owner: Owner, key: SealKey, last: LedgerEntry | None, notes: Sequence[LedgerNote]
) -> LedgerEntry:
    """Seal notes behind the last entry, and store them. The transaction must be the only one that adds entries."""
    now = transaction.now()
    added = list[LedgerEntry]()
    for note in notes:
        entry = LedgerEntry(
            tenant_id=owner.tenant_id,
            environment_id=owner.environment_id,
            seq=last.seq + 1 if last is not None else 1,
            kind=note.kind.value,
            subject_id=note.subject_id,
            content=note.content,
            recorded_at=now,
            key_id=key.id,
            previous_hash=last.hash if last is not None else FIRST,
        )
        last = entry.sealed(entry_hash(entry, key))
        added.append(last)
    assert last is not None  # noqa: S101 - there is at least one note
    transaction.run(_INSERT, [_stored(entry, transaction) for entry in added])
    return last


def _stored(entry: LedgerEntry, transaction: PlainTransaction) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(entry, name) for name in ENTRY_FIELDS}
    return values | {
        "content": canonical_json(entry.content),
        "recorded_at": transaction.stored_moment(entry.recorded_at),
    }


@dataclass(frozen=True, slots=True)
class SealedRows:
    """Rows of a table that the ledger vouches for."""

    name: str
    columns: tuple[str, ...]
    """All columns of the table."""
    key: tuple[str, ...]
    """The columns that name a row, below the environment."""
    left_out: frozenset[str] = frozenset()
    while_open: tuple[str, ...] = ()
    """The columns that count until a row is completed, where others change while it is being worked on."""

    def key_of(self, row: SqlRow) -> str:
        """The name of a row in entries."""
        return canonical_json([encode(row[name]) for name in self.key])

    def subject_of(self, row: SqlRow) -> str:
        """What entries about a row are about."""
        return str(row[self.key[0]])[:255]

    def digest(self, row: SqlRow) -> str:
        """The digest of a row, with moments and documents as values."""
        if self.while_open and row["completed_at"] is None:
            return digest_of({name: row[name] for name in self.while_open})
        return digest_of({name: row[name] for name in self.columns if name not in self.left_out})

    def note(self, kind: EntryKind, row: SqlRow, *, is_gone: bool = False) -> LedgerNote:
        """What the ledger says about a row from now on."""
        content = {"table": self.name, "key": self.key_of(row), "digest": None if is_gone else self.digest(row)}
        return LedgerNote(kind, self.subject_of(row), content)


def digest_of(row: Mapping[str, Any]) -> str:
    """The digest of values by name."""
    return hashlib.sha256(canonical_json(encode(dict(row))).encode()).hexdigest()
