"""What would be different in a run: the rows that a supposition reaches, and the totals that they move."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

from clew.change.alternative import Alternative, alternative_of
from clew.change.comparing import CompareQuestion, totals_at
from clew.change.comparison import Amount, ColumnTotals, DifferingRow
from clew.change.cone import Cone
from clew.change.points import Point, conditions_at, points_of
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
from clew.trace.records import Diff, RowValues
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


@dataclass(frozen=True, slots=True)
class _Reached:
    ordinal: int
    old: RowValues | None
    """None if the row does not count at the point."""
    new: Cells | None


@dataclass(frozen=True, slots=True)
class SupposedPoint:
    """The same point of a run and of what is supposed in its place."""

    old: Point
    new: Point
    types: Mapping[str, Type]
    """The columns of the supposed rows."""


def what_if(trace: RunTrace, eyes: Sequence[ColumnEyes], supposed: Suppositions, question: CompareQuestion) -> WhatIf:
    """What would differ from a run at a point: an output, by default the last, or a step.

    `eyes` are those of the caller, for the run and for whatever plan is supposed in place of its own.
    """
    for each in eyes:
        each.require_condition(question.where)
    other = alternative_of(trace, supposed.plan)
    point, _ = points_of(trace, trace, question.output, question.at)
    cone = Cone(trace, supposed)
    cone.load()
    until = [number for number, each in enumerate(other.entries) if _seq_of_run(each) == point.seq]
    last = until[0] if point.output is not None else _last_until(other.entries, point.seq)
    for entry in other.entries[: last + 1]:
        cone.take(entry)
    return answer_at(cone, supposed_point(trace, other, point, last), eyes, question)


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
    trace, point = cone.trace, at.old
    old_types = dict(trace.run.columns(point.seq))
    types = {**old_types, **at.types}
    columns = [
        name
        for name in dict.fromkeys([*point.columns, *at.new.columns])
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
    _reach_others(cone, at)
    reached = [
        each
        for each in _reached(trace, at, cone.rows, list(old_types), question.where)
        if (each.old is None) != (each.new is None)
        or (each.old is not None and each.new is not None and any(_differs(each, name) for name in columns))
    ]
    keys = {name for names in trace.plan.input.names[:1] for name in names}
    summed = [name for name in numbers if name not in keys and name in old_types and name in point.columns]
    rows, totals = totals_at(trace, point, summed, question.where)
    ordered = sorted(reached, key=lambda each: _size(each, question.sort)) if question.sort else reached
    last = None if question.limit is None else question.offset + question.limit
    gone = sum(each.new is None for each in reached)
    new = sum(each.old is None for each in reached)
    return WhatIf(
        run_id=trace.run_id,
        point=point,
        supposed=cone.supposed.texts,
        rows_before=rows,
        rows_after=rows - gone + new,
        changed=len(reached) - gone - new,
        gone=gone,
        new=new,
        evaluated=cone.evaluated,
        columns=tuple(_column(name, old_types, at, totals.get(name), reached) for name in columns),
        rows=tuple(_row(trace, eyes, each, columns) for each in ordered[question.offset : last]),
        has_more=last is not None and len(ordered) > last,
        offset=question.offset,
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
) -> list[_Reached]:
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
    found = list[_Reached]()
    for ordinal in sorted(rows, key=lambda each: (each < 0, abs(each))):
        old, new = stored.get(ordinal), rows[ordinal]
        before = old if old is not None and counts({**old, "_row_id": trace.row_ids.row_id(ordinal)}, 0) else None
        found.append(_Reached(ordinal, before, new if new is not None and counts(new, 1) else None))
    return [each for each in found if each.old is not None or each.new is not None]


def _differs(each: _Reached, name: str) -> bool:
    assert each.old is not None and each.new is not None  # noqa: S101, PT018 - asked only then
    return each.old.get(name) != each.new.get(name)


def _size(each: _Reached, column: str | None) -> Fraction:
    """The difference of a column, so that the largest comes first."""
    values = [None if cells is None else cells.get(column or "") for cells in (each.old, each.new)]
    old, new = (Fraction(value) if isinstance(value, int | float | Decimal) else Fraction(0) for value in values)
    return -abs(new - old)


def _column(
    name: str, old: Mapping[str, Type], at: SupposedPoint, total: Amount | None, reached: Sequence[_Reached]
) -> ColumnTotals:
    """A column; its supposed total is unknown if it would not be there, or would not be a number."""
    changed = sum(each.old is not None and each.new is not None and _differs(each, name) for each in reached)
    types = old.get(name) or at.types[name], at.types.get(name) or old[name]
    is_there = name in at.new.columns and types[1].kind in _NUMBERS
    moved = None if total is None or not is_there else _moved(name, total, reached, types[1])
    return ColumnTotals(name, *types, changed, total, moved)


def _moved(name: str, total: Amount, reached: Sequence[_Reached], type_: Type) -> Amount:
    """A total with the differences of the rows that are reached."""
    old, new = ([_number(None if cells is None else cells.get(name)) for cells in side] for side in _sides(reached))
    if isinstance(total, float) or type_.kind is Kind.DOUBLE:
        return math.fsum([float(total), *map(float, new), *(-float(each) for each in old)])
    with localcontext(prec=100):
        return total + sum(map(Decimal, new), Decimal(0)) - sum(map(Decimal, old), Decimal(0))


def _sides(reached: Sequence[_Reached]) -> tuple[list[RowValues | None], list[RowValues | None]]:
    return [each.old for each in reached], [each.new for each in reached]


def _number(value: Value) -> int | float | Decimal:
    return value if isinstance(value, int | float | Decimal) else 0


def _row(trace: RunTrace, eyes: Sequence[ColumnEyes], each: _Reached, columns: Sequence[str]) -> DifferingRow:
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
            if each.old is None or each.new is None or _differs(each, column)
        },
    )
