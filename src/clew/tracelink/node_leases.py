"""Who holds which node id, and until when: the rules, without a database; and minting under a lease.

A lease is a window of time in two senses. Until `expires_at_ms`, by the clock of the store, the node id belongs to its
holder; keepalives extend that. And all timestamps in the holder's trace ids are in [first_ms, reserved_until_ms): the
holder has the store extend this window before it mints beyond it, whether with the clock or with a block that reaches
ahead of it. The next holder's window begins where the last one ended. So no id is ever minted twice, even if a process
that was thought dead continues to mint, or clocks of machines disagree or are set back.

A node id is free for another process once its lease has ended, everything reserved ahead has passed, and a cooldown
after that is over. A node id that is configured for a process has no cooldown: the next process configured with it gets
it as soon as it is free, and is refused before. Nor does a process wait whose own lease has expired because the store
was away: it gets its node id again. Transitions are pure functions from lease to lease; a store runs them
inside a transaction and keeps every lease ever granted, as the record of (node_id, process_id, start_time).
"""

import os
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from clew.deferred import dataclass
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.tracelink import INVALID_NODE_ID, NODE_ID_TAKEN, NODE_LEASE_LOST
from clew.storage.trace_id_bits import END_OF_TIME_MS, MAX_NODE_ID, MAX_SEQUENCE
from clew.tracelink.ids import ClockMs, TraceIdBlock, TraceIdGenerator, monotonic_epoch_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLeasePolicy:
    """How long a lease lasts without a keepalive, and how long a node id rests after it."""

    duration_ms: int = 30_000
    cooldown_ms: int = 60_000

    @property
    def keepalive_every_ms(self) -> int:
        """Often enough that two keepalives in a row may be lost."""
        return self.duration_ms // 3


@dataclass(frozen=True, slots=True)
class ConfiguredNode:
    """A node id that is configured for a process, which gets it every time, without a cooldown."""

    node_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHolder:
    """A process. Its start time distinguishes it from a later one with the same process id."""

    process_id: int
    start_time_ms: int
    host: str


class LeaseEnd(StrEnum):
    """Why a lease ended before it expired."""

    RELEASED = "released"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLease:
    """One process holding one node id. `term` counts the leases of a node id."""

    node_id: int
    term: int
    holder: NodeHolder
    granted_at_ms: int
    expires_at_ms: int
    first_ms: int
    reserved_until_ms: int
    ended_at_ms: int | None = None
    end: LeaseEnd | None = None

    def is_live(self, now_ms: int) -> bool:
        """Whether the holder may still mint new ids."""
        return self.end is None and now_ms < self.expires_at_ms

    def over_at_ms(self) -> int:
        """When the lease ended, or will if no keepalive comes."""
        return self.expires_at_ms if self.ended_at_ms is None else self.ended_at_ms

    def free_from_ms(self, policy: NodeLeasePolicy) -> int:
        """When another process may get the node id."""
        return max(self.over_at_ms(), self.reserved_until_ms) + policy.cooldown_ms

    def free_as_configured_from_ms(self, policy: NodeLeasePolicy) -> int:
        """When a process that is configured with the node id, or that held it last, may get it.

        Revoking it makes it rest all the same.
        """
        return self.free_from_ms(policy) if self.end is LeaseEnd.REVOKED else self.over_at_ms()


def grant(
    previous: NodeLease | None,
    *,
    node_id: int | ConfiguredNode,
    holder: NodeHolder,
    now_ms: int,
    reserve_until_ms: int,
    policy: NodeLeasePolicy,
) -> NodeLease:
    """A new lease of a node id, whose last lease (if it ever had one) was `previous`."""
    number = number_of(node_id)
    if not 0 <= number <= MAX_NODE_ID:
        raise UserError(INVALID_NODE_ID.anywhere(node_id=number, largest=MAX_NODE_ID))
    if previous is not None:
        is_its_own = isinstance(node_id, ConfiguredNode) or previous.holder == holder
        free = previous.free_as_configured_from_ms(policy) if is_its_own else previous.free_from_ms(policy)
        if now_ms < free:
            raise _taken(previous, now_ms, free)
    first_ms = 0 if previous is None else previous.reserved_until_ms
    return NodeLease(
        node_id=number,
        term=1 if previous is None else previous.term + 1,
        holder=holder,
        granted_at_ms=now_ms,
        expires_at_ms=now_ms + policy.duration_ms,
        first_ms=first_ms,
        reserved_until_ms=_within_time(max(first_ms + policy.duration_ms, reserve_until_ms)),
    )


def number_of(node_id: int | ConfiguredNode) -> int:
    """The node id itself."""
    return node_id.node_id if isinstance(node_id, ConfiguredNode) else node_id


def renew(lease: NodeLease, *, now_ms: int, reserve_until_ms: int, policy: NodeLeasePolicy) -> NodeLease:
    """The lease after a keepalive. Neither its expiry nor its window moves back, even if a clock does."""
    _refuse_lost(lease, now_ms)
    return replace(
        lease,
        expires_at_ms=max(lease.expires_at_ms, now_ms + policy.duration_ms),
        reserved_until_ms=_within_time(max(lease.reserved_until_ms, reserve_until_ms)),
    )


def release(lease: NodeLease, *, now_ms: int, used_until_ms: int) -> NodeLease:
    """The lease after its holder gave it back, with what it had reserved and not used."""
    if lease.end is not None:
        return lease
    used = min(max(used_until_ms, lease.first_ms), lease.reserved_until_ms)
    return replace(lease, ended_at_ms=now_ms, end=LeaseEnd.RELEASED, reserved_until_ms=used)


def revoke(lease: NodeLease, *, now_ms: int) -> NodeLease:
    """The lease after another process ended it. What was reserved stays so: the holder may have used it."""
    if lease.end is not None:
        return lease
    return replace(lease, ended_at_ms=now_ms, end=LeaseEnd.REVOKED)


def choose_node_id(latest: Iterable[NodeLease], *, now_ms: int, policy: NodeLeasePolicy) -> int:
    """The node id for a process that does not care which: one never used, else the one that is free the longest."""
    free_from = {lease.node_id: lease.free_from_ms(policy) for lease in latest}
    for node_id in range(MAX_NODE_ID + 1):
        if node_id not in free_from:
            return node_id
    longest_free = min(free_from, key=lambda node_id: (free_from[node_id], node_id))
    if now_ms < free_from[longest_free]:
        raise UserError(NODE_ID_TAKEN.anywhere(problem=f"none of the {MAX_NODE_ID + 1} node ids is free"))
    return longest_free


def lost(node_id: int, reason: str) -> TransientFailure:
    """The error for a holder whose lease is gone."""
    return TransientFailure(NODE_LEASE_LOST.anywhere(node_id=node_id, reason=reason))


class NodeLeases(Protocol):
    """The authority on node ids. All times are those of its clock, except the windows that holders request."""

    def acquire(
        self, holder: NodeHolder, *, reserve_until_ms: int, node_id: int | ConfiguredNode | None = None
    ) -> NodeLease:
        """Lease this node id, or any free one; `NodeIdTaken` if there is none."""
        ...

    def keepalive(self, lease: NodeLease, *, reserve_until_ms: int) -> NodeLease:
        """Prolong a lease and its window; `NodeLeaseLost` if it expired, was revoked, or is not the latest term."""
        ...

    def release(self, lease: NodeLease, *, used_until_ms: int) -> None:
        """Return a node id. Nothing happens if the lease is already lost."""
        ...

    def revoke(self, node_id: int) -> None:
        """End the lease of a node id, whoever holds it."""
        ...

    def record(self) -> tuple[NodeLease, ...]:
        """Every lease ever granted, in the order of granting."""
        ...


def _refuse_lost(lease: NodeLease, now_ms: int) -> None:
    if lease.end is not None:
        raise lost(lease.node_id, f"it was {lease.end}")
    if not lease.is_live(now_ms):
        raise lost(lease.node_id, "no keepalive came in time")


def _taken(previous: NodeLease, now_ms: int, free_from_ms: int) -> UserError:
    holder = previous.holder
    state = "is held by" if previous.is_live(now_ms) else "has not cooled down since it was held by"
    return UserError(
        NODE_ID_TAKEN.anywhere(
            problem=f"node id {previous.node_id} {state} process {holder.process_id} on {holder.host}; "
            f"it is free in {free_from_ms - now_ms} ms at the earliest"
        )
    )


def _within_time(timestamp_ms: int) -> int:
    return min(timestamp_ms, END_OF_TIME_MS)


_WINDOWS_AHEAD = 2
"""How many lease durations the window reaches ahead, so that a late keepalive does not stop a holder
whose lease is still valid."""


_LOADED_MS = time.time_ns() // 1_000_000


def this_process() -> NodeHolder:
    """The running process as a holder of a node id, the same for as long as it lives."""
    return NodeHolder(process_id=os.getpid(), start_time_ms=process_start_ms(), host=socket.gethostname())


def process_start_ms() -> int:
    """When this process started, in milliseconds since 1970; where the system does not say, when it loaded this."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:  # noqa: PTH123 - not a file
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as stat:  # noqa: PTH123 - not a file
            booted_s = next(int(line.split()[1]) for line in stat if line.startswith("btime "))
        return booted_s * 1000 + ticks * 1000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return _LOADED_MS


class LeasedTraceIds:
    """A generator that stays inside the window of its lease. It keeps its node id for life: a lost lease ends minting.

    Call `keepalive` every `policy.keepalive_every_ms`: a worker or collector from its own loop.
    """

    def __init__(
        self,
        leases: NodeLeases,
        *,
        policy: NodeLeasePolicy,
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
        """Return the node id, with the unused part of the window. Nothing can be minted afterwards."""
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
