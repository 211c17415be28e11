"""Why rows are not in an output: a step deleted them, a selector left them out, they are of another period."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

from clew import budgets
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import NOT_AN_OUTPUT
from clew.explain.kept_rows import kept_row
from clew.explain.row_conditions import decisions, deleted_by, selector_texts
from clew.explain.tree import Decision, Deleted, StepRef
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import columns_of
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.names import name_of
from clew.plan.operations import ChangingStep, OutputStep
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID
from clew.trace.history import source_of
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues, Source, TraceEntry
from clew.trace.results import FoundRows
from clew.trace.run_parts import NotDone, periods_of

_MOST_ROWS = 20
_MOST_ELSEWHERE = 5


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

    state: RowValues
    """The columns that the output has, as it wrote them."""
    not_written: RowValues
    """The columns that the row has and the output has not."""


@dataclass(frozen=True, slots=True)
class MadeLater:
    """The row was not there yet when the output was written."""


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The run has not written the output: it was skipped, or the run ended before."""

    outcome: NotDone


@dataclass(frozen=True, slots=True)
class DeletedBefore:
    """The row was deleted already when its dataset was registered."""


Verdict = Deleted | DeletedBefore | LeftOut | InOutput | MadeLater | NotWritten


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What happened to a row."""

    row_id: str
    label: str
    source: Source | None
    verdict: Verdict
    created_by: StepRef | None = None
    """The step that made it; None if it was loaded."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A row that matches and that the run has not loaded, mostly for being of another period."""

    period: str | None
    label: str
    source: Source | None
    run_id: str | None = None
    """The run that loaded it for its period; None if it is in files that this run has read too."""
    reason: str | None = None
    """Why the run has not loaded it, where it was found in a file that no run is known to have read it from."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule of the resolver, and why it did not apply; None for the one that did."""

    rule: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class NeverLoaded:
    """Where the run looked for a row that it did not find, and where there is one."""

    read: str | None
    """What the run has read, in words."""
    rules: tuple[RuleOutcome, ...]
    elsewhere: tuple[Elsewhere, ...]
    not_looked_into: int = 0
    """Files that might hold such a row and were too many or too large to look into."""
    upstream: "tuple[WhyNot, ...]" = ()
    """What became of such rows in the runs that registered what this run read."""


class OtherData(Protocol):
    """What is known beside the run itself, for rows that it never loaded."""

    def rules(self) -> Sequence[RuleOutcome]:
        """The rules that decided where the input of the run lay, as far as they are known."""
        ...

    def elsewhere(self, where: str, limit: int) -> Sequence[Elsewhere]:
        """Rows that other runs have loaded from the same dataset, and rows in files that rules name."""
        ...

    def not_looked_into(self) -> int:
        """Files that might hold such a row and were not looked into."""
        ...

    def upstream(self, trace: RunTrace) -> "Sequence[WhyNot]":
        """The same question, asked of the runs that registered what the run read."""
        ...


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What happened to the rows that match a condition."""

    run_id: str
    where: str
    dataset: str
    period: str
    output: StepRef
    rows: tuple[Whereabouts, ...]
    """Empty if no row matches: it was never loaded for this period."""
    has_more: bool
    never_loaded: NeverLoaded | None = None
    """Where else it may be, where no row matches."""


def why_not(
    trace: RunTrace,
    where: str,
    output_seq: int | None = None,
    limit: int = _MOST_ROWS,
    others: OtherData | None = None,
) -> WhyNot:
    """Why the rows that match a condition are not in an output, the last one where none is given.

    The condition is over the rows as they were loaded, or else as steps have made them. A row that is in the output
    after all is shown as such.
    """
    output = output_step(trace, output_seq)
    found = _found(trace, where, output, limit)
    return WhyNot(
        run_id=trace.run_id,
        where=where,
        dataset=trace.plan.input.name,
        period=trace.period,
        output=StepRef.of(output),
        rows=tuple(_whereabouts(trace, row.row_id, output) for row in found.rows),
        has_more=found.has_more,
        never_loaded=None if found.rows else _never_loaded(trace, where, others),
    )


def _found(trace: RunTrace, where: str, output: OutputStep, limit: int) -> FoundRows:
    """As they were loaded, or before the output, or at the end: the first of them that has any."""
    last = trace.run.last
    for seq in dict.fromkeys((0, min(trace.run.before(output.seq), last), last)):
        try:
            found = trace.search(where, at=seq, limit=limit)
        except UserError:
            if seq == last:
                raise
            continue
        if found.rows or seq == last:
            return found
    raise AssertionError(last)


def _never_loaded(trace: RunTrace, where: str, others: OtherData | None) -> NeverLoaded:
    elsewhere = list(islice(chain(_kept_apart(trace, where), _other_periods(trace, where)), _MOST_ELSEWHERE))
    rules: Sequence[RuleOutcome] = ()
    unseen = 0
    upstream: Sequence[WhyNot] = ()
    if others is not None:
        rules = others.rules()
        elsewhere += others.elsewhere(where, _MOST_ELSEWHERE - len(elsewhere))
        unseen = 0 if elsewhere else others.not_looked_into()
        upstream = others.upstream(trace)
    details = trace.run.loaded.details or {}
    read = details.get("sources") or (f"version {details['version']}" if details.get("version") else None)
    return NeverLoaded(None if read is None else str(read), tuple(rules), tuple(elsewhere), unseen, tuple(upstream))


def _kept_apart(trace: RunTrace, where: str) -> Iterator[Elsewhere]:
    """Rows of the run's input that are in quarantine, as far as their values could be read."""
    use = trace.plan.input
    try:
        condition = trace.condition(where, 0)
    except UserError:
        return
    if any(column == "_row_id" for _, column in columns_of(condition)):
        return
    decide = evaluator(condition)
    for row in trace.quarantined(use):
        budgets.check()
        cells = {"_period": None, "_labels": "", "_deleted": False, **row.values}
        if decide(Row({use.table: cells}, trace.today)) is True:
            period = cells["_period"]
            reason = f"quarantined at load: {'; '.join(map(str, row.problems))}"
            if row.correction is not None:
                reason = f"{reason}; its correction in {row.correction} was loaded"
            source = Source(use.dataset_id, file=row.file, line=row.line, unit=row.unit)
            yield Elsewhere(None if period is None else str(period), name_of(cells, use.names), source, reason=reason)


def _other_periods(trace: RunTrace, where: str) -> Iterator[Elsewhere]:
    """Rows in the files of the run's input that are of other periods."""
    use = trace.plan.input
    if periods_of(trace.run.loaded, use) is None:
        return
    try:
        condition = trace.condition(where, 0)
    except UserError:
        return
    if any(column in {"_labels", "_deleted", "_row_id"} for _, column in columns_of(condition)):
        return
    names = [column.name for column in use.columns]
    part = trace.run.loaded
    wanted = [*names, SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID]
    found = trace.pinned_of_all_periods(use).matching(condition, wanted, trace.see)
    for _, cells in found:
        period = cells.get("_period")
        source = source_of(part, cells[SOURCE_FILE], cells[SOURCE_LINE], cells[SOURCE_ROW_ID])
        yield Elsewhere(None if period is None else str(period), name_of(cells, use.names), source)


def output_step(trace: RunTrace, seq: int | None) -> OutputStep:
    """An output of the plan, the last one where none is given."""
    outputs = trace.plan.outputs
    if seq is None:
        if not outputs:
            raise UserError(NOT_AN_OUTPUT.anywhere(problem="the plan writes no output"))
        return outputs[-1]
    step = trace.run.step(seq)
    if not isinstance(step, OutputStep):
        listed = ", ".join(f'{each.seq} "{each.name}"' for each in outputs) or "none"
        problem = f'step {seq} "{step.name}" is not an output; outputs are {listed}'
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=problem))
    return step


def _whereabouts(trace: RunTrace, row_id: str, output: OutputStep) -> Whereabouts:
    entries = list(trace.history(row_id).entries)
    first = entries[0]
    created_by = trace.run.step(first.operation_seq) if first.operation_seq else None
    label = trace.name(row_id, first.full_state)
    creator = None if created_by is None else StepRef.of(created_by)
    return Whereabouts(row_id, label, first.source, _verdict(trace, row_id, entries, output), creator)


def _verdict(trace: RunTrace, row_id: str, entries: list[TraceEntry], output: OutputStep) -> Verdict:
    entries = [entry for entry in entries if entry.operation_seq <= output.seq]
    if not entries:
        return MadeLater()
    columns = [name for name, _ in trace.run.columns(trace.run.before(output.seq))]
    state = {name: entries[-1].full_state.get(name) for name in columns}
    if state["_deleted"] and not output.include_deleted:
        return DeletedBefore() if entries[0].full_state["_deleted"] else _deletion(trace, row_id, entries)
    if output.seq in trace.not_done:
        return NotWritten(trace.not_done[output.seq])
    if output.selector is not None:
        seen = _seen(trace, row_id, state)
        if evaluator(output.selector.tree)(seen) is not True:
            text, resolved = selector_texts(output.selector)
            return LeftOut(text, resolved, decisions(output.selector.tree, seen))
    not_written = {name: value for name, value in state.items() if name not in {*output.columns, *SYSTEM_COLUMNS}}
    return InOutput({name: state.get(name, row_id) for name in output.columns}, not_written)


def _deletion(trace: RunTrace, row_id: str, entries: list[TraceEntry]) -> Deleted:
    index = next(index for index, entry in enumerate(entries) if entry.change_type == "deleted")
    step = trace.run.step(entries[index].operation_seq)
    before = [name for name, _ in trace.run.columns(trace.run.before(step.seq))]
    state = {name: entries[index - 1].full_state.get(name) for name in before}
    assert isinstance(step, ChangingStep)  # noqa: S101 - no other step deletes
    return deleted_by(step, _seen(trace, row_id, state), kept_row(trace, step, state, entries[index]))


def _seen(trace: RunTrace, row_id: str, state: RowValues) -> Row:
    return Row({trace.plan.input.table: {**state, "_row_id": row_id}}, trace.today)
