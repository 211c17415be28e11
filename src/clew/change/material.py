"""What two runs are made of, matched piece by piece, and the value that any mixture of the pieces gives."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from decimal import Decimal, localcontext

from clew.change.bridge import CauseKind
from clew.change.given import GivenEdit, GivenValues
from clew.change.points import Point, conditions_at
from clew.change.recomputing import (
    OWN_PERIOD,
    Cells,
    Recipe,
    Recomputation,
    equality,
    steps_for_single_rows,
    trees_of,
)
from clew.change.row_edits import EditedRows, RowEdit, edited_rows
from clew.change.step_edits import EditedSteps, StepEdit, edited_steps
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import NOT_RECOMPUTABLE
from clew.explain.pinned import dataset_rows
from clew.explain.row_conditions import all_of
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Apply, ColumnValue, Constant, Expression, Value, columns_of, walk
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep, Step
from clew.plan.steps import Assignment, ChangingStepBase, CreatingStepBase
from clew.storage.parts import ORDINAL
from clew.trace.prefilter import conjuncts
from clew.trace.reader import RunTrace

LOADED = ""
"""In place of the key of a dataset, for the working dataset."""
PERIOD, TODAY = "period", "today"
"""The edits that are neither of steps nor of rows."""
_MOST_ROWS = 200_000
"""More rows are not calculated again in Python."""
_MOST_KEPT = 250_000
"""So many rows are kept as steps have left them, for the mixtures to come."""

Edit = RowEdit | StepEdit | GivenEdit | str
"""Something that can be exchanged. The period and the day are named."""


def added_up(values: Iterable[Value]) -> Decimal:
    """The exact sum of numbers; NULL adds nothing."""
    with localcontext(prec=100):
        return sum((Decimal(value) for value in values if isinstance(value, int | Decimal)), Decimal(0))


def steps_until(trace: RunTrace, point: Point) -> tuple[Step, ...]:
    """The steps that a run has done up to a point. Of outputs only the one that is asked about decides anything."""
    return tuple(
        step
        for step in trace.plan.steps
        if step.seq <= point.seq
        and trace.run.not_done.get(step.seq) is None
        and (not isinstance(step, OutputStep) or (point.output is not None and step.seq == point.seq))
    )


@dataclass(slots=True)
class Material:
    """What both runs are made of, matched piece by piece."""

    traces: tuple[RunTrace, RunTrace]
    points: tuple[Point, Point]
    column: str
    where: str | None
    steps: EditedSteps
    """With the values of the first run in their expressions, so that values are no changes of operations."""
    given: GivenValues
    loaded: EditedRows
    uses: tuple[dict[str, DatasetUse], dict[str, DatasetUse]]
    """The datasets that steps of each run read beside the working dataset."""
    datasets: dict[str, EditedRows]
    columns: tuple[str, ...]
    _singly: dict[frozenset[Edit], dict[int, Cells]] = field(default_factory=dict)
    """Loaded rows after the steps that decide about each row by itself, by the other edits that are made."""

    @classmethod
    def of(cls, a: RunTrace, b: RunTrace, points: tuple[Point, Point], *, column: str, where: str | None) -> "Material":
        """The material of two runs, for a question about the sum of a column where a condition is true."""
        traces, steps = (a, b), (steps_until(a, points[0]), steps_until(b, points[1]))
        given = GivenValues.of(traces, steps)
        table = a.plan.input.table
        names = [[name for name, _ in trace.run.columns(0)] for trace in traces]
        columns = dict.fromkeys(
            each.name
            for trace, point in zip(traces, points, strict=True)
            for each in trace.plan.columns_after(point.seq)
        )
        asked = {column} | {
            name
            for trace, point in zip(traces, points, strict=True)
            for tree in conditions_at(trace, point, where)
            for _, name in columns_of(tree)
        }
        loaded = frozenset({*names[0], *names[1], *SYSTEM_COLUMNS})
        types = [dict(trace.run.columns(point.seq)) for trace, point in zip(traces, points, strict=True)]
        edited = edited_steps(
            steps[0],
            given.placed(steps[1], ()),
            table=table,
            loaded=loaded,
            needed=frozenset(asked),
            same_types=all(types[1].get(name, type_) == type_ for name, type_ in types[0].items()),
        )
        uses = (_uses(steps[0]), _uses(steps[1]))
        key = a.plan.input.names[0] if a.plan.input.names[:1] == b.plan.input.names[:1] and a.plan.input.names else ()
        condition = None if where is None else _pushed_down(traces, steps, a.condition(where, points[0].seq))
        rows = [list(_loaded_rows(trace, condition)) for trace in traces]
        return cls(
            traces=traces,
            points=points,
            column=column,
            where=where,
            steps=edited,
            given=given,
            loaded=edited_rows(LOADED, rows[0], rows[1], key),
            uses=uses,
            datasets={slot: _dataset_edits(traces, uses, slot, steps) for slot in dict.fromkeys([*uses[0], *uses[1]])},
            columns=tuple(columns),
        )

    def use_of(self, slot: str) -> DatasetUse:
        """A dataset, as the second run reads it, or else the first."""
        return self.uses[1].get(slot) or self.uses[0][slot]

    def kind_of(self, slot: str) -> CauseKind:
        """Whether rows of a dataset are looked up, or become rows."""
        looked_up = {join.dataset.dataset_id for step in self._all_steps() for join in step.lookups}
        return "reference" if self.use_of(slot).dataset_id in looked_up else "appended"

    def _all_steps(self) -> list[Step]:
        return [
            step for trace, point in zip(self.traces, self.points, strict=True) for step in steps_until(trace, point)
        ]

    @property
    def asks_for_today(self) -> bool:
        """Whether any expression does."""
        trees = [tree for step in self._all_steps() for tree in trees_of(step)]
        trees += conditions_at(self.traces[0], self.points[0], self.where)
        return any(isinstance(node, Apply) and node.function == "TODAY" for tree in trees for node in walk(tree))

    def value(self, made: frozenset[Edit]) -> Decimal:
        """The value where some edits are made."""
        trace = self.traces[1] if PERIOD in made else self.traces[0]
        today = (self.traces[1] if TODAY in made else self.traces[0]).today
        table = self.traces[0].plan.input.table
        code = self.steps.with_edits(frozenset(edit for edit in made if isinstance(edit, StepEdit)))
        given = [edit for edit in made if isinstance(edit, GivenEdit)]
        steps = self.given.placed(code, [*given, *(self.given.period if PERIOD in made else ())])
        edits = frozenset(edit for edit in made if isinstance(edit, RowEdit))
        datasets = {
            use.key: rows
            for slot, entries in self.datasets.items()
            for rows in [entries.with_edits(edits)]
            for uses in self.uses
            if (use := uses.get(slot)) is not None
        }
        recipe = Recipe(
            table=table,
            steps=steps,
            columns=self.columns,
            rows=self.loaded.with_edits(edits),
            datasets=datasets,
            period=trace.period,
            today=today,
        )
        rows = self._recomputed(recipe, frozenset(edit for edit in made if not _is_of_loaded(edit)))
        return total(recipe, rows, self._conditions(steps), self.column, self._deleted(steps))

    def _recomputed(self, recipe: Recipe, others: frozenset[Edit]) -> list[Cells]:
        """The rows that a recipe gives. What becomes of a row by itself is calculated once for many mixtures."""
        number = steps_for_single_rows(recipe.steps)
        known = self._singly.get(others, {})
        missing = [row for row in recipe.rows if id(row) not in known]
        if sum(map(len, self._singly.values())) + len(missing) > _MOST_KEPT:
            self._singly.clear()
            known, missing = {}, list(recipe.rows)
        done = Recomputation(replace(recipe, rows=missing, steps=recipe.steps[:number])).run()
        known.update(zip(map(id, missing), done, strict=True))
        self._singly[others] = known
        rest = replace(recipe, steps=recipe.steps[number:])
        return Recomputation(rest, [dict(known[id(row)]) for row in recipe.rows]).go_on()

    def _conditions(self, steps: Sequence[Step]) -> list[Expression]:
        where = self.where
        outputs = [step for step in steps if isinstance(step, OutputStep) and step.selector is not None]
        found = [step.selector.tree for step in outputs if step.selector is not None]
        return found if where is None else [*found, self.traces[0].condition(where, self.points[0].seq)]

    def _deleted(self, steps: Sequence[Step]) -> bool:
        return any(isinstance(step, OutputStep) and step.include_deleted for step in steps)


def _is_of_loaded(edit: Edit) -> bool:
    return isinstance(edit, RowEdit) and edit.dataset == LOADED


def total(
    recipe: Recipe, rows: Iterable[Cells], conditions: Sequence[Expression], column: str, include_deleted: bool
) -> Decimal:
    """The sum of a column over the rows for which all conditions are true."""
    tests = [evaluator(each) for each in conditions]
    return added_up(
        row[column]
        for row in rows
        if (include_deleted or not row["_deleted"])
        and all(test(Row({recipe.table: row}, recipe.today)) is True for test in tests)
    )


def _uses(steps: Sequence[Step]) -> dict[str, DatasetUse]:
    """The datasets that steps read, by dataset; by its version, too, where several are read."""
    found = {each.use.key: each.use for step in steps for each in step.datasets}
    ids = [use.dataset_id for use in found.values()]
    return {use.dataset_id if ids.count(use.dataset_id) == 1 else use.key: use for use in found.values()}


def _loaded_rows(trace: RunTrace, condition: Expression | None) -> Iterator[Cells]:
    names = [name for name, _ in trace.run.columns(0)]
    for number, (ordinal, cells) in enumerate(trace.working(0).matching(condition, names, trace.see)):
        _require_few(number, trace.plan.input.name)
        yield _undated({**cells, ORDINAL: ordinal}, trace.period)


def _dataset_edits(
    traces: tuple[RunTrace, RunTrace],
    uses: tuple[dict[str, DatasetUse], dict[str, DatasetUse]],
    slot: str,
    steps: Sequence[Sequence[Step]],
) -> EditedRows:
    """The rows of a dataset in both runs. One that only one of them reads has the same rows in any mixture."""
    rows = list[list[Cells]]()
    for trace, known in zip(traces, uses, strict=True):
        use = known.get(slot)
        found = list[Cells]()
        for number, row in enumerate(dataset_rows(trace, use, None, use.table) if use is not None else ()):
            _require_few(number, use.name if use is not None else "")
            found.append(_undated(dict(row.cells), trace.period))
        rows.append(found)
    if slot not in uses[0] or slot not in uses[1]:
        return EditedRows(tuple(rows[0] or rows[1]))
    return edited_rows(slot, rows[0], rows[1], _reference_key(uses[1][slot], steps[1]))


def _reference_key(use: DatasetUse, steps: Sequence[Step]) -> tuple[str, ...]:
    """What identifies a row of a dataset: its natural key, or else the columns by which it is looked up."""
    if use.names:
        return use.names[0]
    joins = [join for step in steps for join in step.lookups if join.dataset.key == use.key]
    pairs = [pair for join in joins[:1] for each in conjuncts(join.on.tree) if (pair := equality(each, join.alias))]
    return tuple(dict.fromkeys(column for inside, _ in pairs for _, column in columns_of(inside)))


def _undated(cells: Cells, period: str) -> Cells:
    return {**cells, "_period": OWN_PERIOD} if cells.get("_period") == period else cells


def _require_few(number: int, name: str) -> None:
    if number >= _MOST_ROWS:
        problem = f"more than {_MOST_ROWS:,} rows of {name} would have to be calculated again"
        raise UserError(
            NOT_RECOMPUTABLE.anywhere(problem=problem, hint="narrow the condition to a key that no step sets")
        )


def _pushed_down(traces: Sequence[RunTrace], steps: Sequence[Sequence[Step]], where: Expression) -> Expression | None:
    """The part of a condition that holds for loaded rows as well, so that others need not be read.

    A column equals a constant, and no step of either run sets it in rows that exist. Summaries have it as a key of
    their groups, so that all their rows have the same value, or not at all, so that the condition is not true for them.
    Where steps look at several rows to decide about one, the column is among their keys.
    """
    table = traces[0].plan.input.table
    known = [dict(trace.run.columns(0)) for trace in traces]
    changed = {each.column for run in steps for step in run for each in _set_in_rows(step)}
    return all_of(
        each
        for each in conjuncts(where)
        if (column := _constant_column(each, table)) is not None
        and column.column not in changed
        and column.column not in SYSTEM_COLUMNS
        and all(column.column in keys for run in steps for step in run for keys in _keys_of_groups(step))
        and all(types.get(column.column) == column.type for types in known)
    )


def _keys_of_groups(step: Step) -> Iterator[tuple[str, ...]]:
    """The keys of rows that a step looks at together to decide what becomes of each of them."""
    if isinstance(step, ChangingStepBase):
        if step.keeps is not None:
            yield step.keeps.keys
        yield from (window.keys for window in step.window_calls)


def _set_in_rows(step: Step) -> tuple[Assignment, ...]:
    """The columns that a step sets in rows that exist, or calculates from them."""
    if isinstance(step, ChangingStepBase):
        return step.assigned
    return step.filled if isinstance(step, CreatingStepBase) and step.made_from is None else ()


def _constant_column(condition: Expression, table: str) -> ColumnValue | None:
    """The column that a condition compares with a constant for equality."""
    match condition:
        case Apply("=", (ColumnValue() as column, Constant())) | Apply("=", (Constant(), ColumnValue() as column)):
            return column if column.table == table else None
        case _:
            return None
