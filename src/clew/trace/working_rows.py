"""The rows that questions are asked about: the working dataset after a step, and datasets as a run saw them."""

from dataclasses import replace

from clew.lang.types import INTEGER, STRING
from clew.plan.datasets import DatasetUse
from clew.plan.operations import CreatingStep
from clew.storage.parts import ORIGIN, SOURCE_FILE, SOURCE_LINE, Part
from clew.trace.database import Reading
from clew.trace.row_sets import RowSet
from clew.trace.row_sources import FileRows
from clew.trace.run_parts import GroupKey, group_keys, periods_of
from clew.trace.sql import Sql


def working_rows(reading: Reading, at: int) -> RowSet:
    """The working dataset after a step, deleted rows among them.

    A part that holds the state after its last step stands for everything before it.
    """
    run, files = reading.run, reading.files
    states = [part for part in run.changes if part.columns and part.seq <= at]
    state = states[-1] if states else None
    start = state.seq if state else 0
    columns = run.columns(at)
    origins = list[FileRows]()
    if state is None:
        data = {column.name for column in run.plan.input.columns} | {"_period"}
        system = (("_period", Sql("?", (reading.period,))), ("_labels", Sql("''")), ("_deleted", Sql("FALSE")))
        periods = periods_of(run.loaded, run.plan.input)
        origins += [FileRows(file, files.columns(file) & data, system, periods) for file in run.loaded.files]
    for part in run.created:
        if start < part.seq <= at:
            origins += [FileRows(file, files.columns(file), (("_deleted", Sql("FALSE")),)) for file in part.files]
    return RowSet(
        files=files,
        database=reading.database,
        types=columns,
        origins=origins,
        state=state,
        changes=list(run.traced(start, at)),
    )


def created_rows(reading: Reading, part: Part) -> RowSet:
    """The rows that a step created, as it created them, with the keys of their groups."""
    system = (("_deleted", Sql("FALSE")),)
    origins = [FileRows(file, reading.files.columns(file), system) for file in part.files]
    keys = [(key.column, key.value.type) for key in keys_of(reading, part) if key.column != key.name]
    types = (*reading.run.columns(part.seq), *keys)
    return RowSet(files=reading.files, database=reading.database, types=types, origins=origins)


def keys_of(reading: Reading, part: Part) -> tuple[GroupKey, ...]:
    """The keys of the groups that the rows of a part stand for; none where they are no summaries."""
    step = reading.run.step(part.seq)
    if not isinstance(step, CreatingStep):
        return ()
    return group_keys(reading.run, reading.files, step, part)


def pinned_rows(reading: Reading, use: DatasetUse) -> RowSet:
    """A dataset as the run saw it, with the sources of its rows."""
    return _pinned(reading, use, periods_of(reading.run.pinned(use), use))


def rows_of_all_periods(reading: Reading, use: DatasetUse) -> RowSet:
    """All rows in the files of a dataset, with those of periods that the run did not ask for."""
    return _pinned(reading, use, None)


def _pinned(reading: Reading, use: DatasetUse, periods: frozenset[str] | None) -> RowSet:
    part, files = reading.run.pinned(use), reading.files
    types = {column.name: column.type for column in use.columns}
    types |= {SOURCE_FILE: STRING, SOURCE_LINE: INTEGER, ORIGIN: INTEGER}
    numbered = [
        replace(file, ordinal=index if file.ordinal is None else file.ordinal) for index, file in enumerate(part.files)
    ]
    return RowSet(
        files=files,
        database=reading.database,
        types=list(types.items()),
        origins=[FileRows(file, files.columns(file), (), periods) for file in numbered],
    )
