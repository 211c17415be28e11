"""Follows a value back: the step that set it, the values that went in, and so on, down to the sources.

Every question leads to an earlier step or to another run, so the tree ends. It is cut where it becomes deeper or larger
than anyone would read; what was cut can be requested separately.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import field, replace
from functools import partial
from typing import Protocol

from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.trace import AMBIGUOUS_ROW, EVIDENCE_TOO_LARGE, ROW_NOT_FOUND
from clew.explain.group_totals import SAMPLE, look_at_once
from clew.explain.kept_rows import kept_row
from clew.explain.parents import (
    Contribution,
    Group,
    Keys,
    Parent,
    contributing_call,
    keys_of_group,
    look_at,
    parents_of,
)
from clew.explain.pinned import DatasetRow, UpstreamRuns, comes_from_a_run, dataset_row, dataset_rows, joined
from clew.explain.row_conditions import all_of, compared, deleted_by, equals
from clew.explain.tree import (
    Appended,
    Cause,
    Contributor,
    CutOff,
    Explanation,
    Input,
    Loaded,
    Parents,
    Recomputed,
    StepRef,
    Summarised,
    Unset,
    Updated,
    WindowRows,
)
from clew.explain.window_rows import LookedAt, looked_at, seeing
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import OVER, ColumnValue, Constant, Expression, Value, walk
from clew.plan.operations import (
    AggregateStep,
    AppendStep,
    ChangingStep,
    CreatingStep,
    DeleteStep,
    OutputStep,
    Step,
    UpdateStep,
)
from clew.plan.steps import PlannedExpression
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues, TraceEntry
from clew.trace.results import FoundRows

_DEPTH = 8
_TOP = 5
_MOST_NODES = 400
_NODES_PER_ROW = 6
"""Of a summary, where many of its rows are asked for."""
_EXAMPLES = 3
_SAMPLE_AGAIN = 20
"""Rows that the evaluator in Python checks where the first rows of a summary were asked for before, and checked."""
_AT_ONCE = 4
MOST_EVIDENCE = 100_000
"""The most values of an explanation that leaves nothing out."""
_EVIDENCE_DEPTH = 60


def explain(
    trace: RunTrace,
    row_id: str,
    column: str,
    at: int | None = None,
    *,
    upstream: UpstreamRuns | None = None,
    top: int | None = _TOP,
    depth: int = _DEPTH,
    every_row: bool = False,
    skip: int = 0,
) -> Explanation:
    """Why a column of a row has its value after a step, the last one where none is given.

    The column may have the name of the working dataset before it, as in expressions.
    `top` is how many of the rows behind a summary are shown; None shows all. `skip` leaves out the first of them, for
    those who have seen them. With `every_row` the evaluator in Python sees all of them, not a sample. UserError if
    there is no such row, column or step.
    """
    seq, name = _asked(trace, column, at)
    budget = _Budget(max(_MOST_NODES, _NODES_PER_ROW * ((top or 0) - skip)))
    explainer = _Explainer(trace, upstream, top, budget, every_row=every_row, skip=skip)
    return explainer.explain(row_id, name, seq, depth)


def explain_completely(
    trace: RunTrace, row_id: str, column: str, at: int | None = None, *, upstream: UpstreamRuns | None = None
) -> Explanation:
    """The same with nothing left out: every row behind a summary, and every value that its expression read.

    UserError EvidenceTooLarge where that would be more than anyone could check.
    """
    seq, name = _asked(trace, column, at)
    explainer = _Explainer(trace, upstream, None, _WholeBudget(MOST_EVIDENCE), every_input=True)
    return explainer.explain(row_id, name, seq, _EVIDENCE_DEPTH)


def _asked(trace: RunTrace, column: str, at: int | None) -> tuple[int, str]:
    """The step that is meant, and the column without the name of the working dataset."""
    seq = trace.run.checked_step(at)
    known = {name for name, _ in trace.run.columns(seq)}
    return seq, column if column in known else column.removeprefix(f"{trace.plan.input.table}.")


class SearchedRows(Protocol):
    """Finds rows by their values and names them: a trace, or what someone may see of one."""

    def search(self, where: str, at: int | None = None, limit: int = ...) -> FoundRows:
        """The rows that match a condition after a step."""
        ...

    def name(self, row_id: str, state: RowValues) -> str:
        """What people call a row."""
        ...


def row_named(trace: SearchedRows, where: str, at: int | None = None) -> str:
    """The id of the one row that a condition names. UserError AmbiguousRow if it names several or none."""
    found = trace.search(where, at, limit=_EXAMPLES)
    if len(found.rows) == 1:
        return found.rows[0].row_id
    if not found.rows:
        hint = "`clew trace RUN --where` shows which rows a condition matches"
        raise UserError(ROW_NOT_FOUND.anywhere(problem=f"no row matches {where}", hint=hint))
    examples = ", ".join(trace.name(row.row_id, row.state) or row.row_id for row in found.rows)
    count = f"more than {len(found.rows)}" if found.has_more else len(found.rows)
    raise UserError(AMBIGUOUS_ROW.anywhere(count=count, examples=examples))


@dataclass(slots=True)
class _Budget:
    """The number of values that a tree may still explain."""

    nodes: int

    def take(self) -> bool:
        self.nodes -= 1
        return self.nodes >= 0


@dataclass(slots=True)
class _WholeBudget(_Budget):
    """The same for a tree from which nothing may be missing."""

    def take(self) -> bool:
        self.nodes -= 1
        if self.nodes < 0:
            raise UserError(EVIDENCE_TOO_LARGE.anywhere(problem=f"it has more than {MOST_EVIDENCE:,} values"))
        return True


@dataclass(slots=True)
class _Explainer:
    trace: RunTrace
    upstream: UpstreamRuns | None
    top: int | None
    budget: _Budget
    every_input: bool = False
    """Whether rows behind a summary come with all values that the expression read, or those that tell most."""
    every_row: bool = False
    """Whether the evaluator in Python sees every row behind a summary, however many there are."""
    skip: int = 0
    """How many rows are left out of the first summary that is met, which is the one that was asked about."""
    _histories: dict[str, tuple[TraceEntry, ...]] = field(default_factory=dict)

    def explain(self, row_id: str, column: str, at: int, depth: int) -> Explanation:
        entries = self._entries(row_id, at)
        columns = [name for name, _ in self.trace.run.columns(at)]
        if column == "_row_id":
            cause: Cause = Unset("it is derived from the run and the position of the row")
            return self._explanation(row_id, column, row_id, at, entries, cause)
        if column not in columns:
            hint = did_you_mean(column, columns)
            table = f"{self.trace.plan.input.table} after step {at}"
            raise UserError(UNKNOWN_COLUMN.anywhere(column=column, table=table, hint=hint))
        entry = next((entry for entry in reversed(entries) if column in entry.diff), None)
        value = entries[-1].full_state.get(column)
        nothing = self._set_to_null(row_id, column, entries, at, depth) if value is None else None
        cause = nothing or self._cause(row_id, column, entries, entry, at, depth)
        return self._explanation(row_id, column, value, at, entries, cause)

    def _explanation(
        self, row_id: str, column: str, value: Value, at: int, entries: tuple[TraceEntry, ...], cause: Cause
    ) -> Explanation:
        label = self.trace.name(row_id, entries[-1].full_state)
        return Explanation(
            run_id=self.trace.run_id,
            row_id=row_id,
            label=label,
            column=column,
            value=value,
            at=at,
            cause=cause,
            trace_id=self.trace.trace_id(row_id),
            project=self.trace.plan.name,
            period=self.trace.period,
        )

    def _entries(self, row_id: str, at: int) -> tuple[TraceEntry, ...]:
        if row_id not in self._histories:
            history = self.trace.history(row_id)
            if history.diagnostic is not None:
                raise UserError(history.diagnostic)
            self._histories[row_id] = history.entries
        entries = tuple(entry for entry in self._histories[row_id] if entry.operation_seq <= at)
        if not entries:
            state = self.trace.state(row_id, at)
            assert state.diagnostic is not None  # noqa: S101 - there is no entry up to then
            raise UserError(state.diagnostic)
        return entries

    def _cause(
        self,
        row_id: str,
        column: str,
        entries: tuple[TraceEntry, ...],
        entry: TraceEntry | None,
        at: int,
        depth: int,
    ) -> Cause:
        if entry is None:
            return self._never_set(row_id, column, entries, at)
        if entry.operation_seq == 0:
            return self._loaded(row_id, column, entry, depth)
        step = self.trace.run.step(entry.operation_seq)
        match step:
            case UpdateStep():
                return self._updated(row_id, column, step, entries, entry.full_state[column], depth)
            case DeleteStep():
                before = self._state_before(step, entries)
                return deleted_by(step, self._see(row_id, before), kept_row(self.trace, step, before, entry))
            case AggregateStep():
                return self._summarised(row_id, column, step, entry, depth)
            case AppendStep():
                if step.group_by is None:
                    return self._appended(column, step, entry, depth)
                return self._summarised(row_id, column, step, entry, depth)
            case OutputStep():
                raise AssertionError(step)  # an output leaves rows as they are

    # Causes

    def _never_set(self, row_id: str, column: str, entries: tuple[TraceEntry, ...], at: int) -> Unset:
        passed = "".join(self._passed_over(row_id, column, entries, at))
        for step in self.trace.plan.steps:
            if any(added.name == column for added in step.adds) and step.seq > entries[0].operation_seq:
                added_by = f'step {step.seq} "{step.name}" added the column'
                return Unset(f"{added_by}, and no step has set it in this row{passed}")
        return Unset(f"no step has set it in this row{passed}")

    def _passed_over(self, row_id: str, column: str, entries: tuple[TraceEntry, ...], at: int) -> Iterator[str]:
        """The steps that set a column, and whose selectors left the row out."""
        gone = next((entry.operation_seq for entry in entries if entry.change_type == "deleted"), at + 1)
        done = {step.seq for _, step in self.trace.run.traced(entries[0].operation_seq, min(at, gone))}
        for step in self.trace.plan.steps:
            if not isinstance(step, ChangingStep) or step.seq not in done or step.selector is None:
                continue
            if all(each.column != column for each in step.assigned):
                continue
            seen, _ = joined(self.trace, step.lookups, self._see(row_id, self._state_before(step, entries)))
            value = evaluator(step.selector.tree)(seen)
            if value is not True:
                was = "NULL" if value is None else "FALSE"
                yield f'; the selector of step {step.seq} "{step.name}", {step.selector.text}, was {was} for it'

    def _loaded(self, row_id: str, column: str, entry: TraceEntry, depth: int) -> Cause:
        if column == "_labels" and not entry.full_state[column]:
            return Unset("labels start empty")
        if column == "_deleted" and not entry.full_state[column]:
            return Unset("no step has deleted the row")
        assert entry.source is not None  # noqa: S101 - loaded rows have one
        if self.upstream is None or depth == 0:
            return Loaded(entry.source)
        ordinal = self.trace.row_ids.ordinal(row_id)
        assert ordinal is not None  # noqa: S101 - its history was read
        if not comes_from_a_run(self.trace, self.trace.plan.input, ordinal):
            return Loaded(entry.source)
        row = dataset_row(self.trace, self.trace.plan.input, ordinal)
        upstream, cut = self._written(row, column, depth)
        return Loaded(entry.source, upstream, cut)

    def _updated(
        self,
        row_id: str,
        column: str,
        step: ChangingStep,
        entries: tuple[TraceEntry, ...],
        stored: Value,
        depth: int,
    ) -> Updated:
        assignment = next(each for each in step.assigned if each.column == column)
        before = self._state_before(step, entries)
        seen, joins = joined(self.trace, step.lookups, self._see(row_id, before))
        tree = assignment.value.tree
        own = self.trace.row_ids.ordinal(row_id)
        assert own is not None  # noqa: S101 - its history was read
        windows = looked_at(self.trace, step, tree, own, before, self.top)
        seen = seeing(seen, windows)
        inputs = list[Input]()
        for table, name in _in_order(tree):
            value = seen.tables[table][name]
            if table == OVER:
                inputs.append(Input(name, value, None))
            elif table == self.trace.plan.input.table:
                inputs.append(self._own(row_id, name, value, self.trace.run.before(step.seq), depth))
            else:
                match = joins[table]
                upstream, cut = self._written(match.row, name, depth)
                inputs.append(Input(f"{table}.{name}", value, match.told, upstream, cut))
        return Updated(
            step=StepRef.of(step),
            expression=assignment.value.text,
            inputs=(*inputs, *_given(tree)),
            joins=tuple(join.told for join in joins.values()),
            recomputed=compared(stored, lambda: evaluator(tree)(seen)),
            windows=tuple(self._window(each, step, before, depth) for each in windows.values()),
        )

    def _window(self, found: LookedAt, step: Step, before: RowValues, depth: int) -> WindowRows:
        """The rows that a call with OVER looked at, each with the values that it read."""
        names = found.read if self.every_input else found.values_read
        parents = Parents(found.count, tuple(self._contributor_of(each, names, step, depth) for each in found.rows))
        group = {name: before[name] for name in found.window.keys}
        return WindowRows(found.window.column, found.value, group, found.order, parents)

    def _contributor_of(self, each: Contribution, names: Sequence[str], step: Step, depth: int) -> Contributor:
        parent = each.parent
        assert parent.ordinal is not None  # noqa: S101 - windows look at rows of the working dataset
        row_id, at = self.trace.row_ids.row_id(parent.ordinal), self.trace.run.before(step.seq)
        cells = parent.seen.tables[self.trace.plan.input.table]
        inputs = (self._own(row_id, name, cells[name], at, depth) for name in names)
        return Contributor(row_id, parent.label, each.value, each.share, None, tuple(inputs))

    def _set_to_null(
        self, row_id: str, column: str, entries: tuple[TraceEntry, ...], at: int, depth: int
    ) -> Updated | None:
        """The last update that left a column NULL: it changed nothing, but it is still the reason."""
        changed = max(entry.operation_seq for entry in entries if column in entry.diff or entry is entries[0])
        gone = next((entry.operation_seq for entry in entries if entry.change_type == "deleted"), at + 1)
        done = {step.seq for _, step in self.trace.run.traced(changed, min(at, gone))}
        for step in reversed(self.trace.plan.steps):
            if not isinstance(step, ChangingStep) or step.seq not in done:
                continue
            if any(each.column == column for each in step.assigned) and self._selects(step, row_id, entries):
                return self._updated(row_id, column, step, entries, None, depth)
        return None

    def _selects(self, step: ChangingStep, row_id: str, entries: tuple[TraceEntry, ...]) -> bool:
        if step.selector is None:
            return True
        seen, _ = joined(self.trace, step.lookups, self._see(row_id, self._state_before(step, entries)))
        return evaluator(step.selector.tree)(seen) is True

    def _summarised(self, row_id: str, column: str, step: CreatingStep, entry: TraceEntry, depth: int) -> Cause:
        planned = next((each.value for each in step.filled if each.column == column), None)
        if planned is None and column in (step.keys or ()):
            type_ = dict(self.trace.run.columns(step.seq))[column]
            planned = PlannedExpression(column, ColumnValue(self.trace.plan.input.table, column, type_))
        if planned is None:
            return self._not_filled(column, step)
        keys = keys_of_group(self.trace, row_id, entry.full_state)
        skip, self.skip = self.skip, 0
        group = self._group(step, keys, planned.tree, entry.full_state[column], skip)
        call = contributing_call(planned.tree)
        read = call.arguments[0] if call and not self.every_input else planned.tree
        contributors = tuple(self._contributor(each, read, step, depth) for each in group.largest)
        return Summarised(
            step=StepRef.of(step),
            expression=planned.text,
            of=self.trace.plan.input.table if step.made_from is None else step.made_from.name,
            group={key.name: value for key, value in keys.items()},
            parents=Parents(group.count, contributors),
            recomputed=group.recomputed,
        )

    def _group(self, step: CreatingStep, keys: Keys, expression: Expression, stored: Value, skip: int) -> Group:
        """A group, looked at as a whole where that gives the same as looking at every row."""
        if self.top is not None and not self.every_row:
            before = self.trace.run.before(step.seq)
            shown, read = slice(skip, self.top), partial(self._states, before)
            sample = SAMPLE if not skip else _SAMPLE_AGAIN
            group = look_at_once(self.trace, step, keys, expression, stored, shown=shown, states=read, sample=sample)
            if group is not None:
                return group
        group = look_at(parents_of(self.trace, step, keys, expression), expression, stored, self.top)
        return replace(group, largest=group.largest[skip:]) if skip else group

    def _states(self, at: int, ordinals: Sequence[int]) -> dict[int, RowValues]:
        """Rows after a step, from their histories, which are needed anyway to explain their values.

        A few are read at the same time: each lies in another place, and Arrow lets others work meanwhile.
        """
        rows = {ordinal: self.trace.row_ids.row_id(ordinal) for ordinal in ordinals}
        missing = [row for row in rows.values() if row not in self._histories]
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="clew-histories") as pool:
            asked = [pool.submit(copy_context().run, self.trace.history, row) for row in missing]
        self._histories |= {row: history.result().entries for row, history in zip(missing, asked, strict=True)}
        columns = [name for name, _ in self.trace.run.columns(at)]
        last = {ordinal: self._entries(row, at)[-1].full_state for ordinal, row in rows.items()}
        return {ordinal: {name: state.get(name) for name in columns} for ordinal, state in last.items()}

    def _contributor(self, each: Contribution, argument: Expression | None, step: Step, depth: int) -> Contributor:
        parent = each.parent
        if parent.ordinal is None:
            brought = tuple(self._brought(parent, argument, depth))
            return Contributor(None, parent.label, each.value, each.share, parent.source, brought)
        row_id = self.trace.row_ids.row_id(parent.ordinal)
        before = self.trace.run.before(step.seq)
        inputs = tuple(
            self._own(row_id, name, parent.seen.tables[table][name], before, depth)
            for table, name in (_in_order(argument) if argument is not None else ())
        )
        given = _given(argument) if argument is not None else ()
        return Contributor(row_id, parent.label, each.value, each.share, None, (*inputs, *given))

    def _brought(self, parent: Parent, argument: Expression | None, depth: int) -> Iterator[Input]:
        """The values of a row of another dataset that a run has registered, and why it wrote them."""
        for table, name in _in_order(argument) if argument is not None else ():
            upstream, cut = self._written(parent.row, name, depth)
            if upstream is not None or cut is not None or self.every_input:
                yield Input(f"{table}.{name}", parent.seen.tables[table][name], None, upstream, cut)

    def _appended(self, column: str, step: AppendStep, entry: TraceEntry, depth: int) -> Cause:
        planned = next((each.value for each in step.columns if each.column == column), None)
        if planned is None:
            return self._not_filled(column, step)
        row = self._source_row(step, entry)
        if row is None:
            unchecked = Recomputed("not checked", entry.full_state[column], reason="its source row was not found")
            return Appended(StepRef.of(step), planned.text, entry.source, (), unchecked)
        seen = Row({step.source.table: row.cells}, self.trace.today)
        inputs = tuple(
            Input(f"{step.source.table}.{name}", row.cells[name], None) for _, name in _in_order(planned.tree)
        )
        names = [name for _, name in _in_order(planned.tree)]
        upstream, cut = self._written(row, names[0], depth) if len(names) == 1 else (None, None)
        return Appended(
            step=StepRef.of(step),
            expression=planned.text,
            source=row.source,
            inputs=(*inputs, *_given(planned.tree)),
            recomputed=compared(entry.full_state[column], lambda: evaluator(planned.tree)(seen)),
            upstream=upstream,
            cut=cut,
        )

    def _source_row(self, step: AppendStep, entry: TraceEntry) -> DatasetRow | None:
        """The row of the other dataset: by file and line where they are known, else by all its values."""
        source = step.source
        keys = [equals(each.value.tree, entry.full_state[each.column]) for each in step.columns]
        condition = all_of([*keys, step.source_selector.tree if step.source_selector else None])
        place = (entry.source.file, entry.source.line) if entry.source else (None, None)
        first = None
        for row in dataset_rows(self.trace, source, condition, source.table):
            if place == (row.source.file, row.source.line):
                return row
            first = first or row
        return first

    def _not_filled(self, column: str, step: Step) -> Unset:
        if column in {"_period", "_labels", "_deleted"}:
            reasons = {"_period": "it is the period of the run", "_labels": "labels start empty"}
            return Unset(reasons.get(column, "no step has deleted the row"))
        return Unset(f'step {step.seq} "{step.name}" created the row without filling this column')

    # Ways back

    def _own(self, row_id: str, column: str, value: Value, at: int, depth: int) -> Input:
        """A value of a row of the run that an expression read, explained unless the tree is deep or large enough."""
        if depth == 0 or not self.budget.take():
            return Input(column, value, None, cut=CutOff(self.trace.run_id, row_id, column, at))
        return Input(column, value, self.explain(row_id, column, at, depth - 1))

    def _written(
        self, row: DatasetRow | None, column: str, depth: int
    ) -> tuple[Explanation, None] | tuple[None, CutOff | None]:
        """Why the run that registered a row's dataset wrote one of its values, or that this is left out here."""
        found = self.upstream.producer(row.pinned()) if self.upstream is not None and row is not None else None
        if found is None or all(name != column for name, _ in found.trace.run.columns(found.at)):
            return None, None
        if depth == 0 or not self.budget.take():
            return None, CutOff(found.trace.run_id, found.row_id, column, found.at)
        other = _Explainer(found.trace, self.upstream, self.top, self.budget, self.every_input, self.every_row)
        return other.explain(found.row_id, column, found.at, depth - 1), None

    def _state_before(self, step: Step, entries: tuple[TraceEntry, ...]) -> dict[str, Value]:
        earlier = [entry for entry in entries if entry.operation_seq < step.seq][-1].full_state
        return {name: earlier.get(name) for name, _ in self.trace.run.columns(self.trace.run.before(step.seq))}

    def _see(self, row_id: str, cells: RowValues) -> Row:
        return Row({self.trace.plan.input.table: {**cells, "_row_id": row_id}}, self.trace.today)


def _given(expression: Expression) -> tuple[Input, ...]:
    """The values that the run was given, where an expression reads them."""
    named = (node for node in walk(expression) if isinstance(node, Constant) and node.parameter is not None)
    values = {str(node.parameter): node.value for node in named}
    return tuple(Input(name, value, None) for name, value in values.items())


def _in_order(expression: Expression) -> list[tuple[str, str]]:
    """The columns that an expression reads, in the order in which it names them."""
    named = ((node.table, node.column) for node in walk(expression) if isinstance(node, ColumnValue))
    return list(dict.fromkeys(named))
