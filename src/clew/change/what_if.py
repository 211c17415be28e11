"""What would be different in a run: the rows that a supposition reaches, and the totals that they move."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from clew.change.comparing import CompareQuestion, totals_at
from clew.change.comparison import Amount, ColumnTotals, DifferingRow
from clew.change.cone import Cone
from clew.change.points import Point, conditions_at, points_of
from clew.change.recomputing import Cells
from clew.change.suppositions import Suppositions
from clew.definitions.privacy import Sight
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.changes import INVALID_COMPARISON
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Value
from clew.lang.types import Kind, Type
from clew.privacy.eyes import ColumnEyes
from clew.trace.reader import RunTrace
from clew.trace.records import Diff, RowValues
from clew.trace.results import Html, html_table, shown

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


def what_if(trace: RunTrace, eyes: ColumnEyes, supposed: Suppositions, question: CompareQuestion) -> WhatIf:
    """What would differ from a run at a point: an output, by default the last, or a step."""
    point, _ = points_of(trace, trace, question.output, question.at)
    types = dict(trace.run.columns(point.seq))
    columns = [name for name in point.columns if name in types and name != "_row_id" and eyes.is_clear(name)]
    if question.sort is not None:
        eyes.require(question.sort, "sort by")
        if question.sort not in columns or types[question.sort].kind not in _NUMBERS:
            hint = did_you_mean(question.sort, [name for name in columns if types[name].kind in _NUMBERS])
            problem = f'rows cannot be sorted by the difference of "{question.sort}"'
            raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint=hint))
    cone = Cone(trace, supposed)
    reached = [
        each
        for each in _reached(trace, point, cone.after(point.seq), list(types))
        if (each.old is None) != (each.new is None)
        or (each.old is not None and each.new is not None and any(_differs(each, name) for name in columns))
    ]
    keys = {name for names in trace.plan.input.names[:1] for name in names}
    numbers = [name for name in columns if types[name].kind in _NUMBERS and name not in keys]
    rows, totals = totals_at(trace, point, numbers)
    ordered = sorted(reached, key=lambda each: _size(each, question.sort)) if question.sort else reached
    last = None if question.limit is None else question.offset + question.limit
    gone = sum(each.new is None for each in reached)
    new = sum(each.old is None for each in reached)
    return WhatIf(
        run_id=trace.run_id,
        point=point,
        supposed=supposed.texts,
        rows_before=rows,
        rows_after=rows - gone + new,
        changed=len(reached) - gone - new,
        gone=gone,
        new=new,
        evaluated=cone.evaluated,
        columns=tuple(_column(name, types[name], totals.get(name), reached) for name in columns),
        rows=tuple(_row(trace, eyes, each, columns) for each in ordered[question.offset : last]),
        has_more=last is not None and len(ordered) > last,
        offset=question.offset,
    )


def _reached(trace: RunTrace, point: Point, rows: Mapping[int, Cells | None], names: Sequence[str]) -> list[_Reached]:
    """Rows of the cone as they are in the run and as they would be, as far as they count at the point."""
    tests = [evaluator(each) for each in conditions_at(trace, point, None)]
    table = trace.plan.input.table

    def counts(cells: Mapping[str, Value]) -> bool:
        if cells["_deleted"] and not point.includes_deleted:
            return False
        return all(test(Row({table: cells}, trace.today)) is True for test in tests)

    stored = dict(trace.working(point.seq).values(sorted(each for each in rows if each >= 0), list(names)))
    found = list[_Reached]()
    for ordinal in sorted(rows, key=lambda each: (each < 0, abs(each))):
        old, new = stored.get(ordinal), rows[ordinal]
        before = old if old is not None and counts({**old, "_row_id": trace.row_ids.row_id(ordinal)}) else None
        found.append(_Reached(ordinal, before, new if new is not None and counts(new) else None))
    return [each for each in found if each.old is not None or each.new is not None]


def _differs(each: _Reached, name: str) -> bool:
    assert each.old is not None and each.new is not None  # noqa: S101, PT018 - asked only then
    return each.old[name] != each.new[name]


def _size(each: _Reached, column: str | None) -> Fraction:
    """The difference of a column, so that the largest comes first."""
    values = [None if cells is None else cells[column or ""] for cells in (each.old, each.new)]
    old, new = (Fraction(value) if isinstance(value, int | float | Decimal) else Fraction(0) for value in values)
    return -abs(new - old)


def _column(name: str, type_: Type, total: Amount | None, reached: Sequence[_Reached]) -> ColumnTotals:
    changed = sum(each.old is not None and each.new is not None and _differs(each, name) for each in reached)
    return ColumnTotals(name, type_, type_, changed, total, None if total is None else _moved(name, total, reached))


def _moved(name: str, total: Amount, reached: Sequence[_Reached]) -> Amount:
    """A total with the differences of the rows that are reached."""
    old, new = ([_number(None if cells is None else cells[name]) for cells in side] for side in _sides(reached))
    if isinstance(total, float):
        return math.fsum([total, *map(float, new), *(-float(each) for each in old)])
    with localcontext(prec=100):
        return total + sum(map(Decimal, new), Decimal(0)) - sum(map(Decimal, old), Decimal(0))


def _sides(reached: Sequence[_Reached]) -> tuple[list[RowValues | None], list[RowValues | None]]:
    return [each.old for each in reached], [each.new for each in reached]


def _number(value: Value) -> int | float | Decimal:
    return value if isinstance(value, int | float | Decimal) else 0


def _row(trace: RunTrace, eyes: ColumnEyes, each: _Reached, columns: Sequence[str]) -> DifferingRow:
    cells = each.old if each.old is not None else each.new
    assert cells is not None  # noqa: S101 - it counts before or after
    name = trace.names.name(each.ordinal if each.ordinal >= 0 else None, cells)
    key = {column: eyes.value(column, value) for column, value in name.cells if eyes.sight(column) is not Sight.HIDDEN}
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
