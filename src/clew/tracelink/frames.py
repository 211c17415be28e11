"""What tracing stores besides links: frames, windows, artifacts, and blocks of trace ids.

A block is one entry for millions of rows.
"""

from collections.abc import Collection, Iterable
from dataclasses import field
from typing import Protocol, Self

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import INVALID_BOUNDS
from clew.tracelink.ids import TraceIdBlock
from clew.tracelink.lineage_walk import Link

FrameRow = tuple[int, int, int, int, int, int, int]
"""Stream id, epoch, seq, stage id, time in ns, trace id, status: a frame in the order of its table."""

LARGEST_BOUND = 2**63 - 1
"""The largest number that a bound can have; it means "no end"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A range of places in a stream, or one of times. Both ends belong to it."""

    seq_start: int | None = None
    seq_end: int | None = None
    t_start_ns: int | None = None
    t_end_ns: int | None = None

    def __post_init__(self) -> None:
        by_seq, by_time = (self.seq_start, self.seq_end), (self.t_start_ns, self.t_end_ns)
        given = [pair for pair in (by_seq, by_time) if pair != (None, None)]
        if len(given) != 1 or None in given[0]:
            raise _invalid("both ends by sequence or both ends by time are needed, and not both kinds")
        start, end = self.ends
        if not 0 <= start <= end <= LARGEST_BOUND:
            raise _invalid(f"{start} to {end} is not a range between 0 and {LARGEST_BOUND}")

    @classmethod
    def of_seq(cls, start: int, end: int = LARGEST_BOUND) -> Self:
        """From one place in the stream to another, or on without end."""
        return cls(seq_start=start, seq_end=end)

    @classmethod
    def of_time(cls, start_ns: int, end_ns: int = LARGEST_BOUND) -> Self:
        """From one time to another, or on without end."""
        return cls(t_start_ns=start_ns, t_end_ns=end_ns)

    @property
    def is_by_seq(self) -> bool:
        """Whether the range is one of places."""
        return self.seq_start is not None

    @property
    def ends(self) -> tuple[int, int]:
        """Where the range starts and where it ends."""
        start, end = (self.seq_start, self.seq_end) if self.is_by_seq else (self.t_start_ns, self.t_end_ns)
        return start or 0, end or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWindow:
    """The inputs of an output that aggregates many: its parents are the frames of a stream within bounds."""

    trace_id: int
    in_stream_id: int
    epoch: int
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRange:
    """Something that changes rarely, such as a calibration, with the frames that it was used for."""

    artifact_id: str
    kind: str
    uri: str
    stream_id: int
    epoch: int
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceBatch:
    """What is written in one transaction."""

    frames: list[FrameRow] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    windows: list[TraceWindow] = field(default_factory=list)
    artifacts: list[ArtifactRange] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frames) + len(self.links) + len(self.windows) + len(self.artifacts)


class TraceWriter(Protocol):
    """Stores what tracing reports."""

    def write(self, batch: TraceBatch) -> int:
        """Write all or nothing; existing records do not change. Returns how many records are new."""
        ...


@dataclass(frozen=True, slots=True)
class UnsignedWrite:
    """What became of a batch from senders without a key."""

    written: int
    """Records that are new."""
    refused: int
    """Records that name rows of runs, and were not written."""


class CollectorWriter(TraceWriter, Protocol):
    """Stores what a collector receives."""

    def write_unsigned(self, batch: TraceBatch) -> UnsignedWrite:
        """Write frames and links from senders without a key, except those that name rows of runs."""
        ...


def _invalid(problem: str) -> UserError:
    return UserError(INVALID_BOUNDS.anywhere(problem=problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedBlock:
    """The frames of a step whose trace ids are one block: frame `first_seq + i` has the id of ordinal i."""

    block: TraceIdBlock
    run_id: str
    operation_seq: int
    """The step that made the rows, 0 for those that were loaded."""
    stream_id: int
    epoch: int
    first_seq: int = 0
    t_ns: int = 0

    def seq_of(self, trace_id: int) -> int | None:
        """The place of the frame that has an id, or None if the id is not of this block."""
        ordinal = self.block.ordinal_of(trace_id)
        return None if ordinal is None else self.first_seq + ordinal


class BlockRegister(Protocol):
    """Stores blocks, and finds the block of an id."""

    def record(self, published: PublishedBlock) -> None:
        """Store a block. Storing it again changes nothing."""
        ...

    def blocks_of(self, trace_ids: Collection[int]) -> Iterable[PublishedBlock]:
        """The blocks of these ids, each once."""
        ...

    def blocks_of_run(self, run_id: str) -> Iterable[PublishedBlock]:
        """The blocks of a run in the order of its steps."""
        ...
