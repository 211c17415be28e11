"""A scenario cut out of a run: the smallest one that reproduces the result of a row.

It is computed before it is given away. Without stand-ins it must give what the run has stored; with stand-ins, what it
gives is what it expects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clew.change.recomputing import trees_of
from clew.deferred import dataclass
from clew.definitions import LoadedWorkspace, Scenario, load_scenarios
from clew.definitions.scenario_text import scenario_text
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.scenarios import CUT_NOT_REPRODUCED, NOT_QUICK
from clew.lang.evaluation import evaluator
from clew.lang.typed import Apply, Value, walk
from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep
from clew.privacy.eyes import ColumnEyes, RunEyes
from clew.scenarios.cut_rows import Cells, NeededRows
from clew.scenarios.judging import Outcome, judged
from clew.scenarios.matching import LOADING, ScenarioChange
from clew.scenarios.quick import QuickRunner
from clew.scenarios.stand_ins import stand_ins
from clew.trace.reader import RunTrace

_MADE_UP = frozenset({"_row_id", "_trace_id"})
_MOST_CHANGES = 50
"""Changes that a scenario with stand-ins expects of its trace."""

Block = dict[str, object]


@dataclass(frozen=True, slots=True)
class CutQuestion:
    """What is to be cut out of a run."""

    row_id: str
    told: str
    """The row in words that may stand in a file."""
    with_group: bool = False
    masks_all: bool = False
    """Whether all personal and secret columns get stand-ins, also those that the caller sees."""


@dataclass(frozen=True, slots=True)
class ScenarioCut:
    """A scenario cut out of a run."""

    name: str
    text: str
    """The file."""
    rows: Mapping[str, int]
    """How many rows of each dataset it has."""
    columns: tuple[str, ...]
    """The columns of the input that it shows."""
    masked: tuple[str, ...]
    """The columns whose values are stand-ins, with the tables that they belong to."""

    def write(self, path: str | Path) -> Path:
        """Write the file, and give its path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.text, encoding="utf-8")
        return target

    def to_json(self) -> dict[str, object]:
        """The form of `clew test cut --json`."""
        return {"name": self.name, "rows": dict(self.rows), "masked": list(self.masked), "scenario": self.text}

    def __str__(self) -> str:
        return self.text


def cut_scenario(trace: RunTrace, eyes: RunEyes, loaded: LoadedWorkspace, question: CutQuestion) -> ScenarioCut:
    """The scenario of a row. UserError CutNotReproduced if it would not give what the run has stored."""
    cut = _Cut(trace, eyes, loaded, question)
    return cut.made()


@dataclass(slots=True)
class _Cut:
    trace: RunTrace
    eyes: RunEyes
    loaded: LoadedWorkspace
    question: CutQuestion

    def made(self) -> ScenarioCut:
        trace, plan = self.trace, self.trace.plan
        needed = NeededRows(trace, self.question.with_group)
        ordinal = trace.row_ids.ordinal(self.question.row_id)
        assert ordinal is not None  # noqa: S101 - the trace has named the row
        needed.add([ordinal])
        uses = list({use.key: use for use in plan.datasets_read}.values())
        rows = {use.key: [dict(row) for row in needed.rows_of(use)] for use in uses}
        masked = [(use, name) for use in uses for name in self._masked_columns(use)]
        real = self._content(uses, rows)
        scenario, outcome = self._run(real)
        expected = self._of_the_row()
        self._require_same(scenario, expected, outcome)
        if masked:
            others = _replaced(rows, masked)
            content = self._content(uses, others)
            _, did = self._run(content)
            if all(self._sees(use, name) for use, name in masked):
                _require_same_way(outcome, did)
            expected = _of_all_rows(did, plan)
            real = content
        head = [f"Cut out of run {trace.run_id[:8]} of {plan.name} for {trace.period}: {self.question.told}."]
        told = tuple(f"{use.table}.{name}" for use, name in masked)
        if told:
            head.append(f"Stand-ins: {', '.join(told)}.")
        return ScenarioCut(
            name=str(real["name"]),
            text=scenario_text(head, {**real, **expected}),
            rows={name: len(listed) for name, listed in _together(uses, rows).items()},
            columns=tuple(column.name for column in plan.input.columns),
            masked=told,
        )

    def _sees(self, use: DatasetUse, column: str) -> bool:
        return self.eyes.dataset(use).is_clear(column)

    def _masked_columns(self, use: DatasetUse) -> list[str]:
        seen: ColumnEyes = self.eyes.dataset(use)
        return [
            column.name
            for column in use.columns
            if not seen.is_clear(column.name) or (self.question.masks_all and column.name in seen.classes)
        ]

    def _content(self, uses: Sequence[DatasetUse], rows: Mapping[str, Sequence[Cells]]) -> Block:
        """Everything but what is expected."""
        trace, plan = self.trace, self.trace.plan
        asks_for_today = any(
            isinstance(node, Apply) and node.function == "TODAY"
            for step in plan.steps
            for tree in trees_of(step)
            for node in walk(tree)
        )
        together = _together(uses, rows)
        return {
            "name": f"{plan.name} {trace.period}, run {trace.run_id[:8]}: {self.question.told}",
            "period": trace.period,
            **({"today": trace.today} if asks_for_today else {}),
            **({"parameters": _parameters(plan)} if _parameters(plan) else {}),
            "project": plan.name,
            "datasets": [
                {"id": dataset, "rows": [_without_nulls(row) for row in listed]} for dataset, listed in together.items()
            ],
        }

    def _run(self, content: Block) -> tuple[Scenario, Outcome]:
        """What the project, as the workspace has it, does with the rows."""
        found = self._read({**content, "expected_trace": [{"operation_seq": LOADING, "change_type": "created"}]})
        try:
            return found, self._runner().outcome(found)
        except ClewError as error:
            if error.code == NOT_QUICK.name:
                raise
            problem = f"the project does not do with these rows what it did in the run: {error.diagnostic.message}"
            raise UserError(CUT_NOT_REPRODUCED.anywhere(problem=problem)) from None

    def _runner(self) -> QuickRunner:
        return QuickRunner(self.loaded.workspace)

    def _read(self, content: Block) -> Scenario:
        with TemporaryDirectory(prefix="clew-cut-") as folder:
            path = Path(folder, "cut.yaml")
            path.write_text(scenario_text((), content), encoding="utf-8")
            found = load_scenarios(self.loaded, [path])
        if not found.workspace.scenarios:
            problem = f"the workspace has no project that can run it: {found.diagnostics[0].message}"
            raise UserError(CUT_NOT_REPRODUCED.anywhere(problem=problem))
        return found.workspace.scenarios[0]

    def _require_same(self, scenario: Scenario, expected: Block, outcome: Outcome) -> None:
        """The rows that were cut give what the run has stored."""
        result = judged(self._expecting(expected, scenario), lambda: outcome)
        if result.mismatches:
            first = result.mismatches[0]
            columns = f" in {', '.join(first.columns)}" if first.columns else ""
            problem = f"the rows that were cut give another result than the run{columns}: {first.where}, {first.kind}"
            raise UserError(CUT_NOT_REPRODUCED.anywhere(problem=problem))

    def _expecting(self, expected: Block, scenario: Scenario) -> Scenario:
        given: Block = {"name": "x", "period": scenario.period, "project": scenario.project, "datasets": []}
        return self._read({**given, **expected})

    # What the run has stored

    def _of_the_row(self) -> Block:
        """The row in the outputs of the run, and what happened to it."""
        trace, row_id = self.trace, self.question.row_id
        entries = trace.history(row_id).entries
        outputs = dict[str, object]()
        for step in trace.plan.outputs:
            state = trace.state(row_id, step.seq).state if step.seq >= entries[0].operation_seq else None
            if state is not None and trace.run.not_done.get(step.seq) is None and self._is_written(step, state):
                row = {name: state.get(name) for name in step.columns if name not in _MADE_UP}
                outputs[str(step.seq)] = {"match": "subset", "rows": [row]}
        changes = list[Block]()
        for entry in entries:
            if entry.operation_seq == LOADING:
                continue
            diff = {} if entry.change_type == "deleted" else entry.diff
            told = {name: {"old": each.old, "new": each.new} for name, each in diff.items() if name not in _MADE_UP}
            if entry.change_type == "created":
                told = {name: {"new": each["new"]} for name, each in told.items() if each["new"] is not None}
            changes.append(
                {
                    "operation_seq": entry.operation_seq,
                    "change_type": entry.change_type,
                    "row_match": _named(trace.plan, entry.full_state),
                    **({"expected_diff": told} if told else {}),
                }
            )
        if not outputs and not changes:
            changes = [
                {
                    "operation_seq": LOADING,
                    "change_type": "created",
                    "row_match": _named(trace.plan, entries[0].full_state),
                }
            ]
        return _expectations(outputs, changes)

    def _is_written(self, step: OutputStep, state: Cells) -> bool:
        if state["_deleted"] and not step.include_deleted:
            return False
        if step.selector is None:
            return True
        ordinal = self.trace.row_ids.ordinal(self.question.row_id) or 0
        return evaluator(step.selector.tree)(self.trace.see(ordinal, dict(state))) is True


def _expectations(outputs: Mapping[str, object], changes: Sequence[Block]) -> Block:
    found: Block = {}
    if outputs:
        found["expected_outputs"] = outputs
    if changes:
        found["expected_trace"] = list(changes)
    return found


def _named(plan: Plan, state: Cells) -> Block:
    """Values by which a row is told from others: its natural key, or else all that it was loaded with."""
    key = plan.input.natural_key
    if key and all(state.get(name) is not None for name in key):
        return {name: state[name] for name in key}
    return {name: value for name, value in state.items() if value is not None and name not in {"_labels", "_deleted"}}


def _parameters(plan: Plan) -> dict[str, object]:
    return {each.name: each.constant.value for each in plan.extensions.parameters}


def _without_nulls(row: Cells) -> Block:
    return {name: value for name, value in row.items() if value is not None}


# Stand-ins


def _replaced(
    rows: Mapping[str, Sequence[Cells]], masked: Iterable[tuple[DatasetUse, str]]
) -> dict[str, list[dict[str, Value]]]:
    """The rows with stand-ins: the same one for the same value, whichever column has it."""
    columns = {(use.key, name) for use, name in masked}
    values = [row[name] for key, listed in rows.items() for row in listed for name in row if (key, name) in columns]
    stand_in: Callable[[Value], Value] = stand_ins(values)
    return {
        key: [
            {name: stand_in(value) if (key, name) in columns else value for name, value in row.items()}
            for row in listed
        ]
        for key, listed in rows.items()
    }


def _together(uses: Sequence[DatasetUse], rows: Mapping[str, Sequence[Cells]]) -> dict[str, list[Cells]]:
    """The rows of each dataset, which a project may read in several ways."""
    together = dict[str, list[Cells]]()
    for use in uses:
        listed = together.setdefault(use.dataset_id, [])
        listed += [row for row in rows[use.key] if row not in listed or use is uses[0]]
    return together


def _of_all_rows(did: Outcome, plan: Plan) -> Block:
    """Everything that the project did with stand-ins, as far as it is for people to read."""
    outputs = dict[str, object]()
    for seq, (columns, rows) in did.outputs.items():
        shown = [{name: row[name] for name in columns if name not in _MADE_UP} for row in rows]
        outputs[str(seq)] = {"match": "subset", "rows": shown}
    changes = [_change(plan, step.seq, change) for step in plan.steps for change in did.changes(step.seq)][
        :_MOST_CHANGES
    ]
    if not any(rows for _, rows in did.outputs.values()):
        outputs = {}
    if not outputs and not changes:
        changes = [{"operation_seq": LOADING, "change_type": "created"}]
    return _expectations(outputs, changes)


def _change(plan: Plan, seq: int, change: ScenarioChange) -> Block:
    told: dict[str, object] = {}
    if change.change_type == "updated":
        told = {name: {"old": diff.old, "new": diff.new} for name, diff in change.diff.items()}
    found: Block = {"operation_seq": seq, "change_type": change.change_type, "row_match": _named(plan, change.after)}
    return {**found, "expected_diff": told} if told else found


def _require_same_way(real: Outcome, with_stand_ins: Outcome) -> None:
    """Raise UserError CutNotReproduced where stand-ins make a step do something else."""
    for step in real.plan.steps:
        kinds = [list(_kinds(each.changes(step.seq))) for each in (real, with_stand_ins)]
        if kinds[0] != kinds[1]:
            problem = f'with stand-ins, step {step.seq} "{step.name}" does something else: it depends on what they hide'
            raise UserError(CUT_NOT_REPRODUCED.anywhere(problem=problem))


def _kinds(changes: Sequence[ScenarioChange]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for change in changes:
        yield change.change_type, tuple(change.diff) if change.change_type == "updated" else ()
