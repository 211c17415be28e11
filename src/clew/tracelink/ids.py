"""Minting trace ids: the clock, blocks of ids, and the generator of a node.

Trace id 0 means "not traced"; only tick 0 of node 0 would give it, and tick 0 is never used. The bits of an id are
defined in `storage.trace_id_bits`, since files on disk use the same arithmetic for the ids of their rows.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator

from clew.deferred import dataclass
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.tracelink import FORKED_GENERATOR, INVALID_BLOCK, INVALID_NODE_ID, TRACE_IDS_EXHAUSTED
from clew.storage.trace_id_bits import (
    END_OF_TIME_MS,
    MAX_NODE_ID,
    MAX_SEQUENCE,
    SEQUENCE_BITS,
    STRIDE,
    TIMESTAMP_SHIFT,
    first_tick_of,
    millisecond_of,
    node_bits,
    node_id_of,
    tick_of,
)

FIRST_TICK = 1

UNTRACED = 0
"""The trace id of what has none."""

ClockMs = Callable[[], int]
"""Milliseconds since 1970."""

_NANOSECONDS_PER_MS = 1_000_000


def _steady_clock() -> Callable[[], int]:
    """A monotonic clock in nanoseconds, one that runs on while the machine sleeps where the platform has it."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return time.monotonic_ns
    return lambda: time.clock_gettime_ns(boottime)


def monotonic_epoch_clock() -> ClockMs:
    """Read the wall clock once and count on monotonically from there.

    Setting the wall clock then moves no trace id; a process adopts the new time when it restarts.
    """
    steady = _steady_clock()
    offset = time.time_ns() - steady()
    return lambda: (steady() + offset) // _NANOSECONDS_PER_MS


@dataclass(frozen=True, slots=True)
class TraceIdBlock:
    """`count` trace ids of one node, from `first_tick` on. Three integers stand for millions of ids."""

    node_id: int
    first_tick: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.node_id <= MAX_NODE_ID:
            raise _invalid(f"{self.node_id} is not a node id")
        if self.count < 0:
            raise _invalid(f"a block cannot hold {self.count} ids")
        if self.first_tick < FIRST_TICK or self.end_tick > first_tick_of(END_OF_TIME_MS):
            raise _invalid(f"{self.count} ids from tick {self.first_tick} on do not fit into trace ids")

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        base = self.base
        return (tick + (tick >> SEQUENCE_BITS) * STRIDE + base for tick in range(self.first_tick, self.end_tick))

    def __contains__(self, trace_id: int) -> bool:
        return self.ordinal_of(trace_id) is not None

    @property
    def base(self) -> int:
        """The constant that the arithmetic adds: the node bits."""
        return node_bits(self.node_id)

    @property
    def end_tick(self) -> int:
        """The first tick after the block."""
        return self.first_tick + self.count

    @property
    def end_ms(self) -> int:
        """The first millisecond that the block leaves untouched; what comes after a crash must not start before it."""
        return millisecond_of(self.end_tick - 1) + 1 if self.count else millisecond_of(self.first_tick)

    def trace_id(self, ordinal: int) -> int:
        """The id of an ordinal from 0 to count - 1."""
        if not 0 <= ordinal < self.count:
            raise _invalid(f"ordinal {ordinal} is outside a block of {self.count} ids")
        tick = self.first_tick + ordinal
        return tick + millisecond_of(tick) * STRIDE + self.base

    def ordinal_of(self, trace_id: int) -> int | None:
        """The ordinal of an id, or None if the id is not of this block."""
        if node_id_of(trace_id) != self.node_id:
            return None
        ordinal = tick_of(trace_id) - self.first_tick
        return ordinal if 0 <= ordinal < self.count else None


def _invalid(problem: str) -> UserError:
    return UserError(INVALID_BLOCK.anywhere(problem=problem))


class TraceIdGenerator:
    """Mints the trace ids of one node: unique, growing, never waiting. Safe for threads; not for a forked process."""

    def __init__(
        self,
        node_id: int,
        clock_ms: ClockMs | None = None,
        *,
        first_ms: int = 0,
        until_ms: int = END_OF_TIME_MS,
    ) -> None:
        if not 0 <= node_id <= MAX_NODE_ID:
            raise UserError(INVALID_NODE_ID.anywhere(node_id=node_id, largest=MAX_NODE_ID))
        self.node_id = node_id
        self._node_bits = node_bits(node_id)
        self._clock_ms = clock_ms if clock_ms is not None else monotonic_epoch_clock()
        self._next_tick = max(first_tick_of(first_ms), FIRST_TICK)
        self._end_tick = first_tick_of(min(until_ms, END_OF_TIME_MS))
        self._lock = threading.Lock()
        self._process_id = os.getpid()

    def next_id(self) -> int:
        """A trace id that this node has not given out before, larger than all that it has."""
        now = first_tick_of(self._clock_ms())
        if os.getpid() != self._process_id:
            raise self._forked()
        with self._lock:
            tick = max(self._next_tick, now)
            if tick >= self._end_tick:
                raise self._exhausted()
            self._next_tick = tick + 1
        # `trace_id_of` written out: programs mint millions, and a call takes half as long as all the rest.
        return (tick >> SEQUENCE_BITS << TIMESTAMP_SHIFT) | self._node_bits | (tick & MAX_SEQUENCE)

    def reserve_block(self, count: int) -> TraceIdBlock:
        """`count` ids at once. Later ids of this generator come after it, even if it reaches ahead of the clock."""
        if count < 0:
            raise UserError(INVALID_BLOCK.anywhere(problem=f"a block cannot hold {count} ids"))
        now = first_tick_of(self._clock_ms())
        if os.getpid() != self._process_id:
            raise self._forked()
        with self._lock:
            first = max(self._next_tick, now)
            if first + count > self._end_tick:
                raise self._exhausted()
            self._next_tick = first + count
        return TraceIdBlock(node_id=self.node_id, first_tick=first, count=count)

    @property
    def used_until_ms(self) -> int:
        """The first millisecond that no id of this generator has touched."""
        return millisecond_of(self._next_tick - 1) + 1

    @property
    def until_ms(self) -> int:
        """The millisecond before which all ids must lie."""
        return millisecond_of(self._end_tick)

    def extend(self, until_ms: int) -> None:
        """Allow ids up to a later millisecond; an earlier one changes nothing."""
        with self._lock:
            self._end_tick = max(self._end_tick, first_tick_of(min(until_ms, END_OF_TIME_MS)))

    def stop(self) -> int:
        """Stop minting. Returns `used_until_ms`, which is now final."""
        with self._lock:
            self._end_tick = 0
            return self.used_until_ms

    def _exhausted(self) -> TransientFailure:
        return TransientFailure(TRACE_IDS_EXHAUSTED.anywhere(node_id=self.node_id, until_ms=self.until_ms))

    def _forked(self) -> UserError:
        return UserError(FORKED_GENERATOR.anywhere(made_in=self._process_id, used_in=os.getpid()))
