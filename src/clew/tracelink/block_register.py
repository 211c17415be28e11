"""Which rows the ids of a block belong to: one entry for a block of millions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from clew.tracelink.blocks import TraceIdBlock


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
    """Keeps blocks, and finds the one that an id is of."""

    def record(self, published: PublishedBlock) -> None:
        """Keep a block. The same one again changes nothing."""
        ...

    def blocks_of(self, trace_ids: Collection[int]) -> Iterable[PublishedBlock]:
        """The blocks that these ids are of, each once."""
        ...

    def blocks_of_run(self, run_id: str) -> Iterable[PublishedBlock]:
        """The blocks of a run in the order of its steps."""
        ...
