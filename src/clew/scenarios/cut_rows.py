"""The rows of a run that decide about one row: what was loaded, looked up, appended and summed up for it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.scenarios import CUT_NEEDS_GROUP, CUT_TOO_LARGE
from clew.explain.parents import keys_of_group, parents_of
from clew.explain.pinned import DatasetRow, dataset_rows, joined
from clew.explain.row_conditions import all_of, equals
from clew.explain.window_rows import rows_of_window
from clew.lang.evaluation import evaluator
from clew.lang.typed import Constant, Value, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.datasets import DatasetUse
from clew.plan.operations import ChangingStep, Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase, Join, PlannedExpression
from clew.trace.prefilter import conjuncts
from clew.trace.reader import RunTrace

MOST_ROWS = 200
"""Rows of the input and of appended datasets that a scenario may have."""

_NOTHING = Constant(True, BOOLEAN)

Cells = Mapping[str, Value]


@dataclass(slots=True)
class NeededRows:
    """The rows that decide about some rows of a run."""

    trace: RunTrace
    with_groups: bool
    loaded: dict[int, Cells] = field(default_factory=dict)
    """Rows of the input, by ordinal."""
    others: dict[str, dict[int, Cells]] = field(default_factory=dict)
    """Rows of other datasets, by the key of the dataset and their ordinal."""
    _seen: set[int] = field(default_factory=set)
    _matched: dict[tuple[object, ...], list[DatasetRow]] = field(default_factory=dict)
    """What joins have found, by what they read of a row."""

    def add(self, ordinals: Collection[int]) -> None:
        """Take in rows of the working dataset, and all that decides about them."""
        new = sorted(set(ordinals) - self._seen)
        if not new:
            return
        self._seen |= set(new)
        self._require_few(len(self._seen))
        trace, since = self.trace, dict[int, int]()
        for ordinal in new:
            place = trace.run.place(ordinal)
            assert place is not None  # noqa: S101 - the trace has named the row
            since[ordinal] = 0 if place[0].kind == "input" else place[0].seq
        known = [column.name for column in trace.plan.input.columns]
        loaded = [ordinal for ordinal in new if since[ordinal] == 0]
        for ordinal, cells in self._states(0, loaded).items():
            self.loaded[ordinal] = {name: cells[name] for name in known if name in cells}
        self._add_looked_up(since)
        for ordinal in new:
            if since[ordinal]:
                self._add_created(ordinal, trace.run.step(since[ordinal]))

    def _states(self, at: int, ordinals: Sequence[int]) -> dict[int, dict[str, Value]]:
        """Rows as they were after a step."""
        if not ordinals:
            return {}
        names = [name for name, _ in self.trace.run.columns(at)]
        return dict(self.trace.working(at).values(ordinals, names))

    def _add_created(self, ordinal: int, step: Step) -> None:
        assert isinstance(step, CreatingStepBase)  # noqa: S101 - only these create rows
        row_id = self.trace.row_ids.row_id(ordinal)
        state = self.trace.state(row_id, step.seq).state or {}
        if step.keys is None:
            self._add_source(step, state)
            return
        keys = keys_of_group(self.trace, row_id, state)
        members = list(parents_of(self.trace, step, keys, _NOTHING))
        if not self.with_groups:
            problem = f'the row is a summary of {len(members):,} rows, made in step {step.seq} "{step.name}"'
            raise UserError(CUT_NEEDS_GROUP.anywhere(problem=problem))
        self._require_few(len(self._seen) + len(members))
        for member in members:
            if member.row is not None:
                self._add_other(member.row)
        self.add([member.ordinal for member in members if member.ordinal is not None])

    def _add_source(self, step: CreatingStepBase, state: Cells) -> None:
        """The row that was appended; of several with the same values any will do."""
        use = step.made_from
        assert use is not None  # noqa: S101 - rows of the working dataset are only summed up
        same = [
            equals(each.value.tree, state[each.column])
            for each in step.filled
            if not isinstance(state[each.column], float)
        ]
        condition = all_of([*same, step.condition.tree if step.condition else None])
        for row in dataset_rows(self.trace, use, condition, use.table, limit=1):
            self._add_other(row)

    def _add_looked_up(self, since: Mapping[int, int]) -> None:
        """What steps looked up for rows, and which rows stayed in place of them. `since` says when each began."""
        trace = self.trace
        for step in trace.plan.steps:
            if not isinstance(step, ChangingStepBase):
                continue
            there = [ordinal for ordinal, seq in since.items() if seq < step.seq]
            if step.keeps is not None:
                kept = trace.kept_rows(step.seq)
                self.add({kept[ordinal] for ordinal in there if ordinal in kept})
            if step.window_calls:
                self._add_windows(there, step)
            if step.lookups:
                self._add_matches(there, trace.run.before(step.seq), step.lookups, step.selector)
        for check in trace.plan.checks:
            if check.join is not None:
                there = [ordinal for ordinal, seq in since.items() if seq <= check.at]
                self._add_matches(there, check.at, (check.join,), check.within)

    def _add_windows(self, ordinals: Sequence[int], step: ChangingStep) -> None:
        """The rows of the windows that a step has looked at."""
        for ordinal, cells in self._states(self.trace.run.before(step.seq), ordinals).items():
            for window in step.window_calls:
                self.add(rows_of_window(self.trace, step, window, ordinal, cells))

    def _add_matches(
        self, ordinals: Sequence[int], at: int, joins: Sequence[Join], selector: PlannedExpression | None
    ) -> None:
        trace, table = self.trace, self.trace.plan.input.table
        parts = () if selector is None else tuple(conjuncts(selector.tree))
        own = [evaluator(each) for each in parts if all(owner == table for owner, _ in columns_of(each))]
        read = sorted({name for join in joins for owner, name in columns_of(join.on.tree) if owner == table})
        for ordinal, cells in self._states(at, ordinals).items():
            seen = trace.see(ordinal, cells)
            if cells.get("_deleted") or any(condition(seen) is not True for condition in own):
                continue
            key = (at, *(join.alias for join in joins), *(seen.tables[table][name] for name in read))
            if key not in self._matched:
                _, matches = joined(trace, joins, seen)
                self._matched[key] = [match.row for match in matches.values() if match.row is not None]
            for row in self._matched[key]:
                self._add_other(row)

    def _add_other(self, row: DatasetRow) -> None:
        rows = self.others.setdefault(row.use.key, {})
        known = {column.name for column in row.use.columns}
        rows[row.ordinal] = {name: value for name, value in row.cells.items() if name in known}
        self._require_few(sum(len(each) for each in self.others.values()))

    def rows_of(self, use: DatasetUse) -> Iterator[Cells]:
        """The rows of a dataset, in their order."""
        rows = dict(self.others.get(use.key, {}))
        if use.key == self.trace.plan.input.key:
            rows |= self.loaded
        yield from (rows[ordinal] for ordinal in sorted(rows))

    def _require_few(self, count: int) -> None:
        if count > MOST_ROWS:
            problem = f"the result depends on {count:,} rows or more, and a scenario may have {MOST_ROWS}"
            raise UserError(CUT_TOO_LARGE.anywhere(problem=problem))
