"""The bits of a trace id: Agrona's Snowflake layout with its default widths.

     63   62 ................... 22   21 ...... 12   11 ......... 0
      0   milliseconds since 1970     node id        sequence

Without its node bits an id is a *tick*: milliseconds times 4096 plus the sequence. Ticks of a node are consecutive
integers, so that "the next id", "a block of ids" and "how far ahead of the clock" are plain arithmetic on ticks. Trace
id 0 means "not traced"; only tick 0 of node 0 would give it, and tick 0 is never used.

The clock behind trace ids: milliseconds since 1970 that never go back.
A block: trace ids that are arithmetic on an ordinal.
Minting trace ids.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.tracelink import FORKED_GENERATOR, INVALID_BLOCK, INVALID_NODE_ID, TRACE_IDS_EXHAUSTED

TIMESTAMP_BITS = 41
NODE_ID_BITS = 10
SEQUENCE_BITS = 12

MAX_NODE_ID = (1 << NODE_ID_BITS) - 1
MAX_SEQUENCE = (1 << SEQUENCE_BITS) - 1
END_OF_TIME_MS = 1 << TIMESTAMP_BITS
"""The first millisecond that no longer fits: 7 September 2039."""

FIRST_TICK = 1

UNTRACED = 0
"""The trace id of what has none."""

_TIMESTAMP_SHIFT = NODE_ID_BITS + SEQUENCE_BITS


def trace_id_of(tick: int, node_id: int) -> int:
    """Put the node bits between the two parts of a tick."""
    return (tick >> SEQUENCE_BITS << _TIMESTAMP_SHIFT) | (node_id << SEQUENCE_BITS) | (tick & MAX_SEQUENCE)


def tick_of(trace_id: int) -> int:
    """Take the node bits out again."""
    return (trace_id >> _TIMESTAMP_SHIFT << SEQUENCE_BITS) | (trace_id & MAX_SEQUENCE)


def first_tick_of(timestamp_ms: int) -> int:
    """The tick at which a millisecond begins."""
    return timestamp_ms << SEQUENCE_BITS


def millisecond_of(tick: int) -> int:
    """The millisecond that a tick falls into."""
    return tick >> SEQUENCE_BITS


@dataclass(frozen=True, slots=True)
class TraceIdParts:
    """What a trace id says about its origin."""

    timestamp_ms: int
    node_id: int
    sequence: int


def decompose(trace_id: int) -> TraceIdParts:
    """Split a trace id into its three parts."""
    return TraceIdParts(
        timestamp_ms=trace_id >> _TIMESTAMP_SHIFT,
        node_id=(trace_id >> SEQUENCE_BITS) & MAX_NODE_ID,
        sequence=trace_id & MAX_SEQUENCE,
    )


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

    Setting the wall clock then moves no trace id; a process takes up the new time when it starts anew.
    """
    steady = _steady_clock()
    offset = time.time_ns() - steady()
    return lambda: (steady() + offset) // _NANOSECONDS_PER_MS


TICKS_SHIFT = SEQUENCE_BITS
"""By how much a tick is shifted right to give its millisecond."""
STRIDE = (1 << (NODE_ID_BITS + SEQUENCE_BITS)) - (1 << SEQUENCE_BITS)
"""What a millisecond adds to an id beyond what it adds to a tick."""


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
        return (tick + (tick >> TICKS_SHIFT) * STRIDE + base for tick in range(self.first_tick, self.end_tick))

    def __contains__(self, trace_id: int) -> bool:
        return self.ordinal_of(trace_id) is not None

    @property
    def base(self) -> int:
        """The constant that the arithmetic adds: the node bits."""
        return self.node_id << SEQUENCE_BITS

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
        return tick + (tick >> TICKS_SHIFT) * STRIDE + self.base

    def ordinal_of(self, trace_id: int) -> int | None:
        """The ordinal of an id, or None if the id is not of this block."""
        if decompose(trace_id).node_id != self.node_id:
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
        self._node_bits = node_id << SEQUENCE_BITS
        self._clock_ms = clock_ms if clock_ms is not None else monotonic_epoch_clock()
        self._next_tick = max(first_tick_of(first_ms), FIRST_TICK)
        self._end_tick = first_tick_of(min(until_ms, END_OF_TIME_MS))
        self._lock = threading.Lock()
        self._process_id = os.getpid()

    def next_id(self) -> int:
        """A trace id that this node has not given out before, larger than all that it has."""
        now = self._clock_ms() << SEQUENCE_BITS
        if os.getpid() != self._process_id:
            raise self._forked()
        with self._lock:
            tick = max(self._next_tick, now)
            if tick >= self._end_tick:
                raise self._exhausted()
            self._next_tick = tick + 1
        return (tick >> SEQUENCE_BITS << _TIMESTAMP_SHIFT) | self._node_bits | (tick & MAX_SEQUENCE)

    def reserve_block(self, count: int) -> TraceIdBlock:
        """`count` ids at once. Later ids of this generator come after it, even if it reaches ahead of the clock."""
        if count < 0:
            raise UserError(INVALID_BLOCK.anywhere(problem=f"a block cannot hold {count} ids"))
        now = self._clock_ms() << SEQUENCE_BITS
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
        """Mint nothing any more; returns `used_until_ms`, which then is final."""
        with self._lock:
            self._end_tick = 0
            return self.used_until_ms

    def _exhausted(self) -> TransientFailure:
        return TransientFailure(TRACE_IDS_EXHAUSTED.anywhere(node_id=self.node_id, until_ms=self.until_ms))

    def _forked(self) -> UserError:
        return UserError(FORKED_GENERATOR.anywhere(made_in=self._process_id, used_in=os.getpid()))
