"""Letting go of what programs have sent, once it is old.

A trace is as old as its id says, and as young as its youngest frame: one that still passes stages is not let go. Ids
that are not of Clew's layout tell no age, so what hangs on them stays.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from clew.tracelink.layout import NODE_ID_BITS, SEQUENCE_BITS

_FIRST_PLAUSIBLE_MS: Final = 1_262_304_000_000
"""The year 2010. Numbers below are ids that somebody has made in another way."""
_SHIFT: Final = NODE_ID_BITS + SEQUENCE_BITS


class Kept(StrEnum):
    """What is kept of traces that programs send."""

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
        """The moment as frames tell theirs."""
        return self.before_ms * 1_000_000

    @property
    def trace_ids(self) -> tuple[int, int]:
        """The first and the last trace id that is as old."""
        return _FIRST_PLAUSIBLE_MS << _SHIFT, (self.before_ms << _SHIFT) - 1


class TracePruner(Protocol):
    """Finds and removes old frames, links and windows."""

    def count(self, kept: Kept, age: Age) -> int:
        """How many records are so old."""
        ...

    def prune(self, kept: Kept, age: Age, *, batch: int = 20_000) -> int:
        """Remove them in transactions of so many, and tell how many there were.

        Frames stay as long as a window that stays reaches as far back: what it was made from can then still be told.
        """
        ...
