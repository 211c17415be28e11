"""Records of who has read what, added in plain SQL and vouched for by the ledger in the same transaction."""

from collections.abc import Sequence

from clew.auth.access_log import AccessRecord
from clew.events.ledger import EntryKind, LedgerNote
from clew.store.ledger_chain import SealedRows
from clew.store.plain_sql import PlainTransaction, insert_into
from clew.store.reading import SqlRow, moment

_GIVEN = ("environment_id", "tenant_id", "actor", "role", "token_id", "subject", "subject_id", "detail", "read_at")
READ_FIELDS = ("entry_id", *_GIVEN)
"""The columns of a record."""

READ_ROWS = SealedRows("access_log", READ_FIELDS, ("entry_id",))
_INSERT = insert_into("access_log", _GIVEN)
_LAST = "SELECT COALESCE(MAX(entry_id), 0) AS last FROM access_log"
_ADDED = (
    f"SELECT {', '.join(READ_FIELDS)} FROM access_log"  # noqa: S608 - our own names
    " WHERE environment_id = :environment AND entry_id > :before"
)


def add_reads(
    transaction: PlainTransaction, environment_id: str, records: Sequence[AccessRecord]
) -> Sequence[LedgerNote]:
    """Add records. Returns what the ledger has to say about them."""
    [last] = transaction.rows(_LAST, {})
    transaction.run(_INSERT, [_stored(transaction, environment_id, record) for record in records])
    added = transaction.rows(_ADDED, {"environment": environment_id, "before": last["last"]})
    return [READ_ROWS.note(EntryKind.ROWS_READ, _values(row)) for row in added]


def _values(row: SqlRow) -> dict[str, object]:
    return {name: row[name] for name in READ_FIELDS} | {"read_at": moment(row["read_at"])}


def _stored(transaction: PlainTransaction, environment_id: str, record: AccessRecord) -> dict[str, object]:
    return {
        "environment_id": environment_id,
        "tenant_id": record.tenant_id,
        "actor": record.actor,
        "role": record.role,
        "token_id": record.token_id,
        "subject": record.subject.value,
        "subject_id": record.subject_id,
        "detail": record.detail,
        "read_at": transaction.stored_moment(record.read_at),
    }
