"""All stores of an environment on one database that is open for writing."""

from functools import cache, partial

from clew.auth.access_log import AccessLog
from clew.auth.tokens import BrowserSessionStore, TokenStore
from clew.captures.queue import CaptureStore
from clew.deferred import dataclass
from clew.runs.environment import RunEnvironment
from clew.runs.registry import DatasetRegistry, ProjectRegistry
from clew.runs.seal_keys import known_seal_key, seal_key
from clew.runs.secrets import SecretsResolver
from clew.runs.stores import RunStores
from clew.store.access import SqlAccessLog, SqlBrowserSessions, SqlTokens
from clew.store.captures import SqlCaptureStore
from clew.store.database import Database
from clew.store.ledger import Ledger, SqlLedgerReader
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.owner import Owner
from clew.store.registry import SqlDatasetRegistry, SqlProjectRegistry
from clew.store.state_store import StoreOptions, open_database, run_stores
from clew.store.tracelink import trace_link_stores
from clew.tracelink.stores import TraceLinkStores


@dataclass(frozen=True, slots=True)
class OpenedStores:
    """Everything that the state store of an environment keeps."""

    database: Database
    runs: RunStores
    datasets: DatasetRegistry
    projects: ProjectRegistry
    captures: CaptureStore
    tokens: TokenStore
    browser_sessions: BrowserSessionStore
    access_log: AccessLog
    tracelink: TraceLinkStores
    ledger: SqlLedgerReader
    ledger_writer: Ledger


def open_stores(environment: RunEnvironment, secrets: SecretsResolver) -> OpenedStores:
    """Open the database, and create or upgrade its schema if necessary."""
    options = StoreOptions(
        owner=Owner.of(environment),
        buses=tuple(bus.id for bus in environment.settings.bus),
        key=cache(partial(seal_key, environment)),
    )
    database = open_database(environment.store_url(secrets), options)
    try:
        migrate(database, MIGRATIONS)
    except BaseException:
        database.close()
        raise
    ledger = Ledger(database, options.owner, options.key, partial(known_seal_key, environment))
    return OpenedStores(
        database=database,
        runs=run_stores(database, options),
        datasets=SqlDatasetRegistry(database, environment.name, ledger),
        projects=SqlProjectRegistry(database, environment.name, ledger),
        captures=SqlCaptureStore(database, environment.name, ledger),
        tokens=SqlTokens(database, environment.name, ledger),
        browser_sessions=SqlBrowserSessions(database, environment.name, ledger),
        access_log=SqlAccessLog(database, environment.name, ledger),
        tracelink=trace_link_stores(database),
        ledger=SqlLedgerReader(database, options.owner),
        ledger_writer=ledger,
    )
