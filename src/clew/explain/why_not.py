"""Why rows that were loaded are not in an output: the step that deleted them, or the selector that left them out."""

from dataclasses import dataclass

from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import NOT_AN_OUTPUT
from clew.explain.conditions import decisions
from clew.explain.labels import row_label
from clew.explain.selection import deleted_by, selector_texts
from clew.explain.tree import Decision, Deleted, StepRef
from clew.lang.evaluation import Row, evaluator
from clew.plan.steps import DeleteStep, OutputStep
from clew.trace.reader import RunTrace
from clew.trace.records import Source, State, TraceEntry

_MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The selector of the output was not true for the row."""

    selector: str
    resolved: str | None
    """The selector with named selectors put in place, where it uses any."""
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class InOutput:
    """The row is in the output."""

    state: State
    """The columns that the output has, as it wrote them."""


Verdict = Deleted | LeftOut | InOutput


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What became of a row that was loaded."""

    row_id: str
    label: str
    source: Source | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of the loaded rows that a condition names."""

    run_id: str
    where: str
    dataset: str
    period: str
    output: StepRef
    rows: tuple[Whereabouts, ...]
    """Empty where no loaded row matches: it was never loaded for this period."""
    has_more: bool


def why_not(trace: RunTrace, where: str, output_seq: int | None = None, limit: int = _MOST_ROWS) -> WhyNot:
    """Why the loaded rows that match a condition are not in an output, the last one where none is given.

    The condition is over the rows as they were loaded. A row that is in the output after all is shown as such.
    """
    output = output_step(trace, output_seq)
    found = trace.search(where, at=0, limit=limit)
    return WhyNot(
        run_id=trace.run_id,
        where=where,
        dataset=trace.plan.input.name,
        period=trace.period,
        output=StepRef.of(output),
        rows=tuple(_whereabouts(trace, row.row_id, output) for row in found.rows),
        has_more=found.has_more,
    )


def output_step(trace: RunTrace, seq: int | None) -> OutputStep:
    """An output of the plan, the last one where none is given."""
    outputs = [step for step in trace.plan.steps if isinstance(step, OutputStep)]
    if seq is None:
        if not outputs:
            raise UserError(NOT_AN_OUTPUT.anywhere(problem="the plan writes no output"))
        return outputs[-1]
    step = trace.run.step(seq)
    if not isinstance(step, OutputStep):
        listed = ", ".join(f'{each.seq} "{each.name}"' for each in outputs) or "none"
        problem = f'step {seq} "{step.name}" is no output; outputs are {listed}'
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=problem))
    return step


def _whereabouts(trace: RunTrace, row_id: str, output: OutputStep) -> Whereabouts:
    entries = [entry for entry in trace.history(row_id).entries if entry.operation_seq <= output.seq]
    loaded = entries[0]
    label = row_label(loaded.full_state, trace.plan.input.natural_key, None)
    return Whereabouts(row_id, label, loaded.source, _verdict(trace, row_id, entries, output))


def _verdict(trace: RunTrace, row_id: str, entries: list[TraceEntry], output: OutputStep) -> Verdict:
    columns = [name for name, _ in trace.run.columns(trace.run.before(output.seq))]
    state = {name: entries[-1].full_state.get(name) for name in columns}
    if state["_deleted"] and not output.include_deleted:
        return _deletion(trace, row_id, entries)
    if output.selector is not None:
        seen = _seen(trace, row_id, state)
        if evaluator(output.selector.tree)(seen) is not True:
            text, resolved = selector_texts(output.selector)
            return LeftOut(text, resolved, decisions(output.selector.tree, seen))
    return InOutput({name: state.get(name, row_id) for name in output.columns})


def _deletion(trace: RunTrace, row_id: str, entries: list[TraceEntry]) -> Deleted:
    index = next(index for index, entry in enumerate(entries) if entry.change_type == "deleted")
    step = trace.run.step(entries[index].operation_seq)
    assert isinstance(step, DeleteStep)  # noqa: S101 - no other step deletes
    before = [name for name, _ in trace.run.columns(trace.run.before(step.seq))]
    state = {name: entries[index - 1].full_state.get(name) for name in before}
    return deleted_by(step, _seen(trace, row_id, state))


def _seen(trace: RunTrace, row_id: str, state: State) -> Row:
    return Row({trace.plan.input.table: {**state, "_row_id": row_id}}, trace.today)
