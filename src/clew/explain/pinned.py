"""Rows of datasets as a run saw them: found by a condition, with their sources and the runs they come from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from clew.explain.upstream import PinnedRow
from clew.lang.evaluation import Row
from clew.lang.typed import Expression, Value
from clew.plan.datasets import DatasetUse
from clew.trace.history import source_of
from clew.trace.identity import place_of
from clew.trace.layout import ORIGIN, SOURCE_FILE, SOURCE_LINE, Part, PartFile
from clew.trace.reader import RunTrace
from clew.trace.records import Source

_OWN = (SOURCE_FILE, SOURCE_LINE, ORIGIN)


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

    def pinned(self) -> PinnedRow:
        """The row as those know it who find the run that wrote it."""
        file, position = _place(self.part, self.ordinal)
        return PinnedRow(self.use.dataset_id, self.source.version, file.path, position, self.origin, self.cells)


def dataset_rows(
    trace: RunTrace, use: DatasetUse, condition: Expression | None, table: str, limit: int | None = None
) -> Iterator[DatasetRow]:
    """The rows of a dataset for which a condition over it, under a table name, is true."""
    names = [column.name for column in use.columns]
    part = trace.run.pinned(use)

    def see(_ordinal: int, cells: Mapping[str, Value]) -> Row:
        return Row({table: cells}, trace.today)

    found = trace.pinned(use).matching(condition, [*names, *_OWN], see)
    for ordinal, cells in islice(found, limit):
        yield _row(use, part, ordinal, cells)


def dataset_row(trace: RunTrace, use: DatasetUse, ordinal: int) -> DatasetRow:
    """The row of a dataset at a place."""
    names = [column.name for column in use.columns]
    [(_, cells)] = trace.pinned(use).values([ordinal], [*names, *_OWN])
    return _row(use, trace.run.pinned(use), ordinal, cells)


def comes_from_a_run(trace: RunTrace, use: DatasetUse, ordinal: int) -> bool:
    """Whether the file that holds a row of a dataset keeps which row of another run it was."""
    file, _ = _place(trace.run.pinned(use), ordinal)
    return ORIGIN in trace.stored_columns(file)


def _place(part: Part, ordinal: int) -> tuple[PartFile, int]:
    number, position = place_of(ordinal)
    named = {file.ordinal: file for file in part.files}
    return named.get(number) or part.files[number], position


def _row(use: DatasetUse, part: Part, ordinal: int, cells: Mapping[str, Value]) -> DatasetRow:
    origin = cells[ORIGIN]
    return DatasetRow(
        use=use,
        part=part,
        ordinal=ordinal,
        cells={name: value for name, value in cells.items() if name not in _OWN},
        source=source_of(part, cells[SOURCE_FILE], cells[SOURCE_LINE]),
        origin=origin if isinstance(origin, int) else None,
    )
