"""The ledger of an environment in a database: what happened, in one sealed chain.

Everything that changes a table that others rely on adds an entry in the same transaction: runs that begin, end and are
deleted, versions of datasets and projects, tokens, browser sessions, reads of rows. An entry holds the digest of the
row as it is from then on, so that rows that were edited, added or removed behind Clew's back are noticed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import OTHER_SEAL_KEY
from clew.diagnostics.codes.trace import FORGED_RECORD
from clew.events.chain import KeySource, SealKey, event_content
from clew.events.codec import canonical_json, iso
from clew.events.ledger import EntryKind, LedgerEntry, LedgerNote, problem_with, tables_of
from clew.store.database import Database, PlainSteps
from clew.store.ledger_chain import SealedRows, add_notes, digest_of, last_entry
from clew.store.owner import Owner
from clew.store.read_records import READ_ROWS
from clew.store.run_rows import EVENT_COLUMNS, raw_event
from clew.store.schema import (
    access_log,
    api_tokens,
    browser_sessions,
    captures,
    dataset_versions,
    ledger,
    project_versions,
    run_deletions,
    run_events,
    runs,
)
from clew.store.sealed_runs import REQUEST_FIELDS

_PAGE = 500


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table whose rows the ledger vouches for."""

    table: sa.Table
    sealed: SealedRows

    @classmethod
    def of(
        cls,
        table: sa.Table,
        *key: str,
        left_out: frozenset[str] = frozenset(),
        while_open: tuple[str, ...] = (),
    ) -> "SealedTable":
        """A table with the columns that name a row."""
        return cls(table, SealedRows(table.name, tuple(table.c.keys()), key, left_out, while_open))

    def rows(self, connection: sa.Connection, owner: Owner) -> Iterator[sa.RowMapping]:
        """The rows of an environment."""
        mine = [self.table.c.environment_id == owner.environment_id] if "environment_id" in self.table.c else []
        yield from connection.execute(sa.select(self.table).where(*mine)).mappings()


TOKENS = SealedTable.of(api_tokens, "token_id")
SESSIONS = SealedTable.of(browser_sessions, "session_digest")
DATASETS = SealedTable.of(dataset_versions, "dataset", "version")
PROJECTS = SealedTable.of(project_versions, "project", "version")
READS = SealedTable(access_log, READ_ROWS)
CAPTURES = SealedTable.of(
    captures,
    "capture_id",
    left_out=frozenset({"lease_owner", "lease_expires_at", "token", "due_at", "attempts", "reserved_bytes"}),
    while_open=("capture_id", "run_id", "slot", "kind", "request_id", "breakpoint", "seq", "request", "created_at"),
)
SEALED = {each.table.name: each for each in (TOKENS, SESSIONS, DATASETS, PROJECTS, READS, CAPTURES)}
RECORD_NAMES = {
    "api_tokens": "token",
    "browser_sessions": "browser session",
    "dataset_versions": "dataset version",
    "project_versions": "project version",
    "access_log": "record of the access log",
    "captures": "capture",
}
"""What people call a row of a table."""


def request_digest(row: sa.RowMapping) -> str:
    """The digest of what a run was asked for."""
    return digest_of({name: row[name] for name in REQUEST_FIELDS})


class Ledger:
    """Adds entries to the ledger of one environment. Without a key it does nothing."""

    def __init__(
        self,
        database: Database,
        owner: Owner,
        key: KeySource | None,
        known_key: Callable[[], SealKey | None] | None = None,
    ) -> None:
        """`known_key` gives the key to those who only read, or None where this machine does not have it."""
        self._database = database
        self._owner = owner
        self._key = key
        self._known_key = known_key or key
        self._is_wide = False
        """Whether the ledger is known to vouch for all tables that this version vouches for."""

    def add(self, connection: sa.Connection, *notes: LedgerNote) -> LedgerEntry | None:
        """Add entries in the transaction of what they are about. Gives the last one."""
        if self._key is None or not notes:
            return None
        key = self._key()
        return self._append(connection, key, self._last(connection, key), notes)

    def note(self, *notes: LedgerNote) -> LedgerEntry | None:
        """Add entries about something that is not in the database."""
        with self._database.write() as connection:
            return self.add(connection, *notes)

    def add_rows(
        self, connection: sa.Connection, kind: EntryKind, sealed: SealedTable, *where: sa.ColumnElement[bool]
    ) -> None:
        """Vouch for rows as they are now in a transaction."""
        if self._key is None:
            return
        mine = sealed.table.c.environment_id == self._owner.environment_id
        found = connection.execute(sa.select(sealed.table).where(mine, *where)).mappings().all()
        self.add(connection, *(sealed.sealed.note(kind, row) for row in found))

    @contextmanager
    def changing(
        self, connection: sa.Connection, kind: EntryKind, sealed: SealedTable, *where: sa.ColumnElement[bool]
    ) -> Iterator[None]:
        """Vouch for rows as they are at the end, if they were what the ledger vouches for at the beginning.

        Otherwise a change would make good what someone has edited before it. `where` names the rows by their keys.
        """
        before = self._rows(connection, sealed, *where) if self._key is not None else []
        forged = {sealed.sealed.key_of(row) for row in self._forged(connection, sealed, before)}
        yield
        if self._key is not None:
            after = self._rows(connection, sealed, *where)
            notes = [sealed.sealed.note(kind, row) for row in after if sealed.sealed.key_of(row) not in forged]
            self.add(connection, *notes)

    def remove_rows(
        self, connection: sa.Connection, kind: EntryKind, sealed: SealedTable, *where: sa.ColumnElement[bool]
    ) -> None:
        """Delete rows, and record that those that the ledger vouches for are meant to be gone."""
        if self._key is not None:
            found = self._rows(connection, sealed, *where)
            forged = {sealed.sealed.key_of(row) for row in self._forged(connection, sealed, found)}
            gone = [row for row in found if sealed.sealed.key_of(row) not in forged]
            self.add(connection, *(sealed.sealed.note(kind, row, is_gone=True) for row in gone))
        mine = sealed.table.c.environment_id == self._owner.environment_id
        connection.execute(sa.delete(sealed.table).where(mine, *where))

    def require_vouched(
        self, connection: sa.Connection, sealed: SealedTable, rows: Iterable[sa.RowMapping]
    ) -> Sequence[sa.RowMapping]:
        """The rows, for those who rely on them. UserError ForgedRecord if the ledger does not vouch for one."""
        found = list(rows)
        for row in self._forged(connection, sealed, found):
            name = " ".join(str(row[each]) for each in sealed.sealed.key)
            raise UserError(FORGED_RECORD.anywhere(kind=RECORD_NAMES[sealed.table.name], name=name))
        return found

    def vouches_for(self, connection: sa.Connection, sealed: SealedTable, *where: sa.ColumnElement[bool]) -> bool:
        """Whether rows are what the ledger vouches for."""
        return not any(self._forged(connection, sealed, self._rows(connection, sealed, *where)))

    def _rows(
        self, connection: sa.Connection, sealed: SealedTable, *where: sa.ColumnElement[bool]
    ) -> Sequence[sa.RowMapping]:
        mine = sealed.table.c.environment_id == self._owner.environment_id
        return connection.execute(sa.select(sealed.table).where(mine, *where)).mappings().all()

    def _forged(
        self, connection: sa.Connection, sealed: SealedTable, rows: Sequence[sa.RowMapping]
    ) -> Iterator[sa.RowMapping]:
        """Rows that are not what the ledger vouches for. Before it has begun with a table, it vouches for all of it."""
        if self._known_key is None or not rows:
            return
        mine = self._owner.rows_of(ledger)
        if connection.execute(sa.select(ledger.c.seq).where(mine).limit(1)).first() is None:
            return
        key, known = self._known_key(), dict[str, object]()
        subjects = sorted({sealed.sealed.subject_of(row) for row in rows})
        for start in range(0, len(subjects), _PAGE):
            about = ledger.c.subject_id.in_(subjects[start : start + _PAGE])
            known |= _vouched(connection, sealed, key, mine, about)
        for row in rows:
            if known.get(sealed.sealed.key_of(row)) == sealed.sealed.digest(row):
                continue
            # Rows of registries do not say of which tenant they are: it may be another one of the same environment.
            everyone = ledger.c.environment_id == self._owner.environment_id
            others = _vouched(connection, sealed, key, everyone, ledger.c.subject_id == sealed.sealed.subject_of(row))
            if sealed.sealed.key_of(row) not in others and sealed.table.name not in self._tables(connection, key):
                continue
            if others.get(sealed.sealed.key_of(row)) != sealed.sealed.digest(row):
                yield row

    def _tables(self, connection: sa.Connection, key: SealKey | None) -> frozenset[str]:
        """The tables that the ledger vouches for by now."""
        about = self._owner.rows_of(ledger), ledger.c.subject_id == self._owner.environment_id
        begun = sa.select(ledger).where(*about, ledger.c.kind == EntryKind.BEGUN.value).order_by(ledger.c.seq.desc())
        found = connection.execute(begun.limit(1)).mappings().first()
        entry = entry_of(found) if found is not None else None
        is_sealed = entry is not None and (key is None or problem_with(entry, key) is None)
        return tables_of(entry.content) if entry is not None and is_sealed else frozenset(SEALED)

    def _last(self, connection: sa.Connection, key: SealKey) -> LedgerEntry:
        """The last entry, while no other transaction can add one. The first transaction begins the ledger."""
        self._database.lock(connection, f"ledger:{self._owner.tenant_id}:{self._owner.environment_id}")
        last = last_entry(PlainSteps(connection, self._database), self._owner, key)
        return self._begun(connection, key) if last is None else self._widened(connection, key, last)

    def _widened(self, connection: sa.Connection, key: SealKey, last: LedgerEntry) -> LedgerEntry:
        """The last entry, once rows are adopted of tables that an earlier version did not vouch for."""
        if self._is_wide:
            return last
        missing = SEALED.keys() - self._tables(connection, key)
        self._is_wide = not missing  # and not yet where it becomes so: the transaction may be rolled back
        if not missing:
            return last
        notes = [self._beginning()]
        for sealed in (SEALED[name] for name in sorted(missing)):
            known = _vouched(connection, sealed, key, self._owner.rows_of(ledger))
            rows = [row for row in sealed.rows(connection, self._owner) if sealed.sealed.key_of(row) not in known]
            notes += [sealed.sealed.note(EntryKind.ADOPTED, row) for row in rows]
        return self._append(connection, key, last, notes)

    def _beginning(self) -> LedgerNote:
        return LedgerNote(EntryKind.BEGUN, self._owner.environment_id, {"tables": sorted(SEALED)})

    def _begun(self, connection: sa.Connection, key: SealKey) -> LedgerEntry:
        """The first entries: what the environment had before."""
        last = self._append(connection, key, None, [self._beginning()])
        notes = list[LedgerNote]()
        for sealed in SEALED.values():
            notes += [sealed.sealed.note(EntryKind.ADOPTED, row) for row in sealed.rows(connection, self._owner)]
        for run in connection.execute(sa.select(runs).where(self._owner.rows_of(runs))).mappings().all():
            content = {
                "request": request_digest(run),
                "last_seq": run["last_seq"],
                "events": _events_digest(connection, run["run_id"], run["last_seq"]),
            }
            notes.append(LedgerNote(EntryKind.RUN_ADOPTED, run["run_id"], content))
        for start in range(0, len(notes), _PAGE):
            last = self._append(connection, key, last, notes[start : start + _PAGE])
        return last

    def _append(
        self, connection: sa.Connection, key: SealKey, last: LedgerEntry | None, notes: Sequence[LedgerNote]
    ) -> LedgerEntry:
        return add_notes(PlainSteps(connection, self._database), self._owner, key, last, notes)


class SqlLedgerReader:
    """Reads the ledger of one environment, and the tables that it vouches for."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._owner = owner

    def entries(self, *, subject_id: str | None = None) -> Iterator[LedgerEntry]:
        """Entries in order, page by page; only those about something where it is given."""
        after = 0
        about = [] if subject_id is None else [ledger.c.subject_id == subject_id]
        while True:
            statement = (
                sa.select(ledger)
                .where(self._owner.rows_of(ledger), ledger.c.seq > after, *about)
                .order_by(ledger.c.seq)
                .limit(_PAGE)
            )
            with self._database.read() as connection:
                page = [entry_of(row) for row in connection.execute(statement).mappings()]
            if not page:
                return
            yield from page
            after = page[-1].seq

    def last(self, kind: EntryKind | None = None, subject_id: str | None = None) -> LedgerEntry | None:
        """The last entry, of a kind and about something where these are given; None if there is none."""
        named = [] if kind is None else [ledger.c.kind == kind.value]
        named += [] if subject_id is None else [ledger.c.subject_id == subject_id]
        mine = self._owner.rows_of(ledger)
        statement = sa.select(ledger).where(mine, *named).order_by(ledger.c.seq.desc()).limit(1)
        with self._database.read() as connection:
            row = connection.execute(statement).mappings().one_or_none()
        return entry_of(row) if row is not None else None

    def row_digests(self, table: str) -> dict[str, str]:
        """The digest of every row of a table that the ledger vouches for, by name."""
        each = SEALED[table]
        with self._database.read() as connection:
            return {each.sealed.key_of(row): each.sealed.digest(row) for row in each.rows(connection, self._owner)}

    def dataset_names(self) -> Sequence[str]:
        """The datasets that have versions, whatever their rows say."""
        mine = dataset_versions.c.environment_id == self._owner.environment_id
        names = sa.select(dataset_versions.c.dataset).where(mine).distinct().order_by(dataset_versions.c.dataset)
        with self._database.read() as connection:
            return connection.scalars(names).all()

    def request_digest(self, run_id: str) -> str | None:
        """The digest of what a run was asked for."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).mappings().one_or_none()
        return request_digest(row) if row is not None else None

    def adopted_digest(self, run_id: str, last_seq: int) -> str:
        """The digest of the first events of a run."""
        with self._database.read() as connection:
            return _events_digest(connection, run_id, last_seq)

    def deleted_runs(self) -> dict[str, dict[str, object]]:
        """The runs that were deleted: the number of their last event, by whom, why and when, as entries name these."""
        with self._database.read() as connection:
            return {
                row.run_id: {
                    "last_seq": row.last_seq,
                    "by": row.deleted_by,
                    "reason": row.reason,
                    "at": iso(row.deleted_at),
                }
                for row in connection.execute(sa.select(run_deletions))
            }


def _vouched(
    connection: sa.Connection, sealed: SealedTable, key: SealKey | None, *where: sa.ColumnElement[bool]
) -> dict[str, object]:
    """The digests of rows of a table that entries vouch for, by the names of the rows.

    UserError OtherSealKey where another key than this one has sealed them; without a key, seals are not looked at.
    """
    found = dict[str, object]()
    for row in connection.execute(sa.select(ledger).where(*where).order_by(ledger.c.seq)).mappings():
        entry = entry_of(row)
        if entry.content.get("table") == sealed.table.name:
            if key is not None and entry.key_id != key.id:
                raise UserError(OTHER_SEAL_KEY.anywhere(environment=entry.environment_id))
            is_sealed = key is None or problem_with(entry, key) is None
            found[str(entry.content.get("key"))] = entry.content.get("digest") if is_sealed else None
    return found


def _events_digest(connection: sa.Connection, run_id: str, last_seq: int) -> str:
    """One digest of the first events of a run."""
    digest = hashlib.sha256()
    statement = (
        sa.select(*EVENT_COLUMNS)
        .where(run_events.c.run_id == run_id, run_events.c.run_seq <= last_seq)
        .order_by(run_events.c.run_seq)
    )
    for row in connection.execute(statement):
        digest.update(canonical_json(event_content(raw_event(row))).encode() + b"\n")
    return digest.hexdigest()


def entry_of(row: sa.RowMapping) -> LedgerEntry:
    """An entry as it is stored."""
    return LedgerEntry(**{name: row[name] for name in ledger.c.keys()})  # noqa: SIM118 - columns, not their names
