"""Lineage across tables that are registered as they are: from a row of a table to the row of the run that wrote it.

Such a table keeps the row ids of the runs that wrote its rows. A run that reads it gives its rows trace ids of its own,
and the links to those of the rows that they were are found by these row ids, in both directions.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from clew.deferred import dataclass
from clew.explain.row_links import row_parts
from clew.plan.datasets import DatasetUse
from clew.runs.stores import RunState
from clew.storage.parts import WRITTEN_ROW_ID, Part
from clew.storage.row_identity import RowIds
from clew.trace.reader import RunTrace
from clew.tracelink import Link

Author = tuple[str, int]
"""A run and the output step by which it has written rows of a dataset."""


def authors_of(state: RunState, dataset: str) -> list[Author]:
    """The runs and output steps that have written rows of a dataset, in all its versions."""
    return sorted({author for version in state.datasets.versions(dataset) for author in version.authors})


@dataclass(frozen=True, slots=True)
class TableCrossings:
    """The links between the rows of registered tables and the rows that they were."""

    state: RunState
    trace_of: Callable[[str], RunTrace | None]
    """Opens the trace of a run by its id; None if it is gone, or has no rows with trace ids."""
    readers_of: Callable[[str], Sequence[tuple[str, frozenset[str]]]]
    """The runs that have pinned a dataset."""

    def parents(self, trace: RunTrace, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is a row that a run has loaded from a registered table."""
        for use, part in _registered(trace):
            ids = {ordinal: trace_id for trace_id, ordinal in trace.ids.rows_of(part, trace_ids)}
            authors = authors_of(self.state, use.dataset_id) if ids else ()
            for ordinal, cells in trace.pinned(use).values(sorted(ids), [WRITTEN_ROW_ID]) if ids else ():
                parent = self._id_of(authors, cells[WRITTEN_ROW_ID])
                if parent is not None:
                    yield ids[ordinal], parent

    def _id_of(self, authors: Sequence[Author], row_id: object) -> int | None:
        for run_id, _ in authors if isinstance(row_id, str) else ():
            if RowIds(run_id).ordinal(str(row_id)) is not None:
                trace = self.trace_of(run_id)
                return None if trace is None else trace.trace_id(str(row_id))
        return None

    def children(self, trace: RunTrace, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is a row that a run has written to a registered table."""
        datasets = {step.registers for step in trace.plan.outputs if step.registers is not None}
        written = {each for each in datasets if self._has_tables_of(trace.run_id, each)}
        if not written:
            return
        rows = {
            trace.row_ids.row_id(ordinal): trace_id
            for part in row_parts(trace)
            for trace_id, ordinal in trace.ids.rows_of(part, trace_ids)
        }
        for dataset in sorted(written) if rows else ():
            for run_id, _ in self.readers_of(dataset):
                reader = self.trace_of(run_id)
                for use, part in _registered(reader) if reader is not None else ():
                    if reader is not None and use.dataset_id == dataset:
                        found = reader.ids.rows_written(part, use, list(rows))
                        ids = reader.ids.ids_of(part, [ordinal for _, ordinal in found])
                        yield from ((ids[ordinal], rows[row_id]) for row_id, ordinal in found if ordinal in ids)

    def _has_tables_of(self, run_id: str, dataset: str) -> bool:
        tables = (table for version in self.state.datasets.versions(dataset) for table in version.tables)
        return any(author.run_id == run_id for table in tables for author in table.authors)


def _registered(trace: RunTrace) -> Iterator[tuple[DatasetUse, Part]]:
    """The registered tables among what becomes rows of a run."""
    known = {part.name for part in row_parts(trace)}
    for use in {use.key: use for use in trace.plan.datasets_becoming_rows}.values():
        part = trace.run.pinned(use)
        if part.name in known and any(file.view and file.view.column(WRITTEN_ROW_ID) for file in part.files):
            yield use, part
