"""Trace ids that a process mints under a leased node id.

For the rows of runs that it drives, or for what it traces outside runs.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from clew.api.opened_environment import EnvironmentAccess
from clew.deferred import dataclass
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.tracelink import NODE_ID_TAKEN, NODE_LEASE_LOST
from clew.tracelink import ConfiguredNode, LeasedTraceIds, PublishedBlock, TraceIdBlock, TraceWriter
from clew.tracelink.stores import TraceLinkStores

_log = logging.getLogger(__name__)


class ProcessTraceIds:
    """Leases a node id when the first ids are needed, renews the lease, and releases it at the end.

    Uses the configured node id, or any free one if none is configured. A configured id is leased too, so that a second
    process with the same configuration is refused instead of minting the same ids. It does not fall back to another id
    then, because the other ids may be assigned to programs that the store does not know.

    A process keeps its node id while it lives. If the store is busy or away, rows are untraced until it is back; if the
    lease has expired meanwhile, the same node id is leased again. Only if another process was given the id, or somebody
    revoked it, does it lease another one.

    Nothing here makes a run fail: without ids, its rows are untraced, and the log says so.
    """

    def __init__(self, stores: TraceLinkStores, *, node_id: int | None = None) -> None:
        self._stores = stores
        self._node = None if node_id is None else ConfiguredNode(node_id)
        self._lock = threading.Lock()
        self._minting: LeasedTraceIds | None = None

    def reserve(self, count: int) -> TraceIdBlock | None:
        """Reserve `count` unique ids; None if that is not possible."""
        with self._lock:
            try:
                return self._reserved(count)
            except ClewError as error:
                _log.warning("%d rows have no trace ids: %s", count, error)
                return None

    def _reserved(self, count: int) -> TraceIdBlock:
        if self._minting is None:
            self._minting = self._leased(self._node)
        try:
            return self._minting.reserve_block(count)
        except ClewError as error:
            if error.code != NODE_LEASE_LOST.name:
                raise
            _log.warning("leasing a node id again: %s", error)
        self._minting = self._leased_again(self._minting.node_id)
        return self._minting.reserve_block(count)

    def _leased_again(self, held: int) -> LeasedTraceIds:
        try:
            return self._leased(self._node or held)
        except UserError as error:
            if error.code != NODE_ID_TAKEN.name or self._node is not None:
                raise
            return self._leased(None)

    def _leased(self, node_id: int | ConfiguredNode | None) -> LeasedTraceIds:
        return LeasedTraceIds(self._stores.node_leases, policy=self._stores.lease_policy, node_id=node_id)

    def publish(self, blocks: Sequence[PublishedBlock]) -> None:
        """Record which rows have which ids."""
        try:
            for block in blocks:
                self._stores.blocks.record(block)
        except ClewError as error:
            _log.warning("rows of run %s cannot be found by their trace ids: %s", blocks[0].run_id, error)

    def run(self, done: threading.Event) -> None:
        """Keep the node id until `done` is set, then release it. Run this in a separate thread."""
        while not done.wait(self._stores.lease_policy.keepalive_every_ms / 1000):
            with self._lock, suppress(ClewError):
                if self._minting is not None:
                    self._minting.keepalive()
        with self._lock, suppress(ClewError):
            if self._minting is not None:
                self._minting.close()
                self._minting = None


@dataclass(frozen=True, slots=True)
class Tracing:
    """What a traced stage needs from a deployment."""

    ids: LeasedTraceIds
    """Mints trace ids; pass it to a `TracedStream`."""
    writer: TraceWriter
    """Accepts batches of windows and artifacts."""


@contextmanager
def open_tracing(access: EnvironmentAccess, *, node_id: int | None = None) -> Iterator[Tracing]:
    """Lease a node id (a given one or any), keep it while the caller works, and release it."""
    with access.opened() as at:
        stores = at.state.tracelink
        with LeasedTraceIds(stores.node_leases, policy=stores.lease_policy, node_id=node_id) as ids:
            done = threading.Event()
            keeper = threading.Thread(
                target=_keep, args=(ids, stores.lease_policy.keepalive_every_ms / 1000, done), daemon=True
            )
            keeper.start()
            try:
                yield Tracing(ids, stores.writer)
            finally:
                done.set()
                keeper.join()


def _keep(ids: LeasedTraceIds, every_s: float, done: threading.Event) -> None:
    """Keep the lease alive. The next keepalive makes up for a failed one; if all fail, minting stops by itself."""
    while not done.wait(every_s):
        with suppress(ClewError):
            ids.keepalive()
