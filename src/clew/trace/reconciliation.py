"""Reconciliation: for every output, what came in is what was written, deleted and left out.

    loaded + appended + created + changed by updates = written + deleted + left out by the selector

in rows and in every control total. Rows that the check of the load found unfit must be those in quarantine.

The two sides come from different witnesses. What was written and left out was
counted and added up by Spark in the job that wrote the output. The rest is read from the trace without Spark. Rows need
no reading at all, since every step records how many it created and deleted.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from decimal import Decimal
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics.codes.runs import TOTALS_DIFFER
from clew.events.snapshot import RunSnapshot
from clew.events.values import LOAD_STEP
from clew.lang.literals import text_of_value
from clew.lang.text_form import text_of
from clew.lang.typed import Value
from clew.plan.group_marks import mark_of
from clew.plan.operations import OutputStep, Step
from clew.plan.planned_controls import PlannedControl
from clew.plan.recorded_controls import controls_at, is_protected
from clew.plan.steps import ChangingStepBase, CreatingStepBase
from clew.storage.quarantine import FOUND
from clew.trace.json_values import json_state
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues
from clew.trace.run_parts import periods_of
from clew.trace.totals import NOTHING, Key, RowTotal, Totals, added, selected_totals, summed, totals_of, without

Entry = Literal["loaded", "appended", "created", "updated", "deleted", "left_out", "written", "unfit", "quarantined"]
_GOING_OUT = frozenset({"deleted", "left_out", "written", "quarantined"})


@dataclass(frozen=True, slots=True)
class WaterfallLine:
    """One number between source and output. Deleted, left out and written are what goes out."""

    what: Entry
    seq: int
    """The step; 0 for loading."""
    name: str
    rows: int
    amount: Decimal | None = None
    """None where only rows are counted."""
    unknown: frozenset[str] = frozenset()
    """The columns of its group that rows do not have yet after this step."""

    @property
    def goes_out(self) -> bool:
        """Whether it is on the right side of the equation."""
        return self.what in _GOING_OUT

    def to_json(self) -> dict[str, object]:
        """The form of `clew reconcile --json`."""
        amount = None if self.amount is None else f"{self.amount:f}"
        return {"what": self.what, "seq": self.seq, "name": self.name, "rows": self.rows, "amount": amount}


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """The question to the trace that shows the rows behind a number."""

    at: int
    """After this step."""
    where: str | None
    """A condition; None for all rows."""
    step: int | None = None
    """The step whose records they are, where it created, changed or deleted them."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew reconcile --json`."""
        return {"at": self.at, "where": self.where, "step": self.step}


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All numbers from the source to one output: of rows, or of a control total, perhaps for one group of rows."""

    output: OutputStep
    control: PlannedControl | None
    lines: tuple[WaterfallLine, ...]
    key: RowValues = field(default_factory=dict)
    """The values of the columns that a control total is added up by; empty for the whole."""
    problem: str | None = None
    """Why there is no answer."""

    @property
    def difference(self) -> tuple[int, Decimal | None]:
        """What came in without what went out, in rows and as an amount."""
        total = NOTHING
        for line in self.lines:
            each = RowTotal(line.rows, line.amount or Decimal(0))
            total = total - each if line.goes_out else total + each
        return total.rows, None if self.control is None else total.amount

    @property
    def ties(self) -> bool:
        """Whether both sides are the same, in amounts within the tolerance."""
        rows, amount = self.difference
        is_within = self.control is None or amount is None or abs(amount) <= self.control.largest_difference
        return self.problem is None and rows == 0 and is_within

    @property
    def fails_run(self) -> bool:
        """Whether a run that ends with this must not be COMPLETED. Rows that are missing are never just a warning."""
        return not self.ties and (self.control is None or self.control.on_difference == "fail")

    @property
    def title(self) -> str:
        """What it is about, without values of rows."""
        what = "rows" if self.control is None else f'"{self.control.name}"'
        return f'{what} of step {self.output.seq} "{self.output.name}"'

    def behind(self, line: WaterfallLine) -> RowsBehind:
        """Which rows a number stands for."""
        group = [_equals(name, value) for name, value in self.key.items() if name not in line.unknown]
        alive = [] if self.output.include_deleted else ["_deleted = FALSE"]
        if line.what in {"unfit", "quarantined"}:
            return RowsBehind(0, "FALSE")  # they never entered the run: `clew quarantine` shows them
        if line.what in {"written", "left_out"}:
            return RowsBehind(line.seq, " AND ".join([*self._selected(line), *alive, *group]) or None)
        if line.what == "deleted":
            return RowsBehind(line.seq, " AND ".join(["_deleted = TRUE", *group]), line.seq)
        if line.what == "loaded":
            return RowsBehind(line.seq, " AND ".join([*alive, *group]) or None)
        return RowsBehind(line.seq, " AND ".join(group) or None, line.seq)

    def _selected(self, line: WaterfallLine) -> list[str]:
        selector = self.output.selector
        if selector is None:
            return []
        condition = text_of(selector.tree)
        return [f"({condition})" if line.what == "written" else f"COALESCE({condition}, FALSE) = FALSE"]

    def to_json(self) -> dict[str, object]:
        """The form of `clew reconcile --json`."""
        rows, amount = self.difference
        return {
            "control": None if self.control is None else self.control.name,
            "key": json_state(self.key),
            "lines": [{**line.to_json(), "rows_behind": self.behind(line).to_json()} for line in self.lines],
            "difference": {"rows": rows, "amount": None if amount is None else f"{amount:f}"},
            "tolerance": None if self.control is None else self.control.tolerance,
            "on_difference": "fail" if self.control is None else self.control.on_difference,
            "ties": self.ties,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All outputs of a run with their waterfalls: rows first, then control totals, each whole before its groups."""

    run_id: str
    waterfalls: tuple[Waterfall, ...]

    @property
    def ties(self) -> bool:
        """Whether everything is accounted for."""
        return all(each.ties for each in self.waterfalls)

    @property
    def controls(self) -> tuple[PlannedControl, ...]:
        """The control totals that it has."""
        return tuple({each.control.name: each.control for each in self.waterfalls if each.control is not None}.values())

    def of_output(self, seq: int) -> tuple[Waterfall, ...]:
        """The waterfalls of one output."""
        return tuple(each for each in self.waterfalls if each.output.seq == seq)

    @property
    def outputs(self) -> tuple[OutputStep, ...]:
        """The outputs, in their order."""
        return tuple({each.output.seq: each.output for each in self.waterfalls}.values())

    def to_json(self) -> dict[str, object]:
        """The form of `clew reconcile --json`."""
        return {
            "run_id": self.run_id,
            "ties": self.ties,
            "outputs": [
                {"seq": step.seq, "name": step.name, "totals": [each.to_json() for each in self.of_output(step.seq)]}
                for step in self.outputs
            ],
        }


def reconcile(
    trace: RunTrace,
    snapshot: RunSnapshot,
    is_wanted: Callable[[PlannedControl], bool] = lambda _control: True,
    *,
    outputs: Collection[int] | None = None,
) -> Reconciliation:
    """Follow rows and the control totals that are wanted from the source to every output that the run has written.

    With `outputs`, to those of these steps.
    """
    chosen = [step for step in trace.plan.outputs if outputs is None or step.seq in outputs]
    return Reconciliation(trace.run_id, tuple(_Reconciler(trace, snapshot).waterfalls(chosen, is_wanted)))


class _Reconciler:
    def __init__(self, trace: RunTrace, snapshot: RunSnapshot) -> None:
        self._trace = trace
        self._plan = trace.plan
        self._counts = {step.seq: step.counts for step in snapshot.steps if step.step_id != LOAD_STEP}
        self._amounts = {step.seq: step.amounts for step in snapshot.steps}
        self._load = next((step for step in snapshot.steps if step.step_id == LOAD_STEP), None)
        self._known = dict[tuple[str | None, int, bool], Totals]()
        self._refused = {
            step.seq: f"the output was not published: {step.error.message}"
            for step in snapshot.steps
            if step.error is not None and step.error.code == TOTALS_DIFFER.name
        }

    def waterfalls(
        self, outputs: Iterable[OutputStep], is_wanted: Callable[[PlannedControl], bool]
    ) -> Iterator[Waterfall]:
        for output in outputs:
            if output.seq in self._trace.not_done:
                if output.seq in self._refused:
                    yield Waterfall(output, None, tuple(self._rows_in(output)), problem=self._refused[output.seq])
                continue
            yield Waterfall(output, None, tuple(self._lines_of_rows(output)))
            for control in controls_at(self._plan, output):
                if is_wanted(control):
                    yield from self._waterfalls_of(control, output)

    # Rows, from what the steps counted

    def _lines_of_rows(self, output: OutputStep) -> Iterator[WaterfallLine]:
        yield from self._rows_in(output)
        counts = self._counts.get(output.seq, {})
        written = counts.get("rows_written", 0)
        if output.selector is not None:
            left_out = counts.get("rows_left_out")
            if left_out is None:  # a run of an older version
                left_out = summed(self._left_out(None, output)).rows
            yield WaterfallLine("left_out", output.seq, output.name, left_out)
        yield WaterfallLine("written", output.seq, output.name, written)

    def _rows_in(self, output: OutputStep) -> Iterator[WaterfallLine]:
        """What came in and was deleted before an output."""
        yield WaterfallLine("loaded", 0, self._plan.input.name, self._rows_loaded(output))
        yield from self._kept_apart()
        for step in self._steps_before(output):
            counts = self._counts.get(step.seq, {})
            if isinstance(step, CreatingStepBase):
                yield WaterfallLine(_entry(step), step.seq, step.name, counts.get("rows_created", 0))
            elif _deletes(step) and not output.include_deleted:
                yield WaterfallLine("deleted", step.seq, step.name, counts.get("rows_deleted", 0))

    def _kept_apart(self) -> Iterator[WaterfallLine]:
        """Rows that are not as their dataset says: those that the check of the load found, and those in quarantine."""
        for part in self._trace.parts:
            found = (part.details or {}).get(FOUND)
            if part.kind == "quarantine" and isinstance(found, int) and (found or part.counted):
                yield WaterfallLine("unfit", 0, part.name, found)
                yield WaterfallLine("quarantined", 0, part.name, part.counted)

    def _rows_loaded(self, output: OutputStep) -> int:
        """The rows that the run began with. Where files hold others too, only reading tells."""
        part = self._trace.run.loaded
        holds_others = periods_of(part, self._plan.input) is not None or (part.details or {}).get("format") == "managed"
        counted = self._load.counts.get("loaded") if self._load is not None else None
        if holds_others or counted is None:
            return summed(self._totals(None, 0, include_deleted=output.include_deleted)).rows
        return counted

    # Amounts, from the trace and from what Spark added up

    def _waterfalls_of(self, control: PlannedControl, output: OutputStep) -> Iterator[Waterfall]:
        before = self._trace.run.before(output.seq)
        flow = list(self._flow(control, output))
        closing = self._totals(control, before, include_deleted=output.include_deleted)
        ends = self._ends(control, output, closing)
        whole = [_line(what, seq, name, summed(totals)) for what, seq, name, totals in flow]
        recorded = self._amounts.get(output.seq, {}).get(control.name)
        lost = recorded is None and not is_protected(self._plan, control)
        problem = "Spark could not add it up: it has more than 38 digits" if lost else None
        total = Waterfall(output, control, (*whole, *self._recorded_ends(output, ends, recorded)), problem=problem)
        yield replace(total, problem=_wrong_groups(recorded, ends)) if total.ties else total
        for key in sorted({key for _, _, _, totals in flow for key in totals} | closing.keys(), key=_sortable):
            if not control.by:
                return
            lines = [_line(what, seq, name, totals.get(key, NOTHING)) for what, seq, name, totals in (*flow, *ends)]
            kept = [
                replace(line, unknown=self._unknown(control, line.seq)) for line in lines if line.rows or line.amount
            ]
            yield Waterfall(output, control, tuple(kept), dict(zip(control.by, key, strict=True)))

    def _unknown(self, control: PlannedControl, seq: int) -> frozenset[str]:
        return frozenset(control.by) - {name for name, _ in self._trace.run.columns(seq)}

    def _flow(self, control: PlannedControl, output: OutputStep) -> "Iterator[_Flow]":
        """What each step did to the totals."""
        include_deleted = output.include_deleted
        current: Totals = self._totals(control, 0, include_deleted=include_deleted)
        yield "loaded", 0, self._plan.input.name, current
        for step in self._steps_before(output):
            if isinstance(step, CreatingStepBase):
                part = next((part for part in self._trace.run.created if part.seq == step.seq), None)
                rows = None if part is None else self._trace.created(part)
                made = {} if rows is None else totals_of(self._trace, rows, control, include_deleted=include_deleted)
                yield _entry(step), step.seq, step.name, made
                current = added(current, made)
            elif _deletes(step) and not include_deleted:
                after = self._totals(control, step.seq, include_deleted=False)
                yield "deleted", step.seq, step.name, without(current, after)
                current = after
            elif control.columns & set(step.columns_set):
                after = self._totals(control, step.seq, include_deleted=include_deleted)
                yield "updated", step.seq, step.name, without(after, current)
                current = after

    def _ends(self, control: PlannedControl, output: OutputStep, closing: Totals) -> "list[_Flow]":
        """What the trace says is left out and written, as far as that is needed."""
        if output.selector is None:
            return [("written", output.seq, output.name, closing)]
        if not control.by and control.name in self._amounts.get(output.seq, {}):
            return []  # Spark has added it up, and there are no groups to tell apart.
        left_out = self._left_out(control, output)
        return [
            ("left_out", output.seq, output.name, left_out),
            ("written", output.seq, output.name, without(closing, left_out)),
        ]

    def _recorded_ends(
        self, output: OutputStep, ends: "list[_Flow]", recorded: Mapping[str, str] | None
    ) -> Iterator[WaterfallLine]:
        """What went out as Spark has recorded it; what the trace says where amounts must not be recorded."""
        counts = self._counts.get(output.seq, {})
        if recorded is None:
            yield from (_line(what, seq, name, summed(totals)) for what, seq, name, totals in ends)
            return
        if output.selector is not None:
            left_out = counts.get("rows_left_out", 0)
            yield WaterfallLine("left_out", output.seq, output.name, left_out, Decimal(recorded["left_out"]))
        written = Decimal(recorded["written"])
        yield WaterfallLine("written", output.seq, output.name, counts.get("rows_written", 0), written)

    def _left_out(self, control: PlannedControl | None, output: OutputStep) -> Totals:
        selector = output.selector
        if selector is None:
            return {}
        before, include_deleted = self._trace.run.before(output.seq), output.include_deleted
        rows = self._trace.working(before)
        taken = selected_totals(self._trace, rows, control, selector.tree, include_deleted=include_deleted)
        return without(self._totals(control, before, include_deleted=include_deleted), taken)

    def _totals(self, control: PlannedControl | None, at: int, *, include_deleted: bool) -> Totals:
        key = (control.name if control is not None else None, at, include_deleted)
        if key not in self._known:
            rows = self._trace.working(at)
            self._known[key] = totals_of(self._trace, rows, control, include_deleted=include_deleted)
        return self._known[key]

    def _steps_before(self, output: OutputStep) -> Iterator[Step]:
        for step in self._plan.steps:
            if step.seq < output.seq and step.seq not in self._trace.not_done:
                yield step


_Flow = tuple[Entry, int, str, Totals]


def _entry(step: CreatingStepBase) -> Entry:
    return "created" if step.made_from is None else "appended"


def _deletes(step: Step) -> bool:
    return isinstance(step, ChangingStepBase) and step.traced_as == "delete"


def _wrong_groups(recorded: Mapping[str, str] | None, ends: "list[_Flow]") -> str | None:
    """Whether Spark saw other groups than the trace has, though both may add up to the same."""
    for what, _, _, totals in ends:
        told = (recorded or {}).get(f"{what}_groups")
        if told is not None and told != mark_of({key: (each.rows, each.amount) for key, each in totals.items()}):
            return f"what was {'left out' if what == 'left_out' else what} belongs to other groups than the trace says"
    return None


def _line(what: Entry, seq: int, name: str, total: RowTotal) -> WaterfallLine:
    return WaterfallLine(what, seq, name, total.rows, total.amount)


def _equals(name: str, value: Value) -> str:
    column = "`" + name.replace("`", "``") + "`"
    return f"{column} IS NULL" if value is None else f"{column} = {text_of_value(value)}"


def _sortable(key: Key) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, str(value)) for value in key)
