"""Deep verification: every expression that a run evaluated with Spark, evaluated again without it, for every row.

DuckDB evaluates a step for all rows at once (`clew.evidence.at_once`), so that a second engine must agree with the
first. The evaluator of explanations, in Python, decides about rows that differ or are doubtful, checks a sample, and
does what DuckDB cannot do in the same way. There rows are streamed; what is held is one dataset of each join and one
accumulator for each group.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.diagnostics.file_system import is_out_of_reach
from clew.evidence.at_once import changed_at_once, created_at_once, written_at_once
from clew.evidence.folding import GroupFold
from clew.evidence.join_index import JoinIndex
from clew.explain.pinned import dataset_rows
from clew.explain.row_conditions import compared
from clew.lang.evaluation import Evaluator, Row, evaluator
from clew.lang.typed import Expression, Value, columns_of
from clew.lang.window_values import with_windows
from clew.plan.keeping import Keeping, staying
from clew.plan.operations import ChangingStep, CreatingStep, OutputStep, Step
from clew.plan.steps import PlannedExpression
from clew.storage.parts import Part
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues

_MOST_TOLD = 10
"""Of one step; the others are counted."""
_DELETED = "_deleted"


@dataclass(slots=True)
class Reevaluation:
    """What was evaluated again, and what differed."""

    steps: int = 0
    rows: int = 0
    expressions: int = 0
    in_python: int = 0
    """So many of the rows were given to the evaluator, because DuckDB left them to it or as a sample."""
    problems: list[str] = field(default_factory=list)


def reevaluate(trace: RunTrace, written: Mapping[int, int]) -> Reevaluation:
    """Every step that the run has done. `written` says how many rows its outputs had, by step."""
    found = Reevaluation()
    left = {step.seq for _, step in trace.run.traced(0, trace.run.last)} | {part.seq for part in trace.run.created}
    has_ended_early = "not reached" in trace.run.not_done.values()
    for step in trace.run.reached:
        # What a step did together with one that failed was not committed: it counts for nothing.
        was_committed = step.seq in left or step.writes_output or not has_ended_early
        if trace.run.not_done.get(step.seq) is None and was_committed:
            found.steps += 1
            _Step(trace, step, found).check(written)
    return found


@dataclass(slots=True)
class _Step:
    trace: RunTrace
    step: Step
    found: Reevaluation
    differing: int = 0

    def check(self, written: Mapping[int, int]) -> None:
        try:
            if isinstance(self.step, ChangingStep):
                self._changed(self.step)
            elif isinstance(self.step, CreatingStep):
                self._created(self.step)
            else:
                self._written(written.get(self.step.seq))
        except ClewError as error:
            if is_out_of_reach(error):
                raise
            self._differs(str(error))
        if self.differing > _MOST_TOLD:
            self.found.problems.append(f"{self._name}: {self.differing - _MOST_TOLD:,} more values differ")

    @property
    def _name(self) -> str:
        return f'step {self.step.seq} "{self.step.name}"'

    def _differs(self, problem: str) -> None:
        self.differing += 1
        if self.differing <= _MOST_TOLD:
            self.found.problems.append(f"{self._name}: {problem}")

    def _compare(self, what: str, stored: Value, compute: Callable[[], Value]) -> None:
        self.found.expressions += 1
        again = compared(stored, compute)
        if again.outcome != "equal":
            why = f" ({again.reason})" if again.reason else ""
            self._differs(f"{what} is {stored}, but evaluates to {again.recomputed}{why}")

    # Updates and deletions

    def _changed(self, step: ChangingStep) -> None:
        """Selected rows have the values that the assignments give them; the others are as they were."""
        judged = changed_at_once(self.trace, step)
        if judged is None:
            self._changed_rows(step, None)
            return
        self.found.rows += judged.rows
        self.found.expressions += judged.selected * len(step.assigned)
        self.found.expressions += judged.live if step.selector is not None else 0
        counted = (self.found.rows, self.found.expressions)
        if judged.left:
            self._changed_rows(step, judged.left)
        self.found.rows, self.found.expressions = counted

    def _changed_rows(self, step: ChangingStep, ordinals: Sequence[int] | None) -> None:
        """Evaluate some rows, or all, in Python."""
        trace, table = self.trace, self.trace.plan.input.table
        before, before_seq = dict(trace.run.columns(trace.run.before(step.seq))), trace.run.before(step.seq)
        assigned = [each.column for each in step.assigned]
        trees = [each.value.tree for each in step.assigned] + [join.on.tree for join in step.lookups]
        trees += [step.selector.tree] if step.selector else []
        read = {name for tree in trees for owner, name in columns_of(tree) if owner == table and name in before}
        needed = sorted(read | {name for name in assigned if name in before} | {_DELETED})
        joins = [JoinIndex.of(trace, join) for join in step.lookups]
        select = _condition(step.selector)
        values = [(each.column, evaluator(each.value.tree)) for each in step.assigned]
        if step.keeps is not None:
            self._kept(step, step.keeps, select)
            return
        widen = self._windows(step, select)
        old = _rows(trace, before_seq, needed, ordinals)
        new = _rows(trace, step.seq, [*assigned, _DELETED], ordinals)
        for (ordinal, was), (number, now) in zip_longest(old, new, fillvalue=(-1, dict[str, Value]())):
            if ordinal != number:
                lost = number if ordinal < 0 else ordinal if number < 0 else min(ordinal, number)
                problem = "was not there before" if lost == number else "is not there any more"
                self._differs(f"row {trace.row_ids.row_id(lost)} {problem}")
                return
            self.found.rows += 1
            self.found.in_python += 1
            self._row(
                step, ordinal, was, now, lambda number, seen: self._joined(joins, widen(number, seen)), select, values
            )

    @staticmethod
    def _joined(joins: Sequence[JoinIndex], seen: Row) -> Row:
        for join in joins:
            seen = join.joined(seen)
        return seen

    def _windows(self, step: ChangingStep, select: Evaluator) -> Callable[[int, Row], Row]:
        """What gives a row the values of calls with OVER, from all rows that the step selected."""
        windows = step.window_calls
        read = {name for window in windows for tree in window.values for _, name in columns_of(tree)}
        needed = {*read, *(name for window in windows for name in window.deciding)}
        rows = self._selected(step, select, needed) if windows else ()
        members = ((ordinal, self.trace.see(ordinal, dict(cells))) for ordinal, cells in rows)
        return with_windows(windows, self.trace.plan.input.table, members)

    def _selected(
        self, step: ChangingStep, select: Evaluator, columns: Collection[str]
    ) -> Iterator[tuple[int, RowValues]]:
        """All rows that a step selected, as it found them."""
        trace, before = self.trace, self.trace.run.before(step.seq)
        known = {name for name, _ in trace.run.columns(before)}
        named = {name for _, name in (columns_of(step.selector.tree) if step.selector else ())}
        needed = sorted({name for name in (*named, *columns) if name in known} | {_DELETED})
        for ordinal, cells in trace.working(before).matching(None, needed, trace.see):
            if not cells[_DELETED] and select(trace.see(ordinal, cells)) is True:
                yield ordinal, cells

    def _kept(self, step: ChangingStep, keeping: Keeping, select: Evaluator) -> None:
        """Of the selected rows with the same keys one stays, and every deleted one names it."""
        trace = self.trace
        stays = staying(keeping, self._selected(step, select, keeping.columns))
        stored = trace.kept_rows(step.seq)
        for ordinal, cells in self._selected(step, select, keeping.columns):
            self.found.rows += 1
            self.found.in_python += 1
            self.found.expressions += 1
            again, told = stays(cells), stored.pop(ordinal, None)
            if told != (None if again == ordinal else again):
                problem = "is not deleted" if told is None else f"is deleted for row {trace.row_ids.row_id(told)}"
                right = "stays" if again == ordinal else f"gives way to row {trace.row_ids.row_id(again)}"
                self._differs(f"row {trace.row_ids.row_id(ordinal)} {problem}, but {right}")
        for ordinal in stored:
            self._differs(f"row {trace.row_ids.row_id(ordinal)} is deleted, against the selector")

    def _row(
        self,
        step: ChangingStep,
        ordinal: int,
        was: RowValues,
        now: RowValues,
        see_all: Callable[[int, Row], Row],
        select: Evaluator,
        values: Sequence[tuple[str, Evaluator]],
    ) -> None:
        row_id = self.trace.row_ids.row_id(ordinal)
        if was[_DELETED]:
            if now[_DELETED] is not True or any(now[column] != was.get(column) for column, _ in values):
                self._differs(f"row {row_id} was deleted before, and is changed")
            return
        try:
            seen = see_all(ordinal, self.trace.see(ordinal, dict(was)))
            is_selected = select(seen) is True
        except ClewError as error:
            if is_out_of_reach(error):
                raise
            self._differs(f"row {row_id}: {error}")
            return
        self.found.expressions += step.selector is not None
        if step.traced_as == "delete":
            if now[_DELETED] is not is_selected:
                self._differs(f"row {row_id} is {'not ' if is_selected else ''}deleted, against the selector")
            return
        for column, value in values:
            if is_selected:
                self._compare(f"{column} of row {row_id}", now[column], lambda value=value: value(seen))  # type: ignore[misc]
            elif now[column] != was.get(column):
                self._differs(f"{column} of row {row_id} is changed, though the selector leaves the row out")

    # Rows that a step created

    def _created(self, step: CreatingStep) -> None:
        """The rows of a step are those that its groups, or the rows of its source, give."""
        parts = [part for part in self.trace.run.created if part.seq == step.seq]
        if not parts:
            if step.having is None and next(self._sources(step), None) is not None:
                self._differs("it has left no rows, though there are some to make them from")
            return
        agreed = created_at_once(self.trace, step, parts)
        if agreed is not None:
            self.found.rows += agreed.sources
            self.found.expressions += len(step.filled) * (agreed.sources if step.keys is None else agreed.created)
            self.found.in_python += agreed.sampled
        elif step.keys is None:
            self._appended(step, parts)
        else:
            self._summed_up(step, parts)

    def _sources(self, step: CreatingStep) -> Iterator[Row]:
        """The rows that a step took, as its expressions saw them."""
        trace = self.trace
        if step.made_from is not None:
            condition = step.condition.tree if step.condition else None
            for row in dataset_rows(trace, step.made_from, condition, step.made_from.table):
                yield Row({step.made_from.table: row.cells}, trace.today)
            return
        before = trace.run.before(step.seq)
        names = [name for name, _ in trace.run.columns(before)]
        select = _condition(step.condition)
        for ordinal, cells in trace.working(before).matching(None, names, trace.see):
            seen = trace.see(ordinal, cells)
            if not cells[_DELETED] and select(seen) is True:
                yield seen

    def _appended(self, step: CreatingStep, parts: Sequence[Part]) -> None:
        values = [evaluator(each.value.tree) for each in step.filled]
        expected = Counter[tuple[Value, ...]]()
        for seen in self._sources(step):
            self.found.rows += 1
            self.found.in_python += 1
            self.found.expressions += len(values)
            expected[tuple(value(seen) for value in values)] += 1
        columns = [each.column for each in step.filled]
        for _, cells in self._rows_of(parts, columns):
            expected[tuple(cells[name] for name in columns)] -= 1
        for row, count in expected.items():
            if count:
                problem = "is missing" if count > 0 else "does not come from the source"
                self._differs(f"a row with {_shown(columns, row)} {problem}")

    def _summed_up(self, step: CreatingStep, parts: Sequence[Part]) -> None:
        groups = dict[tuple[Value, ...], GroupFold]()
        keys = self.trace.group_keys(parts[0])
        key_values = [evaluator(key.value) for key in keys]
        trees: list[Expression] = [each.value.tree for each in step.filled]
        trees += [step.having.tree] if step.having is not None else []
        for seen in self._sources(step):
            self.found.rows += 1
            self.found.in_python += 1
            key = tuple(value(seen) for value in key_values)
            if key not in groups:
                groups[key] = GroupFold(trees)
            groups[key].add(seen)
        columns = [each.column for each in step.filled]
        for _, cells in self._rows_of(parts, sorted({*columns, *(key.column for key in keys)})):
            key = tuple(cells[each.column] for each in keys)
            group = groups.pop(key, None)
            if group is None:
                self._differs(f"there is no group with {_shown([each.name for each in keys], key)}")
                continue
            if step.having is not None and group.value(len(columns)) is not True:
                self._differs(f"the group with {_shown([each.name for each in keys], key)} is there against having")
            for position, column in enumerate(columns):
                what = f"{column} of the group {_shown([each.name for each in keys], key)}"
                self._compare(what, cells[column], lambda group=group, position=position: group.value(position))  # type: ignore[misc]
        for key, group in groups.items():
            if step.having is not None:
                self.found.expressions += 1
                if group.value(len(columns)) is not True:
                    continue
            self._differs(f"the group with {_shown([each.name for each in keys], key)} is missing")

    def _rows_of(self, parts: Sequence[Part], columns: Sequence[str]) -> Iterator[tuple[int, RowValues]]:
        for part in parts:
            yield from self.trace.created(part).matching(None, columns, self.trace.see)

    # Outputs

    def _written(self, stored: int | None) -> None:
        """As many rows were written as the selector chooses."""
        trace = self.trace
        step = next(each for each in trace.plan.outputs if each.seq == self.step.seq)
        judged = written_at_once(trace, step)
        if judged is None:
            before = self.found.in_python
            chosen = self._chosen(step, None)
            rows = self.found.in_python - before
        else:
            # Where the evaluator sees a row in another way, it is right.
            chosen = judged.selected - len(judged.left_and_selected) + self._chosen(step, judged.left)
            rows = judged.rows
        self.found.rows += rows
        self.found.expressions += rows if step.selector is not None else 0
        if stored is not None and stored != chosen:
            self._differs(f"{stored:,} rows were written, and the selector chooses {chosen:,}")

    def _chosen(self, step: OutputStep, ordinals: Sequence[int] | None) -> int:
        """How many of some rows, or of all, an output chooses."""
        trace = self.trace
        named = columns_of(step.selector.tree) if step.selector else frozenset()
        known = {name for name, _ in trace.run.columns(step.seq)}
        needed = sorted({name for _, name in named if name in known} | {_DELETED})
        select, chosen = _condition(step.selector), 0
        for ordinal, cells in _rows(trace, step.seq, needed, ordinals):
            self.found.in_python += 1
            if step.include_deleted or not cells[_DELETED]:
                chosen += select(trace.see(ordinal, dict(cells))) is True
        return chosen


def _rows(
    trace: RunTrace, at: int, columns: Sequence[str], ordinals: Sequence[int] | None
) -> Iterable[tuple[int, RowValues]]:
    """Some rows after a step, or all, by ordinal."""
    if ordinals is None:
        return trace.working(at).matching(None, columns, trace.see)
    return trace.working(at).values(ordinals, list(dict.fromkeys(columns)))


def _condition(planned: PlannedExpression | None) -> Evaluator:
    return evaluator(planned.tree) if planned is not None else lambda _row: True


def _shown(names: Sequence[str], values: Sequence[Value]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True)) or "everything"
