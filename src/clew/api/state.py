"""The open state store of an environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

from clew.auth.access_log import AccessLog
from clew.auth.tokens import BrowserSessionStore, TokenStore
from clew.captures.queue import CaptureStore
from clew.runs.environment import PRIVATE_FOLDER, RunEnvironment
from clew.runs.registry import DatasetRegistry, ProjectRegistry
from clew.runs.seal_keys import seal_key
from clew.runs.secrets import SecretsResolver, redacted_logs
from clew.runs.stores import RunStores
from clew.runs.submission import RunQueue
from clew.storage.private_folders import make_private
from clew.store.access import SqlAccessLog, SqlBrowserSessions, SqlTokens
from clew.store.captures import SqlCaptureStore
from clew.store.ledger import Ledger, SqlLedgerReader
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.owner import Owner
from clew.store.registry import SqlDatasetRegistry, SqlProjectRegistry
from clew.store.state_store import StoreOptions, open_database, run_stores
from clew.store.tracelink import trace_link_stores
from clew.tracelink.stores import TraceLinkStores


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the state store of an environment keeps."""

    stores: RunStores
    datasets: DatasetRegistry
    projects: ProjectRegistry
    captures: CaptureStore
    secrets: SecretsResolver
    tokens: TokenStore
    browser_sessions: BrowserSessionStore
    access_log: AccessLog
    tracelink: TraceLinkStores
    ledger: SqlLedgerReader
    ledger_writer: Ledger


def queue_of(state: State, environment: RunEnvironment) -> RunQueue:
    """The queue for run requests of an environment."""
    return RunQueue(state.stores.intake, lambda _environment: environment.queue_policy())


@contextmanager
def open_state(environment: RunEnvironment) -> Iterator[State]:
    """Open the state store, upgrade its schema if necessary, and close it at the end.

    While it is open, Clew's logs do not show the secrets that were resolved for it.
    """
    if environment.has_private_folder:
        make_private(environment.root / PRIVATE_FOLDER)
    secrets = environment.secrets()
    options = StoreOptions(
        owner=Owner(tenant_id=environment.settings.tenant, environment_id=environment.name),
        buses=tuple(bus.id for bus in environment.settings.bus),
        key=cache(partial(seal_key, environment)),
    )
    with redacted_logs(secrets.redactor):
        database = open_database(environment.store_url(secrets), options)
        try:
            migrate(database, MIGRATIONS)
            ledger = Ledger(database, options.owner, options.key)
            yield State(
                stores=run_stores(database, options),
                datasets=SqlDatasetRegistry(database, environment.name, ledger),
                projects=SqlProjectRegistry(database, environment.name, ledger),
                captures=SqlCaptureStore(database, environment.name, ledger),
                secrets=secrets,
                tokens=SqlTokens(database, environment.name, ledger),
                browser_sessions=SqlBrowserSessions(database, environment.name, ledger),
                access_log=SqlAccessLog(database, environment.name, ledger),
                tracelink=trace_link_stores(database),
                ledger=SqlLedgerReader(database, options.owner),
                ledger_writer=ledger,
            )
        finally:
            database.close()
