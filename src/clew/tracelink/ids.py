"""Minting trace ids.

A generator hands out the ticks of its node in order: the next one is the tick of the clock, or the one after the last
if the clock has not got that far. So it borrows from the future instead of waiting, in all cases in which the clock
does not help: more than 4096 ids in a millisecond, a block that reaches ahead, a clock that went back. Agrona's
generator spins in the first case and throws in the last; here neither may happen, since tracing must not stop a
pipeline. Ids stay unique and growing; only their timestamp is then ahead of the clock, by a millisecond per 4096 ids.

What is borrowed could be minted again by a successor with the same node id. `first_ms` and `until_ms` prevent that: a
generator mints only within that window of time, and successive holders of a node id have windows that do not overlap
(see `node_lease`).
"""

import os
import threading

from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.tracelink import FORKED_GENERATOR, INVALID_BLOCK, INVALID_NODE_ID, TRACE_IDS_EXHAUSTED
from clew.tracelink.blocks import TraceIdBlock
from clew.tracelink.clock import ClockMs, monotonic_epoch_clock
from clew.tracelink.layout import (
    END_OF_TIME_MS,
    FIRST_TICK,
    MAX_NODE_ID,
    MAX_SEQUENCE,
    NODE_ID_BITS,
    SEQUENCE_BITS,
    first_tick_of,
    millisecond_of,
)

_TIMESTAMP_SHIFT = NODE_ID_BITS + SEQUENCE_BITS


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
