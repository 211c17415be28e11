"""The bits of a trace id: Agrona's Snowflake layout with its default widths.

     63   62 ................... 22   21 ...... 12   11 ......... 0
      0   milliseconds since 1970     node id        sequence

Without its node bits an id is a *tick*: milliseconds times 4096 plus the sequence. Ticks of a node are consecutive
integers, so that "the next id", "a block of ids" and "how far ahead of the clock" are plain arithmetic on ticks.
"""

from clew.deferred import dataclass

TIMESTAMP_BITS = 41
NODE_ID_BITS = 10
SEQUENCE_BITS = 12

MAX_NODE_ID = (1 << NODE_ID_BITS) - 1
MAX_SEQUENCE = (1 << SEQUENCE_BITS) - 1
END_OF_TIME_MS = 1 << TIMESTAMP_BITS
"""The first millisecond that no longer fits: 7 September 2039."""

TIMESTAMP_SHIFT = NODE_ID_BITS + SEQUENCE_BITS
STRIDE = (1 << TIMESTAMP_SHIFT) - (1 << SEQUENCE_BITS)
"""What a millisecond adds to an id beyond what it adds to a tick."""


def trace_id_of(tick: int, node_id: int) -> int:
    """Put the node bits between the two parts of a tick."""
    return (tick >> SEQUENCE_BITS << TIMESTAMP_SHIFT) | (node_id << SEQUENCE_BITS) | (tick & MAX_SEQUENCE)


def tick_of(trace_id: int) -> int:
    """Take the node bits out again."""
    return (trace_id >> TIMESTAMP_SHIFT << SEQUENCE_BITS) | (trace_id & MAX_SEQUENCE)


def first_tick_of(timestamp_ms: int) -> int:
    """The tick at which a millisecond starts."""
    return timestamp_ms << SEQUENCE_BITS


def first_id_of(timestamp_ms: int) -> int:
    """The least trace id of a millisecond."""
    return timestamp_ms << TIMESTAMP_SHIFT


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
        timestamp_ms=trace_id >> TIMESTAMP_SHIFT,
        node_id=node_id_of(trace_id),
        sequence=trace_id & MAX_SEQUENCE,
    )


def node_id_of(trace_id: int) -> int:
    """The node that minted a trace id."""
    return trace_id >> SEQUENCE_BITS & MAX_NODE_ID


def node_bits(node_id: int) -> int:
    """What a node adds to all its trace ids."""
    return node_id << SEQUENCE_BITS
