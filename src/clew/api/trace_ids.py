"""Trace ids that a process mints under a node id, which it holds for as long as it needs it.

For the rows of the runs that it drives; or for what it traces by itself, outside of runs.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from clew.api.opened_environment import EnvironmentAccess
from clew.diagnostics import ClewError
from clew.tracelink import ConfiguredNode, LeasedTraceIds, PublishedBlock, TraceIdBlock, TraceWriter
from clew.tracelink.stores import TraceLinkStores

_log = logging.getLogger(__name__)


class ProcessTraceIds:
    """Takes a node id when the first ids are needed, keeps it alive, and gives it back at the end.

    The node id is the configured one, or any that is free where none is. A configured one is held like any other, so
    that a second process with the same configuration is refused instead of minting the same ids. It takes no other one
    then: who configures node ids may have given the others to programs that the store knows nothing of.

    Nothing here fails a run: without ids its rows are untraced, and the log says so.
    """

    def __init__(self, stores: TraceLinkStores, *, node_id: int | None = None) -> None:
        self._stores = stores
        self._node = None if node_id is None else ConfiguredNode(node_id)
        self._lock = threading.Lock()
        self._minting: LeasedTraceIds | None = None

    def reserve(self, count: int) -> TraceIdBlock | None:
        """So many ids that nobody else has or will have; None where none can be had."""
        with self._lock:
            try:
                return self._reserved(count)
            except ClewError as error:
                _log.warning("%d rows go without trace ids: %s", count, error)
                return None

    def _reserved(self, count: int) -> TraceIdBlock:
        if self._minting is not None:
            try:
                return self._minting.reserve_block(count)
            except ClewError as error:
                _log.warning("taking a node id anew: %s", error)
        self._minting = LeasedTraceIds(self._stores.node_leases, policy=self._stores.lease_policy, node_id=self._node)
        return self._minting.reserve_block(count)

    def publish(self, blocks: Sequence[PublishedBlock]) -> None:
        """Make known which rows have which ids."""
        try:
            for block in blocks:
                self._stores.blocks.record(block)
        except ClewError as error:
            _log.warning("rows of run %s will not be found by their trace ids: %s", blocks[0].run_id, error)

    def run(self, done: threading.Event) -> None:
        """Keep the node id until told that it is over, then give it back. For a thread of its own."""
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
    """What a traced stage needs of a deployment."""

    ids: LeasedTraceIds
    """Mints trace ids; give it to a `TracedStream`."""
    writer: TraceWriter
    """Takes batches of windows and artifacts."""


@contextmanager
def open_tracing(access: EnvironmentAccess, *, node_id: int | None = None) -> Iterator[Tracing]:
    """Lease a node id, this one or any, keep it for as long as the caller works, and give it back."""
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
    """A keepalive that fails is made up for by the next one; if none gets through, minting stops by itself."""
    while not done.wait(every_s):
        with suppress(ClewError):
            ids.keepalive()
