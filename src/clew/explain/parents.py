"""The source rows of a summary row, derived: those that were visible, selected and in its group."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import nsmallest

from clew import budgets
from clew.deferred import dataclass
from clew.explain.pinned import DatasetRow, dataset_rows
from clew.explain.row_conditions import all_of, compared, equals, is_not_deleted
from clew.explain.tree import Recomputed
from clew.lang.evaluation import Row, evaluator, group_evaluator
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Expression, Value, columns_of, walk
from clew.plan.datasets import DatasetUse
from clew.plan.names import RowName, name_of
from clew.plan.operations import CreatingStep
from clew.plan.steps import PlannedExpression
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues, Source
from clew.trace.run_parts import GroupKey

MOST_RECOMPUTED = 250_000
"""Rows of one group that are held at once to compute an aggregation again."""

_BYTES_PER_PARENT = 1_000
"""About what a row takes that is held with its values."""
_BY_SIZE = frozenset({"SUM", "AVG"})


@dataclass(frozen=True, slots=True)
class Parent:
    """A row of a group."""

    ordinal: int | None
    """None for rows of another dataset."""
    label: str
    seen: Row
    row: DatasetRow | None = None
    """The row of another dataset."""

    @property
    def source(self) -> Source | None:
        """Where a row of another dataset came from."""
        return None if self.row is None else self.row.source


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a parent brought in."""

    parent: Parent
    value: Value
    share: Decimal | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group, looked at for one of its values."""

    count: int
    largest: tuple[Contribution, ...]
    recomputed: Recomputed


Keys = Mapping[GroupKey, Value]
"""The group that a summary row stands for."""


def keys_of_group(trace: RunTrace, row_id: str, state: RowValues) -> Keys:
    """The keys that the group of a summary row had, which may be finer than those that the row was created with."""
    ordinal = trace.row_ids.ordinal(row_id)
    place = None if ordinal is None else trace.run.place(ordinal)
    assert ordinal is not None  # noqa: S101 - the history of the row was read
    assert place is not None  # noqa: S101 - so it has a place
    keys = trace.group_keys(place[0])
    if all(key.column in state for key in keys):
        return {key: state[key.column] for key in keys}
    [(_, cells)] = trace.created(place[0]).values([ordinal], [key.column for key in keys])
    return {key: cells[key.column] for key in keys}


def parents_of(trace: RunTrace, step: CreatingStep, keys: Keys, needed: Expression) -> Iterator[Parent]:
    """The source rows of a summary row, with the columns that an expression needs."""
    if step.made_from is None:
        return _working_parents(trace, step, keys, needed)
    return _source_parents(trace, step.made_from, step.condition, keys)


def _working_parents(trace: RunTrace, step: CreatingStep, keys: Keys, needed: Expression) -> Iterator[Parent]:
    table, before = trace.plan.input.table, trace.run.before(step.seq)
    types = dict(trace.run.columns(before))
    condition = all_of([*in_group(keys), is_not_deleted(table), step.condition.tree if step.condition else None])
    named_by = trace.names.columns(before)
    columns = sorted({column for _, column in columns_of(needed) if column in types} | set(named_by))
    for ordinal, cells in trace.working(before).matching(condition, columns, trace.see):
        label = trace.names.name(ordinal, cells)
        yield Parent(ordinal, label or RowName(trace.row_ids.row_id(ordinal)), trace.see(ordinal, cells))


def _source_parents(
    trace: RunTrace, source: DatasetUse, chosen: PlannedExpression | None, keys: Keys
) -> Iterator[Parent]:
    condition = all_of([*in_group(keys), chosen.tree if chosen else None])
    names = source.names
    for row in dataset_rows(trace, source, condition, source.table):
        label = name_of(row.cells, names) or RowName(f"row {row.ordinal}")
        yield Parent(None, label, Row({source.table: row.cells}, trace.today), row)


def in_group(keys: Keys) -> list[Expression]:
    """The conditions that make a row one of a group."""
    return [equals(key.value, value) for key, value in keys.items()]


def look_at(parents: Iterable[Parent], expression: Expression, stored: Value, top: int | None) -> Group:
    """Count parents, compute a value of their summary again, and find those that brought in the most."""
    held = list[Row]()
    counted = 0

    def counting() -> Iterator[Parent]:
        nonlocal counted
        for parent in parents:
            counted += 1
            if counted <= MOST_RECOMPUTED or top is None:
                budgets.hold(_BYTES_PER_PARENT)
            if counted <= MOST_RECOMPUTED:
                held.append(parent.seen)
            yield parent

    call = contributing_call(expression)
    bring = _bring(call)
    pairs = ((parent, bring(parent.seen)) for parent in counting())
    order = _order(call)
    found = sorted(pairs, key=order) if top is None else nsmallest(top, pairs, key=order)
    recomputed = _recomputed(expression, stored, held, counted).of_many("python", counted, min(counted, len(held)))
    largest = tuple(Contribution(parent, value, share_of(call, value, stored)) for parent, value in found)
    return Group(counted, largest, recomputed)


def _recomputed(expression: Expression, stored: Value, held: Sequence[Row], counted: int) -> Recomputed:
    if counted > MOST_RECOMPUTED:
        return Recomputed("not checked", stored, None, f"the group has more than {MOST_RECOMPUTED:,} rows")
    if not held:
        return Recomputed("differs", stored, None, "no row of this group was found")
    return compared(stored, lambda: group_evaluator(expression)(held))


def contributing_call(expression: Expression) -> Apply | None:
    """The one aggregate call with an argument that a value comes from; None if there are several or none."""
    calls = [
        node
        for node in walk(expression)
        if isinstance(node, Apply) and isinstance(FUNCTIONS[node.function], AggregateFunction)
    ]
    return calls[0] if len(calls) == 1 and calls[0].arguments else None


def _bring(call: Apply | None) -> Callable[[Row], Value]:
    return (lambda _row: None) if call is None else evaluator(call.arguments[0])


def _order(call: Apply | None) -> Callable[[tuple[Parent, Value]], tuple[int, int | float | Decimal]]:
    """What is looked at first: large parts of sums, the least of a minimum, the greatest of a maximum."""
    function = call.function if call is not None else None

    def by_size(pair: tuple[Parent, Value]) -> tuple[int, int | float | Decimal]:
        value = pair[1]
        if not isinstance(value, int | float | Decimal):
            return 1, 0
        if isinstance(value, float) and math.isnan(value):
            return 1, 0
        if function in _BY_SIZE:
            return 0, -value if value > 0 else value
        return 0, value if function == "MIN_AGG" else -value

    return by_size if function in {*_BY_SIZE, "MIN_AGG", "MAX_AGG"} else lambda _pair: (0, 0)


def share_of(call: Apply | None, value: Value, total: Value) -> Decimal | None:
    """The part of a sum that a value is."""
    if call is None or call.function != "SUM" or value is None or not total or isinstance(value, str):
        return None
    return Decimal(str(value)) / Decimal(str(total))
