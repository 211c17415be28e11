"""Opens a state store by its address."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import STORE_UNREADABLE
from clew.events.chain import KeySource
from clew.runs.clock import Clock, utc_now
from clew.runs.stores import RunStores
from clew.store.appending import AppendOptions
from clew.store.catalog import SqlActivity, SqlRunCatalog, SqlRunIntake
from clew.store.database import Database, Transactions
from clew.store.events import SqlEventReader, SqlEventWriter, SqlSnapshots
from clew.store.leases import SqlAttempts, SqlLeases
from clew.store.ledger import Ledger
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.outbox import SqlOutbox
from clew.store.owner import Owner
from clew.store.postgresql import PostgresqlTransactions
from clew.store.schema import Moment
from clew.store.sqlite import SqliteTransactions


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How to open a state store."""

    owner: Owner = field(default_factory=Owner)
    """The environment that the store is opened for. Its outbox holds the events of this environment only."""
    buses: tuple[str, ...] = ()
    """Ids of the event buses that every event goes to. An event that was stored before a bus was named does not."""
    key: KeySource | None = None
    """Seals events and the ledger, so that tampering shows; None only where nothing depends on it."""
    max_event_bytes: int = 256_000
    busy_timeout_s: float = 3.0
    """How long one statement waits for others."""
    clock: Clock | None = None
    """Instead of the database server's clock, or this machine's where there is no server."""


@contextmanager
def open_run_stores(url: str, options: StoreOptions | None = None) -> Iterator[RunStores]:
    """Open a state store, upgrading its schema if it is older, and close it at the end.

    `url` is `sqlite:///PATH` or `postgresql://...`.
    """
    options = options or StoreOptions()
    database = open_database(url, options)
    try:
        migrate(database, MIGRATIONS)
        yield run_stores(database, options)
    finally:
        database.close()


def open_database(url: str, options: StoreOptions) -> Database:
    """The database at an address, with the schema it has."""
    transactions, now = _transactions(url, options)
    return Database(transactions, now=options.clock or now)


def run_stores(database: Database, options: StoreOptions) -> RunStores:
    """All stores on one database."""
    appending = AppendOptions(
        adapter_version=f"clew-{version('clew')}",
        owner=options.owner,
        buses=options.buses,
        key=options.key,
        max_event_bytes=options.max_event_bytes,
    )
    ledger = Ledger(database, options.owner, options.key)
    return RunStores(
        reader=SqlEventReader(database),
        writer=SqlEventWriter(database, appending, ledger),
        catalog=SqlRunCatalog(database, options.owner),
        intake=SqlRunIntake(database, appending, ledger),
        leases=SqlLeases(database, options.owner),
        snapshots=SqlSnapshots(database, options.owner),
        attempts=SqlAttempts(database),
        outbox=SqlOutbox(database, options.owner),
        activity=SqlActivity(database),
    )


def _transactions(url: str, options: StoreOptions) -> tuple[Transactions, sa.ColumnElement[object] | Clock]:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        reason = "it is not an address of a database"
        raise UserError(STORE_UNREADABLE.anywhere(place=_without_password(url), reason=reason)) from error
    match parsed.get_backend_name():
        case "sqlite" if parsed.database:
            path = Path(parsed.database)
            return SqliteTransactions(path, busy_timeout_s=options.busy_timeout_s), utc_now
        case "postgresql":
            server = PostgresqlTransactions(parsed, busy_timeout_s=options.busy_timeout_s)
            return server, sa.func.clock_timestamp(type_=Moment)
        case other:
            reason = f'"{other}" cannot hold a state store'
            raise UserError(STORE_UNREADABLE.anywhere(place=_without_password(url), reason=reason))


def _without_password(url: str) -> str:
    """An address that is safe to show: nothing before its host, which might be a password."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
