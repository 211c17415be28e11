"""What an edited project would have made of a run: the steps that differ, the rows and totals that would move.

Compiled, not run: the steps that differ are evaluated on the rows of the run's trace that they reach.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Literal

from clew.change.alternative import Alternative, alternative_of
from clew.change.comparing import CompareQuestion
from clew.change.comparison import Amount, ColumnTotals
from clew.change.cone import Cone, TooManyRows
from clew.change.points import points_of
from clew.change.reached_rows import SupposedPoint
from clew.change.step_edits import StepEdit
from clew.change.supposed_checks import CheckImpact, checked_at
from clew.change.suppositions import Suppositions
from clew.change.what_if import MOST_SINGLE, WhatIf, answer_at, answer_at_once, supposed_point
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import INVALID_COMPARISON
from clew.events.values import CheckResult
from clew.lang import evaluate
from clew.plan.operations import OutputStep, Step
from clew.plan.plan import Plan
from clew.privacy.eyes import ColumnEyes
from clew.trace.reader import RunTrace
from clew.trace.results import Html, html_table, shown

StepFate = Literal["same", "changed", "added", "removed"]
_ROWS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class StepImpact:
    """A step of the run or of the edited project."""

    seq: int
    name: str
    fate: StepFate
    told: str
    """What changed, in words; empty if nothing did."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew plan --against --json`."""
        return {"seq": self.seq, "name": self.name, "fate": self.fate, "told": self.told}


@dataclass(frozen=True, slots=True)
class OutputImpact:
    """An output of the run or of the edited project."""

    seq: int
    name: str
    fate: StepFate
    difference: WhatIf | None
    """What would differ in it; None if only one of both has it."""
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()

    @property
    def moved(self) -> tuple[ColumnTotals, ...]:
        """The columns whose totals would differ."""
        if self.difference is None:
            return ()
        return tuple(each for each in self.difference.columns if each.has_totals and each.difference)

    @property
    def sentence(self) -> str:
        """What would happen to it, in a sentence."""
        if self.difference is None:
            return "only in the edited project" if self.fate == "added" else "no longer written"
        found = self.difference
        told = f"{found.changed:,} rows would change, {found.gone:,} would go, {found.new:,} would come"
        if not (found.changed or found.gone or found.new):
            told = f"the same {found.rows_before:,} rows"
        for names, what in ((self.columns_added, "new columns"), (self.columns_removed, "without the columns")):
            told += f"; {what} {', '.join(names)}" if names else ""
        return told

    def to_json(self) -> dict[str, object]:
        """The form of `clew plan --against --json`."""
        return {
            "seq": self.seq,
            "name": self.name,
            "fate": self.fate,
            "columns_added": list(self.columns_added),
            "columns_removed": list(self.columns_removed),
            "difference": None if self.difference is None else self.difference.to_json(),
        }


@dataclass(frozen=True, slots=True)
class PlanImpact:
    """What an edited project would have made of a run."""

    run_id: str
    project: str
    period: str
    steps: tuple[StepImpact, ...]
    reused: int
    """The steps before the first one that differs; what they did need not be calculated again."""
    outputs: tuple[OutputImpact, ...]
    controls: tuple[str, ...]
    """Control totals that the edited project no longer has, or has with another definition."""
    checks: tuple[CheckImpact, ...] = ()
    """What the checks of the edited project would find."""
    failed: tuple[str, ...] = ()
    """The totals for which the condition of the caller is true."""

    @property
    def broken(self) -> tuple[CheckImpact, ...]:
        """The checks that would fail."""
        return tuple(each for each in self.checks if not each.passes)

    @property
    def is_same(self) -> bool:
        """Whether the run would have given what it gave."""
        if any(each.breaks for each in self.checks):
            return False
        return all(
            each.fate in {"same", "changed"}
            and each.difference is not None
            and not (each.difference.changed or each.difference.gone or each.difference.new)
            and not (each.columns_added or each.columns_removed)
            for each in self.outputs
        )

    def to_json(self) -> dict[str, object]:
        """The form of `clew plan --against --json`."""
        return {
            "run_id": self.run_id,
            "project": self.project,
            "period": self.period,
            "is_same": self.is_same,
            "reused": self.reused,
            "steps": [each.to_json() for each in self.steps],
            "outputs": [each.to_json() for each in self.outputs],
            "controls": list(self.controls),
            "checks": [each.to_json() for each in self.checks],
            "failed": list(self.failed),
        }

    def to_markdown(self) -> str:
        """A summary for a pull request."""
        lines = [f"### {self.project}, tried on the run for {self.period}", ""]
        edits = [each for each in self.steps if each.fate != "same"]
        lines += [f"{self.reused} of {len(self.steps)} steps come before the first difference.", ""]
        lines += [f"- {_escaped(each.told)}" for each in edits] or ["- no operation differs"]
        for output in self.outputs:
            lines += ["", f"**{output.seq} {_escaped(output.name)}**: {output.sentence}"]
            if output.moved:
                lines += ["", "| total of | run | edited | difference |", "|---|---:|---:|---:|"]
                lines += [
                    f"| {_escaped(each.name)} | {shown(each.total_a)} | {shown(each.total_b)} | "
                    f"{shown(each.difference)} |"
                    for each in output.moved
                ]
        lines += [f"\n{_escaped(each)}" for each in self.controls]
        lines += [f"\n{_escaped(each.sentence)}" for each in self.broken]
        lines += [f"\n**Not within the limit:** {_escaped(each)}" for each in self.failed]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        rows = [
            [output.name, each.name, shown(each.total_a), shown(each.total_b), shown(each.difference)]
            for output in self.outputs
            for each in output.moved
        ]
        caption = f"{self.project} as edited, on the run for {self.period}: {self.reused} steps as they were"
        return Html(html_table(caption, ["output", "total of", "run", "edited", "difference"], rows))


def impact_of(
    trace: RunTrace,
    plan: Plan,
    eyes: Sequence[ColumnEyes],
    *,
    checked: Sequence[CheckResult] = (),
    limit: int = _ROWS_SHOWN,
) -> PlanImpact:
    """What a plan would have made of a run. Raises UserError if the run did not read what the plan needs.

    `checked` is what the checks of the run have found.
    """
    other = alternative_of(trace, plan)
    supposed = Suppositions((), other.plan, ("the project as edited",))
    before = {each.name: each for each in checked}
    found = None
    try:
        most = None if other.plan.checks else MOST_SINGLE  # checks are asked of single rows
        found = _evaluated(Cone(trace, supposed, most=most), other, eyes, before, limit)
    except TooManyRows:
        outputs = _evaluated_at_once(trace, supposed, other, eyes, limit)
        found = None if outputs is None else (outputs, [])
    outputs, checks = found or _evaluated(Cone(trace, supposed), other, eyes, before, limit)
    return PlanImpact(
        run_id=trace.run_id,
        project=plan.name,
        period=trace.period,
        steps=tuple(map(_step, other.entries)),
        reused=other.reused,
        outputs=tuple(outputs),
        controls=tuple(_controls(trace.plan, plan)),
        checks=tuple(checks),
    )


def _evaluated(
    cone: Cone, other: Alternative, eyes: Sequence[ColumnEyes], before: Mapping[str, CheckResult], limit: int
) -> tuple[list[OutputImpact], list[CheckImpact]]:
    """What outputs and checks would be, with rows evaluated one after the other."""
    cone.load()
    outputs, checks = list[OutputImpact](), list(checked_at(cone, other.plan.checks, 0, before))
    planned = iter(other.plan.steps)
    for number, entry in enumerate(other.entries):
        cone.take(entry)
        old, new = _sides(entry)
        if isinstance(old, OutputStep) or isinstance(new, OutputStep):
            outputs.append(_output(cone.trace, other, number, eyes, lambda at: _answer(cone, at, eyes, limit)))
        if new is not None:
            checks += checked_at(cone, other.plan.checks, next(planned).seq, before)
    return outputs, checks


def _answer(cone: Cone, at: SupposedPoint, eyes: Sequence[ColumnEyes], limit: int) -> WhatIf:
    return answer_at(cone, at, eyes, CompareQuestion(limit=limit))


def _evaluated_at_once(
    trace: RunTrace, supposed: Suppositions, other: Alternative, eyes: Sequence[ColumnEyes], limit: int
) -> list[OutputImpact] | None:
    """What outputs would be, with all rows evaluated at once; None where that cannot be done."""
    found = list[OutputImpact]()
    for number, entry in enumerate(other.entries):
        if not any(isinstance(step, OutputStep) for step in _sides(entry)):
            continue
        until = other.entries[: number + 1]

        def answer(at: SupposedPoint, until: Sequence[Step | StepEdit] = until) -> WhatIf | None:
            return answer_at_once(trace, supposed, until, at, eyes, CompareQuestion(limit=limit))

        output = _output(trace, other, number, eyes, answer)
        if output.difference is None and all(isinstance(step, OutputStep) for step in _sides(entry)):
            return None
        found.append(output)
    return found


def _sides(entry: Step | StepEdit) -> tuple[Step | None, Step | None]:
    return (entry.old, entry.new) if isinstance(entry, StepEdit) else (entry, entry)


def _step(entry: Step | StepEdit) -> StepImpact:
    if isinstance(entry, StepEdit):
        return StepImpact(entry.step.seq, entry.step.name, entry.kind, entry.told())
    return StepImpact(entry.seq, entry.name, "same", "")


def _output(
    trace: RunTrace,
    other: Alternative,
    number: int,
    eyes: Sequence[ColumnEyes],
    answer: Callable[[SupposedPoint], WhatIf | None],
) -> OutputImpact:
    entry = other.entries[number]
    old, new = _sides(entry)
    fate: StepFate = entry.kind if isinstance(entry, StepEdit) else "same"
    if not isinstance(old, OutputStep) or not isinstance(new, OutputStep):
        step = new or old
        assert step is not None  # noqa: S101 - an entry has one of them
        return OutputImpact(step.seq, step.name, fate, None)
    point, _ = points_of(trace, trace, old.seq, None)
    at = supposed_point(trace, other, point, number)
    seen = [name for name in (*old.columns, *at.new.columns) if all(each.is_clear(name) for each in eyes)]
    return OutputImpact(
        new.seq,
        new.name,
        fate,
        answer(at),
        tuple(name for name in at.new.columns if name not in old.columns and name in seen),
        tuple(name for name in old.columns if name not in at.new.columns and name in seen),
    )


def _controls(old: Plan, new: Plan) -> list[str]:
    """Control totals that would no longer be followed as they were."""
    after = {each.name: each for each in new.controls}
    found = list[str]()
    for each in old.controls:
        if each.name not in after:
            found.append(f'the control total "{each.name}" is gone')
        elif each != after[each.name]:
            was, now = each.expression.text, after[each.name].expression.text
            what = f"{was} -> {now}" if was != now else "its keys, tolerance or severity"
            found.append(f'the control total "{each.name}" changed: {what}')
    return found


def failing(impact: PlanImpact, condition: str) -> tuple[str, ...]:
    """The totals for which a condition is true, in words.

    The condition sees `output`, `column`, `before`, `after`, `delta`, `rows_changed`, `rows_gone` and `rows_new`.
    """
    found = list[str]()
    for output in impact.outputs:
        difference = output.difference
        if difference is None:
            continue
        counts = {"rows_changed": difference.changed, "rows_gone": difference.gone, "rows_new": difference.new}
        totals: list[ColumnTotals | None] = [each for each in difference.columns if each.has_totals]
        for each in totals or [None]:
            amounts = _amounts(each)
            row = {"output": output.name, "column": "" if each is None else each.name, **amounts, **counts}
            value = evaluate(condition, row)
            if value is not None and not isinstance(value, bool):
                problem = f'"{condition}" is not a condition'
                raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint="write ABS(delta) > 1000"))
            if value is True:
                told = f"{each.name} {shown(amounts['delta'])}" if each is not None else output.sentence
                found.append(f"{output.seq} {output.name}: {told}")
    return tuple(found)


def _amounts(column: ColumnTotals | None) -> dict[str, Amount]:
    """A total before and after; one that is no longer there has gone as a whole."""
    before = Decimal(0) if column is None or column.total_a is None else column.total_a
    after = Decimal(0) if column is None or column.total_b is None else column.total_b
    if isinstance(before, Decimal) and isinstance(after, Decimal):
        with localcontext(prec=100):
            return {"before": before, "after": after, "delta": after - before}
    return {"before": float(before), "after": float(after), "delta": float(after) - float(before)}


def _escaped(text: str) -> str:
    """Text in a table of Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
