"""What a deployment stores for tracing, as protocols.

Among them: the expansion of windows into links, long after the outputs were published, and the deletion of old data.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from clew.deferred import dataclass
from clew.storage.trace_id_bits import first_id_of
from clew.tracelink.frames import BlockRegister, CollectorWriter
from clew.tracelink.lineage_walk import LineageReader
from clew.tracelink.node_leases import NodeLeasePolicy, NodeLeases


@dataclass(frozen=True, slots=True)
class Expansion:
    """The outcome of an expansion."""

    windows: int = 0
    """Windows that were looked at."""
    links: int = 0
    """New links."""
    transactions: int = 0

    def __add__(self, other: "Expansion") -> "Expansion":
        return Expansion(self.windows + other.windows, self.links + other.links, self.transactions + other.transactions)


class WindowExpander(Protocol):
    """Writes the links that windows represent."""

    def expand(self, *, since_ms: int = 0, batch_links: int = 20_000) -> Expansion:
        """Expand the windows of traces minted since then, in transactions of about so many links.

        Frames that come late are found by expanding again; links that are there already are not written twice.
        """
        ...


_FIRST_PLAUSIBLE_MS: Final = 1_262_304_000_000
"""The year 2010. Smaller numbers are ids with another layout."""


class Kept(StrEnum):
    """Kinds of records that programs send."""

    FRAMES = "frames"
    LINKS = "links"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Age:
    """Everything before a moment."""

    before_ms: int

    @classmethod
    def before(cls, moment: datetime) -> "Age":
        """What is older than a moment."""
        return cls(int(moment.timestamp() * 1000))

    @property
    def before_ns(self) -> int:
        """The moment in the unit of frames."""
        return self.before_ms * 1_000_000

    @property
    def trace_ids(self) -> tuple[int, int]:
        """The first and the last trace id that is as old."""
        return first_id_of(_FIRST_PLAUSIBLE_MS), first_id_of(self.before_ms) - 1


class TracePruner(Protocol):
    """Finds and removes old frames, links and windows."""

    def count(self, kept: Kept, age: Age) -> int:
        """How many records are that old."""
        ...

    def prune(self, kept: Kept, age: Age, *, batch: int = 20_000) -> int:
        """Remove them in transactions of this size. Returns how many there were.

        A frame stays as long as a remaining window needs it to name the rows it was made from.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLinkStores:
    """Node ids, blocks, frames, links and windows, each through the interface that its users need."""

    node_leases: NodeLeases
    lease_policy: NodeLeasePolicy
    blocks: BlockRegister
    writer: CollectorWriter
    reader: LineageReader
    expander: WindowExpander
    pruner: TracePruner
