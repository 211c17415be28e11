"""TraceLink in a database: node ids, blocks, frames, links, windows, artifacts, and the questions about them."""

from collections.abc import Iterator
from contextlib import contextmanager

from clew.store.database import Database
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.state_store import StoreOptions, open_database
from clew.store.tracelink.inserts import SqlBlockRegister, SqlTraceWriter
from clew.store.tracelink.node_leases import SqlNodeLeases
from clew.store.tracelink.queries import SqlLineageReader
from clew.store.tracelink.upkeep import SqlTracePruner, SqlWindowExpander
from clew.tracelink.node_leases import NodeLeasePolicy
from clew.tracelink.stores import TraceLinkStores

__all__ = ["open_trace_link_stores", "trace_link_stores"]


def trace_link_stores(database: Database, policy: NodeLeasePolicy | None = None) -> TraceLinkStores:
    """What a deployment stores for tracing, in a database whose schema is up to date."""
    policy = policy or NodeLeasePolicy()
    return TraceLinkStores(
        node_leases=SqlNodeLeases(database, policy),
        lease_policy=policy,
        blocks=SqlBlockRegister(database),
        writer=SqlTraceWriter(database),
        reader=SqlLineageReader(database),
        expander=SqlWindowExpander(database),
        pruner=SqlTracePruner(database),
    )


@contextmanager
def open_trace_link_stores(
    url: str, options: StoreOptions | None = None, policy: NodeLeasePolicy | None = None
) -> Iterator[TraceLinkStores]:
    """Open the state store at an address for tracing alone, and close it at the end."""
    database = open_database(url, options or StoreOptions())
    try:
        migrate(database, MIGRATIONS)
        yield trace_link_stores(database, policy)
    finally:
        database.close()
