"""Rows of datasets as a run saw them: found by a condition, with their sources.

Joined rows are found as an update saw them. Rows of a registered dataset lead to the run that registered it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Protocol

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.explain.row_conditions import all_of, equals, is_not_deleted, with_values
from clew.explain.tree import JoinedRow
from clew.lang.conversion import to_text
from clew.lang.evaluation import Row
from clew.lang.typed import ColumnValue, Expression, Value
from clew.plan.datasets import DatasetUse
from clew.plan.names import name_of
from clew.plan.steps import Join
from clew.storage.parts import ORIGIN, SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID, WRITTEN_ROW_ID, Part, PartFile
from clew.storage.row_identity import RowIds, place_of
from clew.trace.history import source_of
from clew.trace.reader import RunTrace
from clew.trace.records import Source


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """A row of a dataset as a run saw it."""

    dataset_id: str
    version: int | None
    path: str
    """The file, relative to the storage root."""
    position: int
    origin: int | None
    """The ordinal that the row had in the run that registered it, if the file has it."""
    cells: Mapping[str, Value]
    written_by: tuple[str, int] | None = None
    """The run and step that have committed the file to the table that it belongs to."""
    written_row_id: str | None = None
    """The row id that the row had in the run that wrote it to a registered table."""


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
        """The row that a pinned row was, None if the dataset does not come from a run that is still there."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamByOrigin:
    """Follows the ordinals that registered files keep."""

    writer_of: Callable[[str], tuple[RunTrace, int] | None]
    """The trace of the run that wrote a file, and the output step; None if that run is gone."""
    trace_of: Callable[[str], RunTrace] | None = None
    """Opens the trace of a run by its id. UserError if it is gone, or not visible to the caller."""
    author_of: Callable[[str, str], tuple[RunTrace, int] | None] = lambda _dataset, _row_id: None
    """The trace of the run that wrote a row to a registered table, and the output step, by dataset and row id."""

    def producer(self, row: PinnedRow) -> UpstreamRow | None:
        """The row that a pinned row was."""
        if row.written_row_id is not None:
            author = self.author_of(row.dataset_id, row.written_row_id) or self._committer(row)
            return None if author is None else UpstreamRow(author[0], row.written_row_id, author[1])
        if row.written_by is not None:
            return self._written_to_table(row, *row.written_by)
        if row.origin is None:
            return None
        found = self.writer_of(row.path)
        if found is None:
            return None
        trace, seq = found
        return UpstreamRow(trace, trace.row_ids.row_id(row.origin), seq)

    def _committer(self, row: PinnedRow) -> tuple[RunTrace, int] | None:
        """The run that has committed the file of a row, if the row is one of its own."""
        if self.trace_of is None or row.written_by is None or row.written_row_id is None:
            return None
        run_id, seq = row.written_by
        if RowIds(run_id).ordinal(row.written_row_id) is None:
            return None
        try:
            return self.trace_of(run_id), seq
        except ClewError:
            return None

    def _written_to_table(self, row: PinnedRow, run_id: str, seq: int) -> UpstreamRow | None:
        """The row that a run has written to a table: the one that has the same values in all columns they share.

        None where several have, or none: a commit may also move rows that others have written.
        """
        if self.trace_of is None:
            return None
        try:
            trace = self.trace_of(run_id)
            if all(step.seq != seq for step in trace.plan.outputs):
                return None
            found = trace.search(_as_written(trace, seq, row.cells), at=seq, limit=2).rows
        except ClewError:
            return None
        return UpstreamRow(trace, found[0].row_id, seq) if len(found) == 1 else None


def _as_written(trace: RunTrace, seq: int, cells: Mapping[str, Value]) -> Expression | None:
    """Which rows of a run an output has written with these values."""
    [step] = [each for each in trace.plan.outputs if each.seq == seq]
    table, types = trace.plan.input.table, dict(trace.run.columns(step.seq))
    shared = [name for name in step.columns if name in cells and name in types]
    same = [equals(ColumnValue(table, name, types[name]), cells[name]) for name in shared]
    selector = None if step.selector is None else step.selector.tree
    return all_of([None if step.include_deleted else is_not_deleted(table), selector, *same])


_OWN = (SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID, ORIGIN, WRITTEN_ROW_ID)


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A row of a pinned dataset."""

    use: DatasetUse
    part: Part
    ordinal: int
    cells: Mapping[str, Value]
    """The columns of the dataset."""
    source: Source
    origin: int | None
    written_row_id: str | None = None

    def pinned(self) -> PinnedRow:
        """The row in the form that finds the run that wrote it."""
        file, position = _place(self.part, self.ordinal)
        return PinnedRow(
            dataset_id=self.use.dataset_id,
            version=self.source.version,
            path=file.path,
            position=position,
            origin=self.origin,
            cells=self.cells,
            written_by=_writer_of(file),
            written_row_id=self.written_row_id,
        )


def _writer_of(file: PartFile) -> tuple[str, int] | None:
    view = file.view
    return None if view is None or view.run_id is None or view.seq is None else (view.run_id, view.seq)


def dataset_rows(
    trace: RunTrace, use: DatasetUse, condition: Expression | None, table: str, limit: int | None = None
) -> Iterator[DatasetRow]:
    """The rows of a dataset that steps see and for which a condition over it, under a table name, is true."""
    names = [column.name for column in use.columns]
    part = trace.run.pinned(use)

    def see(_ordinal: int, cells: Mapping[str, Value]) -> Row:
        return Row({table: cells}, trace.today)

    may_be_deleted = any("_deleted" in trace.stored_columns(file) for file in part.files)
    seen = all_of([is_not_deleted(table), condition]) if may_be_deleted else condition
    found = trace.pinned(use).matching(seen, [*names, *_OWN], see)
    for ordinal, cells in islice(found, limit):
        yield _row(use, part, ordinal, cells)


def dataset_row(trace: RunTrace, use: DatasetUse, ordinal: int) -> DatasetRow:
    """The row of a dataset at a place."""
    names = [column.name for column in use.columns]
    [(_, cells)] = trace.pinned(use).values([ordinal], [*names, *_OWN])
    return _row(use, trace.run.pinned(use), ordinal, cells)


def comes_from_a_run(trace: RunTrace, use: DatasetUse, ordinal: int) -> bool:
    """Whether the file that holds a row of a dataset keeps which row of another run it was, or which run wrote it."""
    file, _ = _place(trace.run.pinned(use), ordinal)
    return _writer_of(file) is not None or not {ORIGIN, WRITTEN_ROW_ID}.isdisjoint(trace.stored_columns(file))


def _place(part: Part, ordinal: int) -> tuple[PartFile, int]:
    number, position = place_of(ordinal)
    named = {file.ordinal: file for file in part.files}
    return named.get(number) or part.files[number], position


def _row(use: DatasetUse, part: Part, ordinal: int, cells: Mapping[str, Value]) -> DatasetRow:
    origin, written = cells[ORIGIN], cells[WRITTEN_ROW_ID]
    return DatasetRow(
        use=use,
        part=part,
        ordinal=ordinal,
        cells={name: value for name, value in cells.items() if name not in _OWN},
        source=source_of(part, cells[SOURCE_FILE], cells[SOURCE_LINE], cells[SOURCE_ROW_ID]),
        origin=origin if isinstance(origin, int) else None,
        written_row_id=written if isinstance(written, str) else None,
    )


_ENOUGH_TO_TELL = 2


@dataclass(frozen=True, slots=True)
class PinnedMatch:
    """What a join found for a row."""

    told: JoinedRow
    row: DatasetRow | None
    """None if nothing matched."""


def joined(trace: RunTrace, joins: Iterable[Join], seen: Row) -> tuple[Row, dict[str, PinnedMatch]]:
    """What the expressions of a step with joins saw, and what its joins found, by alias."""
    matches = dict[str, PinnedMatch]()
    for join in joins:
        condition = with_values(join.on.tree, join.alias, seen)
        found = list(dataset_rows(trace, join.dataset, condition, join.alias, limit=_ENOUGH_TO_TELL))
        empty: Mapping[str, Value] = dict.fromkeys(column.name for column in join.dataset.columns)
        seen = Row({**seen.tables, join.alias: found[0].cells if found else empty}, trace.today)
        matches[join.alias] = PinnedMatch(_told(join, found), found[0] if found else None)
    return seen, matches


def _told(join: Join, found: list[DatasetRow]) -> JoinedRow:
    name = join.dataset.name
    if not found:
        return JoinedRow(join.alias, name, join.on.text, None, matches=0)
    label = name_of(found[0].cells, join.dataset.names) or None
    since = found[0].cells.get("_period_from")
    if label is not None and since is not None:
        label = label.with_suffix(f" from {to_text(since)}")
    return JoinedRow(join.alias, name, join.on.text, found[0].cells, label, found[0].source, len(found))
