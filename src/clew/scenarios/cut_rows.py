"""The rows of a run that decide about one row: what was loaded, looked up, appended and summed up for it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.scenarios import CUT_NEEDS_GROUP, CUT_TOO_LARGE
from clew.explain.parents import keys_of_group, parents_of
from clew.explain.pinned import DatasetRow, dataset_rows, joined
from clew.explain.row_conditions import all_of, equals
from clew.lang.evaluation import evaluator
from clew.lang.typed import Constant, Value, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.datasets import DatasetUse
from clew.plan.operations import Step
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

    def add(self, ordinal: int) -> None:
        """Take in a row of the working dataset, and all that decides about it."""
        if ordinal in self._seen:
            return
        self._seen.add(ordinal)
        self._require_few(len(self._seen))
        trace = self.trace
        place = trace.run.place(ordinal)
        assert place is not None  # noqa: S101 - the trace has named the row
        part = place[0]
        if part.kind == "input":
            names = [name for name, _ in trace.run.columns(0)]
            [(_, cells)] = trace.working(0).values([ordinal], names)
            known = {column.name for column in trace.plan.input.columns}
            self.loaded[ordinal] = {name: value for name, value in cells.items() if name in known}
        else:
            self._add_created(ordinal, trace.run.step(part.seq))
        self._add_looked_up(ordinal, 0 if part.kind == "input" else part.seq)

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
            elif member.ordinal is not None:
                self.add(member.ordinal)

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

    def _add_looked_up(self, ordinal: int, since: int) -> None:
        trace = self.trace
        for step in trace.plan.steps:
            if step.seq <= since or not isinstance(step, ChangingStepBase):
                continue
            if step.keeps is not None:
                kept = trace.kept_rows(step.seq).get(ordinal)
                if kept is not None:
                    self.add(kept)
            if step.lookups:
                self._add_joined(ordinal, step)
        for check in trace.plan.checks:
            if check.join is not None and check.at >= since:
                self._add_matches(ordinal, check.at, [check.join])

    def _add_joined(self, ordinal: int, step: ChangingStepBase) -> None:
        before = self.trace.run.before(step.seq)
        self._add_matches(ordinal, before, step.lookups, step.selector)

    def _add_matches(
        self, ordinal: int, at: int, joins: Iterable[Join], selector: PlannedExpression | None = None
    ) -> None:
        trace = self.trace
        found = trace.working(at).values([ordinal], [name for name, _ in trace.run.columns(at)])
        if not found or found[0][1].get("_deleted"):
            return
        seen = trace.see(ordinal, found[0][1])
        table = trace.plan.input.table
        for condition in () if selector is None else conjuncts(selector.tree):
            if all(owner == table for owner, _ in columns_of(condition)) and evaluator(condition)(seen) is not True:
                return
        _, matches = joined(trace, joins, seen)
        for match in matches.values():
            if match.row is not None:
                self._add_other(match.row)

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
