"""The trace of a run as one role sees it: the only form in which traces leave `clew.api`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from clew.deferred import dataclass
from clew.definitions.adjustment_columns import ADJUSTED_BY, APPROVED_BY, MADE_BY, REASON
from clew.definitions.privacy import Sight
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.trace import INCOMPLETE_TRACE
from clew.events.snapshot import RunSnapshot
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.privacy.eyes import ColumnEyes, RunEyes
from clew.privacy.masking import NOT_SHOWN
from clew.privacy.policy import PrivacyPolicy
from clew.trace.column_values import ColumnValues
from clew.trace.quarantined import QuarantinedRow, correctable_csv
from clew.trace.reader import RunTrace
from clew.trace.reconciliation import Reconciliation, reconcile
from clew.trace.records import Diff, RowState, RowValues, StepRecord, StepSummary, TraceEntry
from clew.trace.results import FoundRow, FoundRows, RowHistory, StepRecords
from clew.trace.row_sets import Order
from clew.trace.run_parts import RunParts

if TYPE_CHECKING:  # only the questions about adjustments load what explains
    from clew.explain.applied_adjustments import Adjustment

_MOST_ROWS = 100
_FEW = 8

HasRead = Callable[[str, Iterable[str], Collection[str] | int], None]
"""Records what was asked for, the columns of the answer, and the ids of its rows, or how many there are."""


FindAdjustments: TypeAlias = "Callable[[RunTrace, DatasetUse], Iterable[Adjustment]]"
"""Finds the adjustments of a dataset that a run has read."""


FindFailing = Callable[[RunTrace, PlannedCheck, int, str | None], FoundRows]
"""Finds a page of the rows that fail a check."""


FindRows: TypeAlias = Callable[[RunTrace, DatasetUse, int], Iterable[Mapping[str, Value]]]
"""Finds the first rows of a dataset that a run has read."""


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Rows of a dataset, with the columns that the role sees."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[Mapping[str, Value], ...]


def _unrecorded(_asked: str, _columns: Iterable[str], _rows: Collection[str] | int) -> None:
    """For those who record what they ask for themselves."""


@dataclass(frozen=True)
class SeenTrace:
    """What every step of a run did to every row, as far as a role may see it.

    Hidden columns are left out, masked ones have masked values. Conditions and orders by a column that the role does
    not see as it is are refused.
    """

    _trace: RunTrace
    policy: PrivacyPolicy
    has_read: HasRead = _unrecorded
    """Told of each answer before it is given."""

    @cached_property
    def eyes(self) -> RunEyes:
        """The columns of the run as the role sees them."""
        return RunEyes.of(self.policy, self._trace.plan)

    @property
    def columns(self) -> ColumnEyes:
        """The columns of the working dataset as the role sees them."""
        return self.eyes.working

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._trace.run_id

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._trace.plan

    @property
    def period(self) -> str:
        """The period of the run."""
        return self._trace.period

    @property
    def run(self) -> RunParts:
        """The steps of the run and the columns after each, without values."""
        return self._trace.run

    # One row

    def history(self, row_id: str) -> RowHistory:
        """What happened to a row, from loading or its creation to the last step that changed it."""
        self.policy.require_rows()
        found = self._trace.history(row_id)
        entries = tuple(self._entry(entry) for entry in found.entries)
        seen = replace(found, columns=self.columns.columns(found.columns), entries=entries)
        self.has_read(f"row {row_id}", _names(seen.columns) if entries else (), (row_id,) if entries else ())
        return seen

    def state(self, row_id: str, at: int | None = None) -> RowState:
        """A row as it was after a step; 0 is loading, None the last step."""
        self.policy.require_rows()
        found = self._trace.state(row_id, at)
        state = None if found.state is None else self.columns.state(found.state)
        self.has_read(_asked(row=row_id, at=at), state or (), () if state is None else (row_id,))
        return replace(found, state=state)

    # Many rows

    def search(
        self, where: str | None, at: int | None = None, limit: int = _MOST_ROWS, after: str | None = None
    ) -> FoundRows:
        """Rows by their values after a step, deleted ones among them; all rows where there is no condition."""
        self.policy.require_rows()
        self.columns.require_condition(where)
        return self._found(self._trace.search(where, at, limit, after), self._where(where, at=at, after=after))

    def count(self, where: str | None, at: int | None = None) -> int | None:
        """How many rows match after a step, deleted ones among them; None if only looking at each would tell."""
        self.policy.require_rows()
        self.columns.require_condition(where)
        found = self._trace.count(where, at)
        self.has_read(self._where(where, at=at, counted=True), (), ())
        return found

    def values(self, column: str, where: str | None = None, at: int | None = None, *, most: int = 20) -> ColumnValues:
        """Which values a column has after a step: the most frequent ones, and from where to where they go.

        Counts all rows, or those that match; deleted rows are among them. The role has to see the column as it is.
        """
        self.policy.require_rows()
        self.columns.require_condition(where)
        self.columns.require(column, "list the values of")
        found = self._trace.values(column, where, at, most=most)
        self.has_read(self._where(where, values_of=column, at=at), (column,), found.rows)
        return found

    def count_of_step(self, seq: int) -> int:
        """How many rows a step changed, created or deleted."""
        self.policy.require_rows()
        found = self._trace.count_of_step(seq)
        self.has_read(_asked(step=seq, counted=True), (), ())
        return found

    def no_rows(self, at: int | None = None) -> FoundRows:
        """A page without rows, with the columns that there are after a step."""
        return self._seen(self._trace.no_rows(at))

    def ordered(
        self, where: str | None, order: Order, at: int | None = None, *, limit: int = _MOST_ROWS, offset: int = 0
    ) -> FoundRows:
        """Rows by their values after a step, sorted: `limit` of them after the first `offset`."""
        self.policy.require_rows()
        self.columns.require_condition(where)
        self.columns.require(order.column, "sort by")
        found = self._trace.ordered(where, order, at, limit=limit, offset=offset)
        return self._found(found, self._where(where, at=at, sort=order.column, offset=offset or None))

    def states(self, row_ids: Iterable[str], at: int) -> Mapping[str, RowValues]:
        """Rows as they were after a step, by row id; without those that did not exist then."""
        self.policy.require_rows()
        trace = self._trace
        ordinals = sorted(ordinal for row_id in row_ids if (ordinal := trace.row_ids.ordinal(row_id)) is not None)
        if not ordinals:
            return {}
        names = [name for name, _ in trace.run.columns(at)]
        found = trace.working(at).values(ordinals, names)
        seen = {trace.row_ids.row_id(ordinal): self.columns.state(cells) for ordinal, cells in found}
        self.has_read(_asked(rows_by_id=len(ordinals), at=at), next(iter(seen.values()), ()), seen)
        return seen

    def step_rows(
        self, seq: int, limit: int = _MOST_ROWS, after: str | None = None, where: str | None = None
    ) -> StepRecords:
        """The records of a step: every row that it changed, created or deleted. An output has none."""
        self.policy.require_rows()
        self.columns.require_condition(where)
        found = self._trace.step_rows(seq, limit, after, where)
        records = tuple(self._record(record) for record in found.records)
        seen = replace(found, columns=self.columns.columns(found.columns), records=records)
        self.has_read(
            self._where(where, step=seq, after=after), _names(seen.columns), [record.row_id for record in records]
        )
        return seen

    def touched(
        self, seq: int, limit: int = _MOST_ROWS, after: str | None = None, where: str | None = None
    ) -> FoundRows:
        """The rows that a step created, changed or deleted, as they were after it."""
        records = self.step_rows(seq, limit, after, where)
        states = self.states([record.row_id for record in records.records], seq)
        rows = tuple(FoundRow(row_id, state) for row_id, state in states.items())
        return replace(self.no_rows(seq), rows=rows, has_more=records.has_more)

    def keys_of(self, records: StepRecords) -> dict[str, str]:
        """The names of the rows on a page of records; without those that have none."""
        self.policy.require_rows()
        named = self._trace.keys_of(records)
        return {row_id: label for row_id, name in named.items() if (label := self.columns.label(name))}

    # Questions

    def require_explanation(self, column: str) -> None:
        """Raise UserError if the role may not ask why a column has its value. Masked values may be explained."""
        self.policy.require_rows()
        known = column if column in self.columns.classes else column.removeprefix(f"{self.plan.input.table}.")
        if self.columns.sight(known) is Sight.HIDDEN:
            self.columns.require(known, "ask about")

    def require_question(self, where: str) -> None:
        """Raise UserError if the role may not ask why the rows of a condition are missing."""
        self.policy.require_rows()
        self.columns.require_condition(where)

    def name(self, row_id: str, state: RowValues) -> str:
        """What people call a row in a state that was read here; nothing where it has no name."""
        return self._trace.name(row_id, state)

    def counts(self) -> tuple[StepSummary, ...]:
        """How many rows each step changed, and in which columns."""
        return self._trace.counts()

    def reconcile(self, snapshot: RunSnapshot) -> Reconciliation:
        """What came in and went out, for every output. Without control totals of columns that the role does not see."""
        self.policy.require_rows()
        sees = self.columns.is_clear
        found = reconcile(self._trace, snapshot, lambda control: all(sees(name) for name in control.columns))
        self.has_read("reconciliation", sorted({name for each in found.controls for name in each.columns}), ())
        return found

    def quarantine(self, dataset: str | None = None) -> tuple[QuarantinedRow, ...]:
        """The rows that the run did not load, of all datasets or of one, by its id or name."""
        self.policy.require_rows()
        found = [
            _as_seen(row, self.eyes.dataset(use)) for use in self._read(dataset) for row in self._trace.quarantined(use)
        ]
        self.has_read("quarantine", sorted({name for row in found for name in row.texts}), ())
        return tuple(found)

    def correctable(self, dataset: str) -> str:
        """The rows of a dataset in quarantine as CSV to be corrected. The role has to see all its columns."""
        self.policy.require_rows()
        [use, *_] = self._read(dataset)
        eyes = self.eyes.dataset(use)
        for column in use.columns:
            eyes.require(column.name, "export")
        names = [column.name for column in use.columns]
        self.has_read("quarantine", names, ())
        return correctable_csv(list(self._trace.quarantined(use)), names)

    def adjustments(self, uses: Iterable[DatasetUse], find: FindAdjustments) -> "tuple[Adjustment, ...]":
        """The adjustments that the run has read. Which rows they changed tells of the columns that name these."""
        self.policy.require_rows()
        if ADJUSTED_BY in self.columns.classes:
            self.columns.require(ADJUSTED_BY, "see which rows were adjusted by")
        found = [_adjustment_as_seen(each, self.eyes.dataset(use)) for use in uses for each in find(self._trace, use)]
        names = sorted({name for each in found for name in each.values})
        self.has_read("adjustments", names, [row_id for each in found for row_id in each.row_ids])
        return tuple(found)

    def first_read(self, dataset: str, find: FindRows, limit: int = _FEW) -> RowsRead:
        """The first rows of a dataset that the run read, by its id or name, without columns that the role may not see.

        They are found by `find`, since what finds them also explains, which is loaded only when it is needed.
        """
        self.policy.require_rows()
        [use, *_] = self._read(dataset)
        eyes = self.eyes.dataset(use)
        columns = eyes.columns((column.name, column.type) for column in use.columns)
        rows = tuple(eyes.state(cells) for cells in find(self._trace, use, limit))
        self.has_read(f"first rows of {use.dataset_id}", [name for name, _ in columns], len(rows))
        return RowsRead(columns, rows)

    def _read(self, dataset: str | None) -> list[DatasetUse]:
        """The datasets that the run read, each once; those with an id or name."""
        uses = list({use.key: use for use in self._trace.plan.datasets_read}.values())
        chosen = [use for use in uses if dataset is None or dataset in {use.dataset_id, use.name, use.key}]
        if not chosen:
            names = [use.dataset_id for use in uses]
            hint = did_you_mean(dataset or "", names) or f"it read {', '.join(names)}"
            raise UserError(INCOMPLETE_TRACE.anywhere(problem=f'the run read no dataset "{dataset}"', hint=hint))
        return chosen

    def failing(
        self, check: PlannedCheck, find: FindFailing, limit: int = _MOST_ROWS, after: str | None = None
    ) -> FoundRows:
        """The rows that fail a check, where it looked. That a row fails tells of the columns that the check reads."""
        self.policy.require_rows()
        for column in sorted(check.columns(self.plan.input.table)):
            self.columns.require(column, "see which rows fail a check of")
        if check.join is not None:
            joined = self.eyes.dataset(check.join.dataset)
            for column in sorted(check.joined_columns):
                joined.require(column, "see which rows fail a check of")
        if check.quarantined_by is not None:
            return self.touched(check.quarantined_by, limit, after)
        found = find(self._trace, check, limit, after)
        return self._found(found, f"rows that fail the check {check.name}")

    def verify(self) -> None:
        """Compare every byte of the run's files with what was written; UserError names all that differ."""
        self._trace.verify()

    def close(self) -> None:
        """Close the database, if one was opened. The next question opens it again."""
        self._trace.close()

    def columns_in(self, where: str, at: int) -> list[str]:
        """The columns that a condition on the state after a step names."""
        return self._trace.columns_in(where, at)

    def recorded(self, where: str) -> str:
        """A condition for the access log, which others read: without the values of columns that are not public."""
        return self.columns.recorded(where)

    def _where(self, where: str | None, **more: object) -> str:
        return _asked(where=None if where is None else self.recorded(where), **more)

    def _found(self, found: FoundRows, asked: str) -> FoundRows:
        seen = self._seen(found)
        self.has_read(asked, _names(seen.columns), [row.row_id for row in seen.rows])
        return seen

    def _seen(self, found: FoundRows) -> FoundRows:
        rows = tuple(FoundRow(row.row_id, self.columns.state(row.state)) for row in found.rows)
        return replace(found, columns=self.columns.columns(found.columns), rows=rows)

    def _entry(self, entry: TraceEntry) -> TraceEntry:
        diff = {
            name: Diff(self.columns.value(name, each.old), self.columns.value(name, each.new))
            for name, each in entry.diff.items()
            if self.columns.sight(name) is not Sight.HIDDEN
        }
        return replace(entry, full_state=self.columns.state(entry.full_state), diff=diff)

    def _record(self, record: StepRecord) -> StepRecord:
        before, after = (None if side is None else self.columns.state(side) for side in (record.before, record.after))
        return replace(record, before=before, after=after)


def _names(columns: Iterable[tuple[str, object]]) -> list[str]:
    return [name for name, _ in columns]


def _asked(**question: object) -> str:
    """The question in words, for the record."""
    return ", ".join(f"{name} {value}" for name, value in question.items() if value is not None) or "all rows"


def _adjustment_as_seen(found: "Adjustment", eyes: ColumnEyes) -> "Adjustment":
    return replace(
        found,
        values=eyes.state(found.values),
        old=eyes.state(found.old),
        reason=eyes.value(REASON, found.reason),
        made_by=eyes.value(MADE_BY, found.made_by),
        approved_by=eyes.value(APPROVED_BY, found.approved_by),
    )


def _as_seen(row: QuarantinedRow, eyes: ColumnEyes) -> QuarantinedRow:
    """A row in quarantine as a role sees it. A whole line is shown to those who see all columns."""

    def text(column: str, value: str | None) -> str | None:
        seen = eyes.value(column, value)
        return None if seen is None else str(seen)

    sees_all = all(eyes.is_clear(name) for name in row.texts)
    return replace(
        row,
        problems=tuple(
            each if each.column is None else replace(each, value=text(each.column, each.value)) for each in row.problems
        ),
        texts={name: text(name, value) for name, value in row.texts.items() if eyes.sight(name) is not Sight.HIDDEN},
        record=row.record if sees_all or row.record is None else NOT_SHOWN,
        values={},
    )
