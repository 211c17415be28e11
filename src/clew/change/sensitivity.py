"""Which rows of reference data a total hangs on most: each is moved a little, and the total is calculated again."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext

from clew.change.comparing import CompareQuestion
from clew.change.lookups import times_looked_up
from clew.change.points import Point, points_of
from clew.change.suppositions import RowSupposition, Suppositions
from clew.change.what_if import what_if
from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.changes import INVALID_COMPARISON
from clew.explain.pinned import dataset_rows
from clew.explain.row_conditions import all_of, equals
from clew.lang.typed import ColumnValue, Constant, Value, columns_of
from clew.lang.types import Kind, Type
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.steps import ChangingStepBase, Join
from clew.privacy.eyes import RunEyes
from clew.trace.json_values import json_value
from clew.trace.reader import RunTrace

MOST_VALUES = 200
"""So many values are moved at most; each is a calculation of its own."""
_EXACT = frozenset({Kind.INTEGER, Kind.DECIMAL})
_STEP = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class ReferenceEffect:
    """What a value of a row of reference data does to a total."""

    dataset: str
    key: Mapping[str, Value]
    column: str
    value: Decimal
    moved_to: Decimal
    difference: Decimal
    """By how much the total moves with it."""
    rows: int
    """How many rows of the output, or after the step, would differ."""

    @property
    def slope(self) -> Decimal:
        """By how much the total moves for each unit of the value."""
        with localcontext(prec=28):
            return self.difference / (self.moved_to - self.value)

    def to_json(self) -> dict[str, object]:
        """The form of `clew what-if --sensitivity --json`."""
        return {
            "dataset": self.dataset,
            "key": {name: json_value(value) for name, value in self.key.items()},
            "column": self.column,
            "value": str(self.value),
            "moved_to": str(self.moved_to),
            "difference": str(self.difference),
            "slope": str(self.slope),
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The values that a total rests on, those with the largest effect first."""

    run_id: str
    point: Point
    column: str
    effects: tuple[ReferenceEffect, ...]
    tried: int
    not_tried: int
    """Values that were left out because there are too many: those that the fewest rows have looked up."""
    not_looked_up: int = 0
    """Values that no row that the total rests on has looked up. They were not tried either."""
    where: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `clew what-if --sensitivity --json`."""
        return {
            "run_id": self.run_id,
            "at": self.point.to_json(),
            "column": self.column,
            "effects": [each.to_json() for each in self.effects],
            "tried": self.tried,
            "not_tried": self.not_tried,
            "not_looked_up": self.not_looked_up,
            "where": self.where,
        }


@dataclass(frozen=True, slots=True)
class _ReferenceValue:
    use: DatasetUse
    cells: Mapping[str, Value]
    column: str
    type: Type
    value: Decimal
    looked_up: int | None
    """By how many rows; None where that cannot be told."""


def sensitivity(
    trace: RunTrace, eyes: RunEyes, column: str, output: int | None, at: int | None, where: str | None = None
) -> Sensitivity:
    """By how much the sum of a column moves if each number that its rows have looked up were one percent larger.

    With a condition, only rows for which it is true are added up.
    """
    point, _ = points_of(trace, trace, output, at)
    types = dict(trace.run.columns(point.seq))
    eyes.working.require(column, "add up")
    eyes.working.require_condition(where)
    numbers = [name for name in point.columns if name in types and types[name].kind in _EXACT]
    if column not in numbers:
        problem = f'"{column}" has no total that could move at step {point.seq}'
        hint = did_you_mean(column, numbers) or "integers and decimals have one"
        raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint=hint))
    values = list(_read(trace, eyes, point, where))
    wanted = sorted((each for each in values if each.looked_up != 0), key=lambda each: -(each.looked_up or 0))
    question = CompareQuestion(output=output, at=at, where=where, limit=1)
    effects = [_effect(trace, eyes, each, column, question) for each in wanted[:MOST_VALUES]]
    found = sorted((each for each in effects if each.difference), key=lambda each: -abs(each.difference))
    return Sensitivity(
        run_id=trace.run_id,
        point=point,
        column=column,
        effects=tuple(found),
        tried=len(effects),
        not_tried=len(wanted) - len(effects),
        not_looked_up=len(values) - len(wanted),
        where=where,
    )


def _read(trace: RunTrace, eyes: RunEyes, point: Point, where: str | None) -> Iterator[_ReferenceValue]:
    """The numbers of joined datasets that expressions up to a point read, and that the caller may see."""
    for use, joins in _joins(trace, point):
        seen = eyes.dataset(use)
        types = {each.name: each.type for each in use.columns if seen.is_clear(each.name)}
        columns = sorted({name for _, _, names in joins for name in names} & types.keys())
        rows = [dict(row.cells) for row in dataset_rows(trace, use, None, use.table)] if columns else []
        times = [(names, times_looked_up(trace, point, where, step, join, rows)) for step, join, names in joins]
        for number, cells in enumerate(rows):
            for name in columns:
                value = cells[name]
                counts = [None if found is None else found[number] for names, found in times if name in names]
                known = [count for count in counts if count is not None]
                looked_up = sum(known) if len(known) == len(counts) else None
                if isinstance(value, int | Decimal):
                    yield _ReferenceValue(use, cells, name, types[name], Decimal(value), looked_up)


_JoinsOfUse = tuple[DatasetUse, list[tuple[ChangingStepBase, Join, set[str]]]]


def _joins(trace: RunTrace, point: Point) -> list[_JoinsOfUse]:
    """Where datasets are joined up to a point, and the numbers of them that are read there."""
    found = dict[str, _JoinsOfUse]()
    for step in trace.plan.steps:
        if step.seq > point.seq or not isinstance(step, ChangingStepBase):
            continue
        trees = [*(each.value.tree for each in step.assigned), *([step.selector.tree] if step.selector else ())]
        read = {pair for tree in trees for pair in columns_of(tree)}
        for join in step.lookups:
            exact = {each.name for each in join.dataset.columns if each.type.kind in _EXACT}
            named = {name for alias, name in read if alias == join.alias} & exact
            if named:
                found.setdefault(join.dataset.key, (join.dataset, []))[1].append((step, join, named))
    return list(found.values())


def _effect(
    trace: RunTrace, eyes: RunEyes, each: _ReferenceValue, column: str, question: CompareQuestion
) -> ReferenceEffect:
    types = {item.name: item.type for item in each.use.columns if item.name not in SYSTEM_COLUMNS}
    same = all_of(
        equals(ColumnValue(each.use.table, name, type_), each.cells[name])
        for name, type_ in types.items()
        if type_.kind is not Kind.DOUBLE
    )
    moved = _moved(each.value, each.type)
    value: Value = int(moved) if each.type.kind is Kind.INTEGER else moved
    rows = RowSupposition("", each.use.dataset_id, same, each.column, Constant(value, each.type))
    supposed = Suppositions((rows,), trace.plan, ())
    found = what_if(trace, (eyes.working,), supposed, question)
    [total] = [item for item in found.columns if item.name == column]
    seen = eyes.dataset(each.use)
    names: Sequence[str] = each.use.names[0] if each.use.names else list(types)
    return ReferenceEffect(
        dataset=each.use.name,
        key={name: seen.value(name, each.cells[name]) for name in names if name in each.cells},
        column=each.column,
        value=each.value,
        moved_to=moved,
        difference=Decimal(total.difference or 0),
        rows=found.changed + found.gone + found.new,
    )


def _moved(value: Decimal, type_: Type) -> Decimal:
    """One percent more, or the smallest step that the type has."""
    scale = type_.scale if type_.kind is Kind.DECIMAL else 0
    unit = Decimal(1).scaleb(-scale)
    with localcontext(prec=60):
        step = (abs(value) * _STEP).quantize(unit, rounding=ROUND_HALF_UP)
        return value + (step or unit)
