"""What would be different in a run: the rows that a supposition reaches, and the totals that they move."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

from clew.change.alternative import Alternative, alternative_of
from clew.change.bulk_answer import differences_at_once
from clew.change.comparing import CompareQuestion, totals_at
from clew.change.comparison import Amount, ColumnTotals, DifferingRow
from clew.change.cone import Cone, TooManyRows
from clew.change.points import Point, conditions_at, points_of
from clew.change.reached_rows import Differences, DifferencesAsked, ReachedRow, SupposedPoint
from clew.change.recomputing import Cells
from clew.change.step_edits import StepEdit
from clew.change.suppositions import Suppositions
from clew.deferred import dataclass
from clew.definitions.privacy import Sight
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.changes import INVALID_COMPARISON
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Apply, ColumnValue, Constant, Value
from clew.lang.types import BOOLEAN, Kind, Type
from clew.plan.operations import OutputStep, Step
from clew.privacy.eyes import ColumnEyes
from clew.trace.reader import RunTrace
from clew.trace.records import Diff
from clew.trace.results import Html, html_table, shown
from clew.trace.run_parts import STATE_COLUMNS

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would differ from the run. "only_in_a" are rows that would go, "only_in_b" rows that would come."""

    run_id: str
    point: Point
    supposed: tuple[str, ...]
    rows_before: int
    rows_after: int
    changed: int
    gone: int
    new: int
    evaluated: int
    """How many rows were evaluated again, each step counted."""
    columns: tuple[ColumnTotals, ...]
    rows: tuple[DifferingRow, ...]
    has_more: bool
    offset: int = 0

    @property
    def next_offset(self) -> int | None:
        """Where the next page starts."""
        return self.offset + len(self.rows) if self.has_more else None

    def to_json(self) -> dict[str, object]:
        """The form of `clew what-if --json`."""
        return {
            "run_id": self.run_id,
            "at": self.point.to_json(),
            "supposed": list(self.supposed),
            "rows_before": self.rows_before,
            "rows_after": self.rows_after,
            "changed": self.changed,
            "gone": self.gone,
            "new": self.new,
            "evaluated": self.evaluated,
            "columns": [column.to_json() for column in self.columns],
            "rows": [row.to_json() for row in self.rows],
            "has_more": self.has_more,
            "next_offset": self.next_offset,
        }

    def _repr_html_(self) -> str:
        totals = [
            [each.name, shown(each.total_a), shown(each.total_b), shown(each.difference)]
            for each in self.columns
            if each.has_totals and each.difference
        ]
        caption = (
            f"what if {'; '.join(self.supposed)}: {self.changed:,} rows changed, {self.gone:,} gone, {self.new:,} new"
        )
        return Html(html_table(caption, ["total of", "now", "then", "difference"], totals))


MOST_SINGLE = 2_000
"""Where more rows are looked at, they are evaluated all at once, as far as that is possible."""


def what_if(trace: RunTrace, eyes: Sequence[ColumnEyes], supposed: Suppositions, question: CompareQuestion) -> WhatIf:
    """What would differ from a run at a point: an output, by default the last, or a step.

    `eyes` are those of the caller, for the run and for whatever plan is supposed in place of its own.
    """
    for each in eyes:
        each.require_condition(question.where)
    other = alternative_of(trace, supposed.plan)
    point, _ = points_of(trace, trace, question.output, question.at)
    until = [number for number, each in enumerate(other.entries) if _seq_of_run(each) == point.seq]
    last = until[0] if point.output is not None else _last_until(other.entries, point.seq)
    entries, at = other.entries[: last + 1], supposed_point(trace, other, point, last)
    try:
        return answer_at(_evaluated(Cone(trace, supposed, most=MOST_SINGLE), entries), at, eyes, question)
    except TooManyRows:
        found = answer_at_once(trace, supposed, entries, at, eyes, question)
    return found or answer_at(_evaluated(Cone(trace, supposed), entries), at, eyes, question)


def answer_at_once(
    trace: RunTrace,
    supposed: Suppositions,
    entries: Sequence[Step | StepEdit],
    at: SupposedPoint,
    eyes: Sequence[ColumnEyes],
    question: CompareQuestion,
) -> WhatIf | None:
    """What differs after some steps, evaluated for all rows at once; None where that cannot be done."""
    asked = _asked(trace, at, eyes, question)
    found = differences_at_once(trace, supposed, entries, asked)
    return None if found is None else _told(trace, supposed, at, eyes, asked, found)


def _evaluated(cone: Cone, entries: Sequence[Step | StepEdit]) -> Cone:
    cone.load()
    for entry in entries:
        cone.take(entry)
    return cone


def _seq_of_run(entry: Step | StepEdit) -> int | None:
    step = entry.old if isinstance(entry, StepEdit) else entry
    return None if step is None else step.seq


def _last_until(entries: Sequence[Step | StepEdit], seq: int) -> int:
    """The place of the last entry that a step of the run stands for, up to a step; -1 for loading."""
    places = [n for n, each in enumerate(entries) if (own := _seq_of_run(each)) is not None and own <= seq]
    return max(places, default=-1)


def supposed_point(trace: RunTrace, other: Alternative, point: Point, last: int) -> SupposedPoint:
    """A point of the run in the supposed plan, whose steps are known to be there."""
    done = [each.new if isinstance(each, StepEdit) else each for each in other.entries[: last + 1]]
    seqs = [step.seq for step in done if step is not None]
    here = other.plan.columns_after(max(seqs, default=0)) if seqs else trace.plan.columns_after(0)
    types = {column.name: column.type for column in here} | dict(STATE_COLUMNS)
    written = done[-1] if done else None
    if point.output is not None and isinstance(written, OutputStep):
        return SupposedPoint(point, replace(point, columns=written.columns, output=written), types)
    return SupposedPoint(point, replace(point, columns=tuple(name for name in types if name != "_deleted")), types)


def answer_at(cone: Cone, at: SupposedPoint, eyes: Sequence[ColumnEyes], question: CompareQuestion) -> WhatIf:
    """What differs from the run at the point that a cone has come to."""
    asked = _asked(cone.trace, at, eyes, question)
    return _told(cone.trace, cone.supposed, at, eyes, asked, _differences(cone, asked))


def _asked(
    trace: RunTrace, at: SupposedPoint, eyes: Sequence[ColumnEyes], question: CompareQuestion
) -> DifferencesAsked:
    """What is to be told about the rows that differ. Raises UserError if the question is wrong."""
    old_types = dict(trace.run.columns(at.old.seq))
    types = {**old_types, **at.types}
    columns = [
        name
        for name in dict.fromkeys([*at.old.columns, *at.new.columns])
        if name in types and name != "_row_id" and all(each.is_clear(name) for each in eyes)
    ]
    numbers = [name for name in columns if types[name].kind in _NUMBERS]
    if question.sort is not None:
        for each in eyes:
            each.require(question.sort, "sort by")
        if question.sort not in numbers:
            hint = did_you_mean(question.sort, numbers)
            problem = f'rows cannot be sorted by the difference of "{question.sort}"'
            raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint=hint))
    keys = {name for names in trace.plan.input.names[:1] for name in names}
    summed = [name for name in numbers if name not in keys and name in old_types and name in at.old.columns]
    return DifferencesAsked(at, tuple(columns), tuple(summed), question)


def _told(
    trace: RunTrace,
    supposed: Suppositions,
    at: SupposedPoint,
    eyes: Sequence[ColumnEyes],
    asked: DifferencesAsked,
    found: Differences,
) -> WhatIf:
    """What was found, beside the totals of the run."""
    rows, totals = totals_at(trace, at.old, asked.summed, asked.question.where)
    old_types = dict(trace.run.columns(at.old.seq))
    return WhatIf(
        run_id=trace.run_id,
        point=at.old,
        supposed=supposed.texts,
        rows_before=rows,
        rows_after=rows - found.gone + found.new,
        changed=found.changed,
        gone=found.gone,
        new=found.new,
        evaluated=found.evaluated,
        columns=tuple(_column(name, old_types, at, totals.get(name), found) for name in asked.columns),
        rows=tuple(_row(trace, eyes, each, asked.columns) for each in found.rows),
        has_more=found.has_more,
        offset=asked.question.offset,
    )


def _differences(cone: Cone, asked: DifferencesAsked) -> Differences:
    """The rows of a cone that differ."""
    at, question = asked.at, asked.question
    _reach_others(cone, at)
    names = [name for name, _ in cone.trace.run.columns(at.old.seq)]
    reached = [
        each
        for each in _reached(cone.trace, at, cone.rows, names, question.where)
        if not each.is_on_both_sides or any(each.differs(name) for name in asked.columns)
    ]
    ordered = sorted(reached, key=lambda each: _size(each, question.sort)) if question.sort else reached
    last = None if question.limit is None else question.offset + question.limit
    both = [each for each in reached if each.is_on_both_sides]
    types = {**dict(cone.trace.run.columns(at.old.seq)), **at.types}
    return Differences(
        changed=len(both),
        gone=sum(each.new is None for each in reached),
        new=sum(each.old is None for each in reached),
        evaluated=cone.evaluated,
        by_column={name: sum(each.differs(name) for each in both) for name in asked.columns},
        moved={name: _moved(name, reached, types[name]) for name in asked.summed},
        rows=tuple(ordered[question.offset : last]),
        has_more=last is not None and len(ordered) > last,
    )


def _reach_others(cone: Cone, at: SupposedPoint) -> None:
    """Take in the rows that an output would leave out, or take, because it has another selector."""
    old, new = at.old.output, at.new.output
    if old is None or new is None:
        return
    trees = [each.selector.tree if each.selector else None for each in (old, new)]
    if trees[0] != trees[1]:
        chosen = [
            Apply("COALESCE", (each or Constant(True, BOOLEAN), Constant(False, BOOLEAN)), BOOLEAN) for each in trees
        ]
        cone.reach(Apply("<>", tuple(chosen), BOOLEAN), deleted=old.include_deleted or new.include_deleted)
    if old.include_deleted != new.include_deleted:
        cone.reach(ColumnValue(cone.trace.plan.input.table, "_deleted", BOOLEAN), deleted=True)


def _reached(
    trace: RunTrace, at: SupposedPoint, rows: Mapping[int, Cells | None], names: Sequence[str], where: str | None
) -> list[ReachedRow]:
    """Rows of the cone as they are in the run and as they would be, as far as they count at the point."""
    table = trace.plan.input.table
    sides = [
        (point.includes_deleted, [evaluator(each) for each in conditions_at(trace, point, where)])
        for point in (at.old, at.new)
    ]

    def counts(cells: Mapping[str, Value], side: int) -> bool:
        includes_deleted, tests = sides[side]
        if cells["_deleted"] and not includes_deleted:
            return False
        return all(test(Row({table: cells}, trace.today)) is True for test in tests)

    stored = dict(trace.working(at.old.seq).values(sorted(each for each in rows if each >= 0), list(names)))
    found = list[ReachedRow]()
    for ordinal in sorted(rows, key=lambda each: (each < 0, abs(each))):
        old, new = stored.get(ordinal), rows[ordinal]
        before = old if old is not None and counts({**old, "_row_id": trace.row_ids.row_id(ordinal)}, 0) else None
        found.append(ReachedRow(ordinal, before, new if new is not None and counts(new, 1) else None))
    return [each for each in found if each.old is not None or each.new is not None]


def _size(each: ReachedRow, column: str | None) -> Fraction:
    """The difference of a column, so that the largest comes first."""
    values = [None if cells is None else cells.get(column or "") for cells in (each.old, each.new)]
    old, new = (_fraction(value) for value in values)
    return -abs(new - old)


def _fraction(value: Value) -> Fraction:
    """A number; one that is none, such as a NaN, is larger than any other."""
    if isinstance(value, float) and not math.isfinite(value):
        return _ENDLESS
    return Fraction(value) if isinstance(value, int | float | Decimal) else Fraction(0)


_ENDLESS = Fraction(10) ** 400


def _column(
    name: str, old: Mapping[str, Type], at: SupposedPoint, total: Amount | None, found: Differences
) -> ColumnTotals:
    """A column; its supposed total is unknown if it would not be there, or would not be a number."""
    types = old.get(name) or at.types[name], at.types.get(name) or old[name]
    is_there = name in at.new.columns and types[1].kind in _NUMBERS
    moved = None if total is None or not is_there else _plus(total, found.moved[name])
    return ColumnTotals(name, *types, found.by_column.get(name, 0), total, moved)


def _plus(total: Amount, moved: Amount) -> Amount:
    if isinstance(total, float) or isinstance(moved, float):
        return float(total) + float(moved)
    with localcontext(prec=100):
        return total + moved


def _moved(name: str, reached: Sequence[ReachedRow], type_: Type) -> Amount:
    """By how much a total moves with the differences of the rows that are reached."""
    old = [_number(None if each.old is None else each.old.get(name)) for each in reached]
    new = [_number(None if each.new is None else each.new.get(name)) for each in reached]
    if type_.kind is Kind.DOUBLE:
        return math.fsum([*map(float, new), *(-float(each) for each in old)])
    with localcontext(prec=100):
        return sum(map(Decimal, new), Decimal(0)) - sum(map(Decimal, old), Decimal(0))


def _number(value: Value) -> int | float | Decimal:
    return value if isinstance(value, int | float | Decimal) else 0


def _row(trace: RunTrace, eyes: Sequence[ColumnEyes], each: ReachedRow, columns: Sequence[str]) -> DifferingRow:
    cells = each.old if each.old is not None else each.new
    assert cells is not None  # noqa: S101 - it counts before or after
    name = trace.names.name(each.ordinal if each.ordinal >= 0 else None, cells)
    key = {
        column: next((seen.value(column, value) for seen in eyes if not seen.is_clear(column)), value)
        for column, value in name.cells
        if all(seen.sight(column) is not Sight.HIDDEN for seen in eyes)
    }
    old, new = each.old or {}, each.new or {}
    return DifferingRow(
        change="only_in_b" if each.old is None else "only_in_a" if each.new is None else "changed",
        key=key,
        row_a=trace.row_ids.row_id(each.ordinal) if each.ordinal >= 0 else None,
        row_b=None,
        columns={
            column: Diff(old.get(column), new.get(column))
            for column in columns
            if not each.is_on_both_sides or each.differs(column)
        },
    )
