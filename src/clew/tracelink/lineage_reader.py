"""What a question about lineage asks of whoever keeps links: a database, the files of runs, or several of these."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from clew.tracelink.links import LinkReader, UnitedLinks
from clew.tracelink.places import TracedFrame, TracePlace


class LineageReader(LinkReader, Protocol):
    """Links, and what the traces at their ends stand for. Ids that a reader does not know are left out of answers."""

    def frames(self, trace_ids: Collection[int]) -> Iterable[TracedFrame]:
        """The frames that were published under these traces, of each trace in the order of publishing."""
        ...

    def places(self, trace_ids: Collection[int]) -> Iterable[TracePlace]:
        """Where these traces were: of each the place that tells most of its origin first."""
        ...


class UnitedLineage(UnitedLinks):
    """Several readers as one."""

    def __init__(self, readers: Sequence[LineageReader]) -> None:
        super().__init__(readers)
        self._lineage_readers = tuple(readers)

    def frames(self, trace_ids: Collection[int]) -> Iterable[TracedFrame]:
        """The frames that any of the readers has."""
        for reader in self._lineage_readers:
            yield from reader.frames(trace_ids)

    def places(self, trace_ids: Collection[int]) -> Iterable[TracePlace]:
        """The places that any of the readers knows."""
        for reader in self._lineage_readers:
            yield from reader.places(trace_ids)
