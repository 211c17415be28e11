"""Minting trace ids under a leased node id."""

import os
import socket
import threading
import time
from types import TracebackType
from typing import Self

from clew.tracelink.blocks import TraceIdBlock
from clew.tracelink.clock import ClockMs, monotonic_epoch_clock
from clew.tracelink.ids import TraceIdGenerator
from clew.tracelink.layout import MAX_SEQUENCE
from clew.tracelink.node_lease import ConfiguredNode, LeasePolicy, NodeHolder, NodeLease, NodeLeases

_WINDOWS_AHEAD = 2
"""How many lease durations the window reaches ahead, so that a late keepalive stops nobody whose lease is good."""


def this_process() -> NodeHolder:
    """The running process as a holder of a node id."""
    return NodeHolder(process_id=os.getpid(), start_time_ms=time.time_ns() // 1_000_000, host=socket.gethostname())


class LeasedTraceIds:
    """A generator that stays inside the window of its lease. It keeps its node id for life: a lost lease ends minting.

    Somebody has to call `keepalive` every `policy.keepalive_every_ms`: a worker or collector from its own loop.
    """

    def __init__(
        self,
        leases: NodeLeases,
        *,
        policy: LeasePolicy,
        holder: NodeHolder | None = None,
        node_id: int | ConfiguredNode | None = None,
        clock_ms: ClockMs | None = None,
    ) -> None:
        self._leases = leases
        self._policy = policy
        self._clock_ms = clock_ms if clock_ms is not None else monotonic_epoch_clock()
        self._lock = threading.Lock()
        self._lease = leases.acquire(
            holder if holder is not None else this_process(),
            reserve_until_ms=self._clock_ms() + self._ahead_ms,
            node_id=node_id,
        )
        self._generator = TraceIdGenerator(
            self._lease.node_id,
            self._clock_ms,
            first_ms=self._lease.first_ms,
            until_ms=self._lease.reserved_until_ms,
        )

    @property
    def lease(self) -> NodeLease:
        """The lease as the last keepalive left it."""
        return self._lease

    @property
    def node_id(self) -> int:
        """The node id, the same for as long as this object lives."""
        return self._lease.node_id

    def next_id(self) -> int:
        """A new trace id; `TraceIdsExhausted` once keepalives have failed for longer than the window is."""
        return self._generator.next_id()

    def reserve_block(self, count: int) -> TraceIdBlock:
        """A block of ids, recorded with the lease before it is given out: a crash does not forget it."""
        with self._lock:
            self._keepalive(count)
            return self._generator.reserve_block(count)

    def keepalive(self) -> None:
        """Prolong lease and window; `NodeLeaseLost` if the lease is gone."""
        with self._lock:
            self._keepalive(0)

    def close(self) -> None:
        """Give the node id back, with the part of the window that was not used. Nothing can be minted afterwards."""
        with self._lock:
            used_until_ms = self._generator.stop()
            self._leases.release(self._lease, used_until_ms=used_until_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _ahead_ms(self) -> int:
        return _WINDOWS_AHEAD * self._policy.duration_ms

    def _keepalive(self, count: int) -> None:
        from_ms = max(self._clock_ms(), self._generator.used_until_ms)
        block_ms = count // (MAX_SEQUENCE + 1) + 1
        self._lease = self._leases.keepalive(self._lease, reserve_until_ms=from_ms + block_ms + self._ahead_ms)
        self._generator.extend(self._lease.reserved_until_ms)
