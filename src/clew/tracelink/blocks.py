"""A block: trace ids that are arithmetic on an ordinal.

The ids of a block are consecutive ticks of its node. For ordinal `i` of a block that starts at `first_tick`:

    tick = first_tick + i
    id   = tick + (tick >> 12) * (2^22 - 2^12) + (node_id << 12)

Additions, a shift and a multiplication, all within 63 bits: a Spark column computes it without a UDF, and a row whose
ordinal does not change has the same id on every recomputation and every retry of a task. Ids grow with the ordinal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import INVALID_BLOCK
from clew.tracelink.layout import (
    END_OF_TIME_MS,
    FIRST_TICK,
    MAX_NODE_ID,
    NODE_ID_BITS,
    SEQUENCE_BITS,
    decompose,
    first_tick_of,
    millisecond_of,
    tick_of,
)

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
