"""Reading links, wherever they are kept."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

Link = tuple[int, int]
"""A trace id and the id of one of its parents."""


class LinkReader(Protocol):
    """Answers for many traces at once, so that a walk asks once per hop and not once per trace.

    Links are pairs of a trace and its parent in both directions. A reader may name a link more than once.
    """

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the trace."""
        ...

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the parent."""
        ...


class UnitedLinks:
    """Several readers as one: links of one trace may lie in Parquet, those of the next in a database."""

    def __init__(self, readers: Sequence[LinkReader]) -> None:
        self._readers = tuple(readers)

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links that any of the readers has upwards."""
        for reader in self._readers:
            yield from reader.parents(trace_ids)

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links that any of the readers has downwards."""
        for reader in self._readers:
            yield from reader.children(trace_ids)
