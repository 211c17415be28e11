"""Everything that an environment knows about lineage, as one reader.

A process outside of runs that takes part in tracing: its trace ids, and the windows and artifacts that it tells.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from clew.api.state import State, open_state
from clew.diagnostics import ClewError
from clew.explain.run_lineage import run_lineage
from clew.runs.environment import RunEnvironment
from clew.trace.reader import RunTrace
from clew.tracelink import LeasedTraceIds, LineageReader, TraceWriter, UnitedLineage


def lineage_reader(
    state: State, environment: RunEnvironment, trace_of: Callable[[str], RunTrace] | None = None
) -> LineageReader:
    """The rows of runs from their files, and what was collected from the state store.

    `trace_of` opens the trace of a run; UserError where it is gone, or not for the eyes of who asks.
    """
    return UnitedLineage([run_lineage(state, environment, trace_of), state.tracelink.reader])


@dataclass(frozen=True, slots=True)
class Tracing:
    """What a traced stage needs of a deployment."""

    ids: LeasedTraceIds
    """Mints trace ids; give it to a `TracedStream`."""
    writer: TraceWriter
    """Takes batches of windows and artifacts."""


@contextmanager
def open_tracing(environment: RunEnvironment, *, node_id: int | None = None) -> Iterator[Tracing]:
    """Lease a node id, this one or any, keep it for as long as the caller works, and give it back."""
    with open_state(environment) as state:
        stores = state.tracelink
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
