"""The way from a registered dataset to the run that registered it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from clew.lang.typed import Value
from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """A row of a dataset as a run saw it."""

    dataset_id: str
    version: int | None
    path: str
    """The file, relative to the storage root."""
    position: int
    origin: int | None
    """The ordinal that the row had in the run that registered it, where the file tells."""
    cells: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class UpstreamRow:
    """The same row in the run that registered it."""

    trace: RunTrace
    row_id: str
    at: int
    """The output step that wrote it."""


class UpstreamRuns(Protocol):
    """Knows which run registered a dataset."""

    def producer(self, row: PinnedRow) -> UpstreamRow | None:
        """The row that a pinned row was, None where the dataset does not come from a run that is still there."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamByOrigin:
    """Follows the ordinals that registered files keep."""

    writer_of: Callable[[str], tuple[RunTrace, int] | None]
    """The trace of the run that wrote a file, and the output step; None where that run is gone."""

    def producer(self, row: PinnedRow) -> UpstreamRow | None:
        """The row that a pinned row was."""
        if row.origin is None:
            return None
        found = self.writer_of(row.path)
        if found is None:
            return None
        trace, seq = found
        return UpstreamRow(trace, trace.row_ids.row_id(row.origin), seq)
