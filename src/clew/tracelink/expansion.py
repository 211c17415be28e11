"""Turning windows into links, long after the outputs were published."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Expansion:
    """What an expansion came to."""

    windows: int = 0
    """Windows that were looked at."""
    links: int = 0
    """Links that were not there before."""
    transactions: int = 0

    def __add__(self, other: "Expansion") -> "Expansion":
        return Expansion(self.windows + other.windows, self.links + other.links, self.transactions + other.transactions)


class WindowExpander(Protocol):
    """Writes the links that windows stand for."""

    def expand(self, *, since_ms: int = 0, batch_links: int = 20_000) -> Expansion:
        """Expand the windows of traces minted since then, in transactions of about so many links.

        Frames that come late are found by expanding again; links that are there already are not written twice.
        """
        ...
