"""Scenarios without Spark: the evaluator of explanations computes them in milliseconds, in this process.

What it cannot do as Spark does, it refuses with a reason: such a scenario is not called passed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from clew.change.recomputing import Cells, JoinLookup, Recipe, Recomputation, trees_of
from clew.deferred import dataclass
from clew.definitions import Scenario, WorkspaceDefinitions
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import CHECK_FAILED
from clew.diagnostics.codes.scenarios import NOT_QUICK
from clew.lang.evaluation import Row, evaluator, group_evaluator
from clew.lang.ordering import member_of
from clew.lang.typed import Value, columns_of
from clew.plan import Plan
from clew.plan.operations import OutputStep, Step
from clew.plan.planned_checks import PlannedCheck
from clew.plan.steps import ChangingStepBase
from clew.scenarios.inputs import GivenRows
from clew.scenarios.judging import Outcome, judged
from clew.scenarios.matching import LOADING, ScenarioChange, changed_row, created_row
from clew.scenarios.prepared_scenarios import PreparedScenario, ScenarioPreparer
from clew.scenarios.scenario_results import ScenarioResult

_STATE = ("_period", "_labels", "_deleted")
_ONLY_IN_RUNS = frozenset({"_row_id", "_trace_id"})
"""Columns whose values a run makes up."""

Datasets = Mapping[str, Sequence[Mapping[str, Value]]]


class QuickRunner:
    """Runs the scenarios of a workspace without Spark."""

    def __init__(self, workspace: WorkspaceDefinitions) -> None:
        self._workspace = workspace
        self._preparer = ScenarioPreparer(workspace)

    def run(self, scenarios: Iterable[Scenario]) -> Iterator[ScenarioResult]:
        """Results in the order of the scenarios."""
        for scenario in scenarios:
            yield judged(scenario, partial(self.outcome, scenario))

    def outcome(self, scenario: Scenario) -> Outcome:
        """What the project of a scenario does. UserError NotQuick says why only Spark can tell."""
        prepared = self._preparer.prepared(scenario)
        given = GivenRows(self._workspace.root, prepared.period, prepared.periods)
        datasets = {
            key: [values for values, _ in given.seen(use, rows)] for key, (use, rows) in prepared.datasets.items()
        }
        return quick_outcome(prepared, datasets)


def quick_outcome(prepared: PreparedScenario, datasets: Datasets) -> Outcome:
    """What a plan does with rows, by the key of their dataset."""
    plan = prepared.plan
    _require_quick(plan)
    run = QuickRun(plan, prepared, datasets)
    run.run()
    return Outcome(plan, run.outputs, lambda seq: run.changes.get(seq, ()))


@dataclass(slots=True)
class QuickRun:
    """A plan at work, with everything that a scenario may ask about."""

    plan: Plan
    prepared: PreparedScenario
    datasets: Datasets
    outputs: dict[int, tuple[Sequence[str], Sequence[Cells]]] = field(default_factory=dict)
    changes: dict[int, list[ScenarioChange]] = field(default_factory=dict)
    rows: list[Cells] = field(default_factory=list)
    """The working dataset after the last step. Rows keep their places."""

    def run(self) -> None:
        """Do all steps. Raises UserError where a run would fail."""
        plan, period = self.plan, self.prepared.period.identifier
        system: Cells = {"_labels": "", "_deleted": False, "_row_id": None}
        loaded = [
            {**system, **row, "_period": row["_period"] if row.get("_period") is not None else period}
            for row in self.datasets[plan.input.key]
        ]
        columns = tuple(column.name for column in plan.columns_after(_last(plan)))
        recipe = Recipe(plan.input.table, plan.steps, columns, loaded, self.datasets, period, self.prepared.today)
        work = Recomputation(recipe)
        work.load()
        self.rows = work.rows
        names = self._names(LOADING)
        self.changes[LOADING] = [created_row({name: row[name] for name in names}) for row in work.rows]
        self._check(work.rows, LOADING)
        for step in plan.steps:
            before = [dict(row) for row in work.rows]
            try:
                work.take(step)
            except UserError as error:
                raise _at(error, step) from None
            if isinstance(step, OutputStep):
                self._write(step, work.rows)
            self.changes[step.seq] = self._differences(before, work.rows, step.seq)
            self._check(work.rows, step.seq)

    def _differences(self, before: Sequence[Cells], after: Sequence[Cells], seq: int) -> list[ScenarioChange]:
        names = self._names(seq)
        changed = [
            changed_row({name: old[name] for name in names}, {name: new[name] for name in names})
            for old, new in zip(before, after, strict=False)
            if not old["_deleted"] and old != new
        ]
        created = [created_row({name: row[name] for name in names}) for row in after[len(before) :]]
        return [*(each for each in changed if each is not None), *created]

    def _names(self, seq: int) -> tuple[str, ...]:
        return (*(column.name for column in self.plan.columns_after(seq)), *_STATE)

    def _write(self, step: OutputStep, rows: Sequence[Cells]) -> None:
        test = evaluator(step.selector.tree) if step.selector is not None else None
        table, today = self.plan.input.table, self.prepared.today
        try:
            chosen = [
                row
                for row in rows
                if (step.include_deleted or not row["_deleted"])
                and (test is None or test(Row({table: row}, today)) is True)
            ]
        except UserError as error:
            raise _at(error, step) from None
        self.outputs[step.seq] = (step.columns, [{name: row.get(name) for name in step.columns} for row in chosen])

    # Checks

    def _check(self, rows: Sequence[Cells], at: int) -> None:
        """Raise UserError CheckFailed where a run would stop."""
        due = [check for check in self.plan.checks if check.at == at and check.severity == "fail"]
        broken = [f'the check "{check.name}" failed: {check.text}' for check in due if not self._holds(check, rows)]
        if broken:
            raise UserError(CHECK_FAILED.anywhere(problem="; ".join(broken)))

    def _holds(self, check: PlannedCheck, working: Sequence[Cells]) -> bool:
        if check.decided is not None:
            return not check.decided
        table, rows = self.plan.input.table, working
        if check.of_dataset and check.dataset is not None:
            table = check.dataset.table
            rows = [{**row, "_deleted": False} for row in self.datasets[check.dataset.key]]
        is_checked = evaluator(check.is_checked(table))
        seen = [each for row in rows if is_checked(each := Row({table: row}, self.prepared.today)) is True]
        if check.failing is not None:
            fails = evaluator(check.failing.tree)
            return not any(fails(each) is True for each in seen)
        if check.join is not None:
            return self._all_match(check, seen)
        if check.total is not None:
            return group_evaluator(check.total.tree, self.prepared.today)(seen) is True
        keys = [tuple(each.tables[table][name] for name in check.keys) for each in seen]
        whole = [tuple(map(member_of, key)) for key in keys if None not in key]
        return len(set(whole)) == len(whole)

    def _all_match(self, check: PlannedCheck, seen: Sequence[Row]) -> bool:
        join = check.join
        assert join is not None  # noqa: S101 - asked for these checks only
        rows = [dict(row) for row in self.datasets[join.dataset.key]]
        lookup = JoinLookup.of(join, rows, self.prepared.today)
        return all(lookup.matches(each) for each in seen)


def _last(plan: Plan) -> int:
    return plan.steps[-1].seq if plan.steps else LOADING


def _at(error: UserError, step: Step) -> UserError:
    """An error with the place of the operation, as runs tell it."""
    first = error.diagnostic
    return error if first.span is not None else UserError(replace(first, span=step.place))


def _require_quick(plan: Plan) -> None:
    """Raise UserError NotQuick where the evaluator would not do what Spark does."""
    reason = next(_reasons(plan), None)
    if reason is not None:
        raise UserError(NOT_QUICK.anywhere(reason=reason))


def _reasons(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        named = f'step {step.seq} "{step.name}"'
        if isinstance(step, ChangingStepBase) and step.is_wide and step.keeps is None and not step.window_calls:
            yield f"{named} looks at several rows at once"
        for tree in trees_of(step):
            made_up = sorted({name for _, name in columns_of(tree)} & _ONLY_IN_RUNS)
            if made_up:
                yield f"{named} reads {made_up[0]}, which only a run on Spark gives to rows"
    for check in plan.checks:
        if check.severity == "fail" and check.tie is not None:
            yield f'the check "{check.name}" ties two totals'
