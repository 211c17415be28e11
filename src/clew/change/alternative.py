"""Another plan for the data of a run: its steps beside those of the run, in one order.

The data are those that the run read. A plan that reads something else cannot be tried on them.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clew.change.step_edits import StepEdit, aligned, is_same_step, partners_of
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import NOT_RECOMPUTABLE
from clew.lang.typed import Apply, ColumnValue, Constant, Convert
from clew.lang.types import Type
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep, Step
from clew.plan.plan import Plan
from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan, step by step beside the plan of a run."""

    plan: Plan
    entries: tuple[Step | StepEdit, ...]
    """Steps that both have, and edits, in an order that is that of both plans."""

    @property
    def edits(self) -> tuple[StepEdit, ...]:
        """What differs."""
        return tuple(each for each in self.entries if isinstance(each, StepEdit))

    @property
    def reused(self) -> int:
        """How many steps come before the first edit: what they did is in the trace as it would be."""
        first = (number for number, each in enumerate(self.entries) if isinstance(each, StepEdit))
        return next(first, len(self.entries))


def alternative_of(trace: RunTrace, plan: Plan) -> Alternative:
    """A plan beside that of a run. Raises UserError if the run did not read what the plan needs."""
    _require_same_input(trace.plan, plan)
    uses = {use.key: _use_of_run(trace.plan, use) for use in plan.datasets_read[1:]}
    uses[plan.input.key] = trace.plan.input
    steps, extensions = _with_uses(plan.steps, uses), _with_uses(plan.extensions, uses)
    on_run = replace(plan, input=trace.plan.input, steps=steps, extensions=extensions)
    done = [step for step in trace.plan.steps if trace.run.not_done.get(step.seq) is None]
    return Alternative(on_run, tuple(aligned(done, on_run.steps, partners_of(done, on_run.steps), _is_same)))


def _require_same_input(run: Plan, plan: Plan) -> None:
    mine = {column.name: column.type for column in run.input.columns}
    if run.input.dataset_id != plan.input.dataset_id or run.input.table != plan.input.table:
        problem = f"the run read {run.input.name}, and the project now starts from {plan.input.name}"
        raise UserError(NOT_RECOMPUTABLE.anywhere(problem=problem, hint="run the project"))
    other = [column.name for column in plan.input.columns if mine.get(column.name) != column.type]
    if other:
        problem = f"the run did not read {', '.join(other)} of {plan.input.name}, or with another type"
        raise UserError(NOT_RECOMPUTABLE.anywhere(problem=problem, hint="run the project"))


def _use_of_run(run: Plan, use: DatasetUse) -> DatasetUse:
    """A dataset as the run read it."""
    found = [
        each
        for each in run.datasets_read
        if (each.dataset_id, each.table, each.all_days) == (use.dataset_id, use.table, use.all_days)
    ]
    for each in sorted(found, key=lambda each: each.pinned_version != use.pinned_version):
        types = {column.name: column.type for column in each.columns}
        if all(types.get(column.name) == column.type for column in use.columns):
            return each
    what = f"read {use.name}" if not found else f"read all columns of {use.name} that the project needs now"
    raise UserError(NOT_RECOMPUTABLE.anywhere(problem=f"the run did not {what}", hint="run the project"))


def _with_uses(value: Any, uses: Mapping[str, DatasetUse]) -> Any:  # noqa: ANN401 - any part of a step
    """A part of a step with the datasets of the run in place."""
    match value:
        case DatasetUse():
            return uses.get(value.key, value)
        case Constant() | ColumnValue() | Apply() | Convert() | Type():
            return value
        case tuple():
            return tuple(_with_uses(item, uses) for item in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            changed = {name: new for name, old in fields.items() if (new := _with_uses(old, uses)) != old}
            return replace(value, **changed) if changed else value
        case _:
            return value


def _is_same(one: Step, other: Step) -> bool:
    """Whether two steps do the same to rows, and write the same columns."""
    return is_same_step(one, other) and _columns(one) == _columns(other)


def _columns(step: Step) -> tuple[str, ...]:
    """The columns that an output writes."""
    return step.columns if isinstance(step, OutputStep) else ()
