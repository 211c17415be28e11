"""The rows that calls with OVER looked at for one row, found again in the trace."""

from collections.abc import Iterator

from clew import budgets
from clew.deferred import dataclass
from clew.explain.parents import Contribution, Parent, look_at
from clew.explain.row_conditions import all_of, equals, is_not_deleted
from clew.lang.evaluation import Row, evaluator
from clew.lang.ordering import member_of
from clew.lang.typed import OVER, ColumnValue, Expression, Value, columns_of
from clew.lang.window_values import Frame, Member, Partition
from clew.lang.windowing import WindowCall
from clew.plan.names import RowName
from clew.plan.operations import ChangingStep
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues

_BYTES_PER_ROW = 1_000


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A call with OVER for one row."""

    window: WindowCall
    value: Value
    count: int
    rows: tuple[Contribution, ...]
    """What the rows of the frame brought in: the largest first, or all of them in order."""

    @property
    def order(self) -> str:
        """The order of the rows in words."""
        return ", ".join(f"{name} desc" if descending else name for name, descending in self.window.order)

    @property
    def values_read(self) -> tuple[str, ...]:
        """The columns that the call takes values from; those of its order where it takes none."""
        read = sorted({name for tree in self.window.values for _, name in columns_of(tree)})
        return tuple(read) or tuple(name for name, _ in self.window.order)

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that the call reads of each row."""
        return self.window.read


def looked_at(
    trace: RunTrace, step: ChangingStep, tree: Expression, own: int, before: RowValues, top: int | None
) -> dict[str, LookedAt]:
    """The calls with OVER of an expression for the row with an ordinal, which the step selected."""
    called = {column for table, column in columns_of(tree) if table == OVER}
    return {
        window.column: _looked_at(trace, step, window, own, before, top)
        for window in step.window_calls
        if window.column in called
    }


def seeing(seen: Row, found: dict[str, LookedAt]) -> Row:
    """A row with the values of calls with OVER."""
    return Row({**seen.tables, OVER: {name: each.value for name, each in found.items()}}, seen.today)


def rows_of_window(
    trace: RunTrace, step: ChangingStep, window: WindowCall, own: int, before: RowValues
) -> tuple[int, ...]:
    """All rows that a call may look at for the row with an ordinal; none if the step did not select that row."""
    found = tuple(ordinal for ordinal, _ in _members(trace, step, window, before))
    return found if own in found else ()


def _looked_at(
    trace: RunTrace, step: ChangingStep, window: WindowCall, own: int, before: RowValues, top: int | None
) -> LookedAt:
    partition = Partition.of(window, trace.plan.input.table, _members(trace, step, window, before))
    index = next((index for index, (ordinal, _) in enumerate(partition.members) if ordinal == own), None)
    if index is None:  # the trace is damaged; there is nothing to look at
        return LookedAt(window, None, 0, ())
    frame = partition.frame(index)
    value = frame.value
    return LookedAt(window, value, len(frame.rows), _shown(trace, frame, value, top))


def _members(trace: RunTrace, step: ChangingStep, window: WindowCall, before: RowValues) -> Iterator[Member]:
    """The rows of the partition of a row, with the columns that the call needs."""
    table, at = trace.plan.input.table, trace.run.before(step.seq)
    types = dict(trace.run.columns(at))
    keys = [(name, before[name]) for name in window.keys]
    same = [
        equals(ColumnValue(table, name, types[name]), value)
        for name, value in keys
        if not isinstance(value, float)  # groups compare doubles in a way of their own
    ]
    condition = all_of([*same, is_not_deleted(table), step.selector.tree if step.selector else None])
    read = {name for tree in window.values for _, name in columns_of(tree) if name in types}
    columns = sorted({*read, *window.deciding, *trace.names.columns(at)})
    for ordinal, cells in trace.working(at).matching(condition, columns, trace.see):
        if all(member_of(cells[name]) == member_of(value) for name, value in keys):
            budgets.hold(_BYTES_PER_ROW)
            yield ordinal, trace.see(ordinal, cells)


def _shown(trace: RunTrace, frame: Frame, value: Value, top: int | None) -> tuple[Contribution, ...]:
    call = frame.window.call
    parents = [_parent(trace, ordinal, row) for ordinal, row in frame.rows]
    if call is not None and top is not None:
        return look_at(parents, call, value, top).largest
    bring = evaluator(frame.window.values[0]) if frame.window.values else lambda _row: None
    some = parents if top is None else parents[-top:]
    return tuple(Contribution(parent, bring(parent.seen), None) for parent in some)


def _parent(trace: RunTrace, ordinal: int, row: Row) -> Parent:
    cells = row.tables[trace.plan.input.table]
    return Parent(ordinal, trace.names.name(ordinal, cells) or RowName(trace.row_ids.row_id(ordinal)), row)
