"""What became of what came to a collector."""

from dataclasses import dataclass, fields


@dataclass(slots=True, kw_only=True)
class CollectorCounts:
    """Each thread of a collector counts on its own, and the sum tells of all.

    Of the messages received every one is untraced, dropped, or made of records that were written or known.
    """

    datagrams: int = 0
    """Datagrams received."""
    frames: int = 0
    """FrameDescriptors received."""
    link_sets: int = 0
    """TraceLinkSets received."""
    bad: int = 0
    """Messages that break a rule, and bytes that are no message."""
    unknown_schema: int = 0
    """Datagrams left at a message of a schema or a template that is not ours."""
    untraced: int = 0
    """Frames without a trace id, of which nothing is kept."""
    dropped: int = 0
    """Messages given up, since the store was away for longer than there was room."""
    overrun: int = 0
    """Datagrams that the system gave up before they were received, where it tells."""
    written: int = 0
    """Records new in the store: frames, and links one by one."""
    known: int = 0
    """Records that the store had already."""
    transactions: int = 0
    """Transactions that succeeded."""
    failures: int = 0
    """Transactions that did not. What they held was tried again."""

    @property
    def received(self) -> int:
        """Messages received."""
        return self.frames + self.link_sets

    def __add__(self, other: "CollectorCounts") -> "CollectorCounts":
        return CollectorCounts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def to_json(self) -> dict[str, int]:
        """All counts."""
        return {"received": self.received} | {field.name: getattr(self, field.name) for field in fields(self)}
