"""The trace of one run, read without Spark.

Looking up one row reads the few row groups that hold it; questions about many rows go to DuckDB. All values have the
types of the plan. Rows can be found by the names that people know them by.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from functools import cached_property

from clew import budgets
from clew.budgets import QuestionLimits, budgeted
from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, PlainText, UserError, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.trace import INVALID_PAGE, ROW_NOT_FOUND
from clew.lang import Scope, Table, check_condition, parse
from clew.lang.evaluation import Row
from clew.lang.typed import Expression, Value, columns_of
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse, Names
from clew.plan.names import RowName, name_of, names_of_created
from clew.plan.plan import Plan
from clew.storage.checked_files import OnDamage, TraceFiles
from clew.storage.parts import Part, PartFile
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds, place_of
from clew.trace.column_values import AskedColumn, ColumnValues, column_values
from clew.trace.history import Histories
from clew.trace.quarantined import QuarantinedRow, quarantined_rows
from clew.trace.records import RowState, RowValues, StepSummary
from clew.trace.results import FoundRow, FoundRows, RowHistory, StepRecords
from clew.trace.row_sets import (
    Cells,
    Order,
    RowSet,
    created_rows,
    keys_of,
    pinned_rows,
    rows_of_all_periods,
    working_rows,
)
from clew.trace.row_trace_ids import RowTraceIds
from clew.trace.run_parts import GroupKey, NotDone, RunParts
from clew.trace.step_records import Page, all_kept_rows, count_records, read_matching, read_records, summaries
from clew.trace.trace_database import Reading, TraceDatabase


class RowNames:
    """Names rows by their values. Which columns do so follows from where the row was loaded or created."""

    def __init__(self, run: RunParts) -> None:
        self._run = run
        self._by_file = dict[int | None, Names]()
        for part in run.created:
            names = names_of_created(run.plan.input, run.step(part.seq))
            self._by_file.update((file.ordinal, names) for file in part.files)
        self._loaded = run.plan.input.names

    def columns(self, at: int) -> list[str]:
        """The columns of rows after a step that a name may need."""
        known = {name for name, _ in self._run.columns(at)}
        keys = [self._loaded, *self._by_file.values()]
        return sorted({column for names in keys for key in names for column in key if column in known})

    def name(self, ordinal: int | None, cells: Mapping[str, Value]) -> RowName:
        """What the row with an ordinal is called; nothing if its values do not say."""
        number = None if ordinal is None else place_of(ordinal)[0]
        return name_of(cells, self._by_file.get(number, self._loaded))


_MOST_ROWS = 100
_BYTES_PER_ORDINAL = 48
_MOST_COUNTED = 2_000_000
"""Rows of a run among which those that match a condition are counted while someone waits for a page."""


@dataclass(frozen=True)
class RunTrace:
    """What every step of a run did to every row."""

    root: StorageRoot
    """The storage root that the paths of parts are relative to."""
    run_id: str
    plan: Plan
    parts: tuple[Part, ...]
    """The parts that the history of the run names, in any order."""
    period: str
    today: date
    """What TODAY() meant in the run."""
    not_done: Mapping[int, NotDone] = field(default_factory=dict)
    """The steps that the run has skipped or has not come to."""
    question_limits: QuestionLimits = field(default_factory=QuestionLimits, compare=False)
    """What a question about the rows may cost."""
    on_damage: OnDamage | None = field(default=None, repr=False, compare=False)
    """Is told of files that are not as they were written."""
    run: RunParts = field(init=False, repr=False, compare=False)
    row_ids: RowIds = field(init=False, repr=False, compare=False)
    ids: RowTraceIds = field(init=False, repr=False, compare=False)
    _reading: Reading = field(init=False, repr=False, compare=False)
    _histories: Histories = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        copies = None if self.plan.reads_protected else self.root.copies
        files = TraceFiles(self.root, copies, self.on_damage)
        run = RunParts(self.plan, self.parts, self.not_done)
        row_ids = RowIds(self.run_id)
        object.__setattr__(self, "run", run)
        object.__setattr__(self, "row_ids", row_ids)
        reading = Reading(run, row_ids, self.period, files, TraceDatabase(files, self.question_limits))
        object.__setattr__(self, "_reading", reading)
        object.__setattr__(self, "ids", RowTraceIds(reading))
        object.__setattr__(self, "_histories", Histories(run, files, self.period, row_ids))

    # One row

    @budgeted
    def history(self, row_id: str) -> RowHistory:
        """What happened to a row, from loading or its creation to the last step that changed it."""
        columns = self.run.columns(self.run.last)
        ordinal = self.row_ids.ordinal(row_id)
        entries = [] if ordinal is None else self._histories.entries(ordinal, self.run.last)
        problem = None if entries else self._no_row(row_id)
        return RowHistory(row_id, columns, tuple(entries), problem, self.trace_id(row_id) if entries else None)

    @budgeted
    def state(self, row_id: str, at: int | None = None) -> RowState:
        """A row as it was after a step; 0 is loading, None the last step."""
        seq = self.run.checked_step(at)
        ordinal = self.row_ids.ordinal(row_id)
        entries = [] if ordinal is None else self._histories.entries(ordinal, seq)
        if not entries:
            return RowState(row_id, seq, None, self._no_row(row_id, seq))
        last = entries[-1].full_state
        return RowState(row_id, seq, {name: last.get(name) for name, _ in self.run.columns(seq)})

    def _no_row(self, row_id: str, at: int | None = None) -> Diagnostic:
        ordinal = self.row_ids.ordinal(row_id)
        if ordinal is None:
            is_row_id = RowIds.is_row_id(row_id)
            problem = f"{row_id} is a row of another run" if is_row_id else f'"{row_id}" is not a row id'
            return ROW_NOT_FOUND.anywhere(problem=problem)
        place = self.run.place(ordinal)
        if place is None or at is None or place[0].kind == "input":
            return ROW_NOT_FOUND.anywhere(problem=f"the run has no row {row_id}")
        problem = f"row {row_id} was created in step {place[0].seq}, it did not exist yet after step {at}"
        return ROW_NOT_FOUND.anywhere(problem=problem, hint=f"ask for step {place[0].seq} or a later one")

    @budgeted
    def kept_rows(self, seq: int) -> dict[int, int]:
        """For each row that a step deleted because another one stayed, the ordinal of that one, by its own."""
        return all_kept_rows(self._reading, seq)

    # Many rows

    @budgeted
    def search(
        self,
        where: str | Expression | None,
        at: int | None = None,
        limit: int = _MOST_ROWS,
        after: str | None = None,
    ) -> FoundRows:
        """Rows by their values after a step, deleted ones among them; all rows where there is no condition.

        Rows come in a fixed order, `limit` at a time; `after` is the last row id of the page before.
        """
        seq = self.run.checked_step(at)
        page = self._page(limit, after)
        columns = self.run.columns(seq)
        rows = self.working(seq)
        condition = self.condition(where, seq) if isinstance(where, str) else where
        found = list[int]()
        for ordinal, _ in rows.matching(condition, (), self.see, page.after):
            found.append(ordinal)
            if len(found) > limit:
                break
        states = rows.values(found[:limit], [name for name, _ in columns])
        return FoundRows(
            at=seq,
            columns=columns,
            rows=tuple(FoundRow(self.row_ids.row_id(ordinal), state) for ordinal, state in states),
            has_more=len(found) > limit,
            table=self.plan.input.table,
        )

    @budgeted
    def count(self, where: str | None, at: int | None = None) -> int | None:
        """How many rows match after a step, deleted ones among them.

        None where that cannot be known without looking at each of many rows.
        """
        seq = self.run.checked_step(at)
        rows = self.working(seq)
        size = rows.size()
        if where is None:
            return rows.count(None, ()) if size is None else size
        condition = self.condition(where, seq)
        exact = rows.in_sql(condition, self.today)
        if exact is None or size is None or size > _MOST_COUNTED:
            return None
        return rows.count(exact, [name for _, name in columns_of(condition)])

    @budgeted
    def values(self, column: str, where: str | None = None, at: int | None = None, *, most: int = 20) -> ColumnValues:
        """Which values a column has after a step, in all rows or in those that match."""
        seq = self.run.checked_step(at)
        types = dict(self.run.columns(seq))
        self._require_column(column, seq)
        condition = None if where is None else self.condition(where, seq)
        return column_values(self.working(seq), AskedColumn(seq, column, types[column], most), condition, self.see)

    @budgeted
    def count_of_step(self, seq: int) -> int:
        """How many rows a step changed, created or deleted."""
        return count_records(self._reading, self.run.reached_step(seq))

    def no_rows(self, at: int | None = None) -> FoundRows:
        """A page without rows, with the columns that there are after a step."""
        seq = self.run.checked_step(at)
        return FoundRows(seq, self.run.columns(seq), (), has_more=False, table=self.plan.input.table)

    @budgeted
    def ordered(
        self, where: str | None, order: Order, at: int | None = None, *, limit: int = _MOST_ROWS, offset: int = 0
    ) -> FoundRows:
        """Rows by their values after a step, sorted: `limit` of them after the first `offset`."""
        seq = self.run.checked_step(at)
        if limit < 1 or offset < 0:
            raise UserError(INVALID_PAGE.anywhere(problem=f"a page cannot have {limit} rows after {offset}"))
        columns = self.run.columns(seq)
        names = [name for name, _ in columns]
        self._require_column(order.column, seq)
        rows = self.working(seq)
        matching = None
        if where is not None:
            matching = list[int]()
            for ordinal, _ in rows.matching(self.condition(where, seq), (), self.see):
                budgets.hold(_BYTES_PER_ORDINAL)
                matching.append(ordinal)
        found = rows.ordered(matching, order, offset=offset, limit=limit + 1)
        states = dict(rows.values(found[:limit], names))
        return FoundRows(
            at=seq,
            columns=columns,
            rows=tuple(FoundRow(self.row_ids.row_id(ordinal), states[ordinal]) for ordinal in found[:limit]),
            has_more=len(found) > limit,
            table=self.plan.input.table,
        )

    @budgeted
    def step_rows(
        self, seq: int, limit: int = _MOST_ROWS, after: str | None = None, where: str | None = None
    ) -> StepRecords:
        """The records of a step: every row that it changed, created or deleted. An output has none.

        With a condition only those of rows for which it is true after the step.
        """
        step, page = self.run.reached_step(seq), self._page(limit, after)
        if where is None:
            return read_records(self._reading, step, page)
        condition, rows = self.condition(where, seq), self.working(seq)
        return read_matching(self._reading, step, page, lambda found: rows.judged(found, condition, self.see))

    @budgeted
    def keys_of(self, records: StepRecords) -> dict[str, RowName]:
        """The names of the rows on a page of records; without those that have none."""
        ordinals = {self.row_ids.ordinal(record.row_id): record.row_id for record in records.records}
        rows = self.working(records.operation_seq).values(
            [each for each in ordinals if each is not None], self.names.columns(records.operation_seq)
        )
        return {ordinals[ordinal]: name for ordinal, cells in rows if (name := self.names.name(ordinal, cells))}

    @cached_property
    def names(self) -> RowNames:
        """What people call the rows."""
        return RowNames(self.run)

    def name(self, row_id: str, state: RowValues) -> RowName:
        """What people call a row in a state; nothing if it has no name."""
        return self.names.name(self.row_ids.ordinal(row_id), state)

    @budgeted
    def counts(self) -> tuple[StepSummary, ...]:
        """How many rows each step changed, and in which columns."""
        return summaries(self._reading)

    @budgeted
    def quarantined(self, use: DatasetUse) -> Iterator[QuarantinedRow]:
        """The rows of a dataset that were not loaded."""
        return quarantined_rows(self._reading.files, self.parts, use)

    def verify(self) -> None:
        """Compare every byte of the run's files with what was written; UserError names all that differ."""
        self._reading.files.verify(self.parts)

    def close(self) -> None:
        """Close the database, if one was opened. The next question opens it again."""
        self._reading.database.close()

    def columns_in(self, where: str, at: int) -> list[str]:
        """The columns that a condition on the state after a step names."""
        return sorted({column for _, column in columns_of(self.condition(where, at))})

    # For explanations

    def condition(self, where: str, at: int) -> Expression:
        """A condition on the state after a step, checked."""
        types = {name: type_ for name, type_ in self.run.columns(at) if name not in SYSTEM_COLUMNS}
        scope = Scope((Table(self.plan.input.table, {**types, **SYSTEM_COLUMNS}),))
        checked = check_condition(parse(PlainText(where, "<where>")), scope, "in a search")
        if checked.expression is None:
            raise UserError(*checked.diagnostics)
        return checked.expression

    def working(self, at: int) -> RowSet:
        """The working dataset after a step."""
        return working_rows(self._reading, at)

    def pinned(self, use: DatasetUse) -> RowSet:
        """A dataset as the run saw it."""
        return pinned_rows(self._reading, use)

    def stored_columns(self, file: PartFile) -> frozenset[str]:
        """The columns that a file of the run has, those of Clew's own among them."""
        return self._reading.files.columns(file)

    def pinned_of_all_periods(self, use: DatasetUse) -> RowSet:
        """A dataset with the rows of other periods in the same files."""
        return rows_of_all_periods(self._reading, use)

    def created(self, part: Part) -> RowSet:
        """The rows that a step created, as it created them, with the keys of their groups."""
        return created_rows(self._reading, part)

    def group_keys(self, part: Part) -> tuple[GroupKey, ...]:
        """The keys of the groups that the created rows of a part stand for."""
        return keys_of(self._reading, part)

    def trace_id(self, row_id: str) -> int | None:
        """The trace id of a row, None if it has none."""
        ordinal = self.row_ids.ordinal(row_id)
        place = None if ordinal is None else self.run.place(ordinal)
        return None if place is None else self.ids.id_at(place[1], place[2])

    def see(self, ordinal: int, cells: Cells) -> Row:
        """A row of the working dataset for the evaluator."""
        return Row({self.plan.input.table: {**cells, "_row_id": self.row_ids.row_id(ordinal)}}, self.today)

    def _require_column(self, column: str, seq: int) -> None:
        names = [name for name, _ in self.run.columns(seq)]
        if column not in names:
            table = f"{self.plan.input.table} after step {seq}"
            raise UserError(UNKNOWN_COLUMN.anywhere(column=column, table=table, hint=did_you_mean(column, names)))

    def _page(self, limit: int, after: str | None) -> Page:
        if limit < 1:
            raise UserError(INVALID_PAGE.anywhere(problem=f"a page cannot have {limit} rows"))
        if after is None:
            return Page(limit)
        ordinal = self.row_ids.ordinal(after)
        if ordinal is None:
            raise UserError(INVALID_PAGE.anywhere(problem=f'"{after}" is not a row id of this run'))
        return Page(limit, ordinal)
