"""Control totals as the compiler checks them.

Their columns must exist at the end of the plan. Before the step that adds a column, rows have no value in it and
contribute nothing; what the step then sets counts as its change.
"""

from collections.abc import Sequence

from clew.definitions.controls import ControlTotal
from clew.diagnostics import Problems
from clew.diagnostics.codes.project import INVALID_CONTROL
from clew.diagnostics.codes.workspace import DUPLICATE_ID
from clew.lang import Scope, Table
from clew.lang.failing import can_fail
from clew.lang.types import NULL, Kind
from clew.plan.expressions import Expressions
from clew.plan.operations.context import UNGROUPABLE, PlanningState, grouping_columns
from clew.plan.planned_controls import PlannedControl
from clew.plan.steps import PlannedExpression

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


def plan_controls(
    written: Sequence[ControlTotal],
    final: PlanningState,
    at_outputs: Sequence[PlanningState],
    expressions: Expressions,
    problems: Problems,
) -> tuple[PlannedControl, ...]:
    """The control totals of a project. What is wrong with one is reported, and leaves it out."""
    scope = Scope((Table(final.table, final.schema.types, is_opaque=final.is_opaque),))
    names, found = dict[str, ControlTotal](), list[PlannedControl]()
    for each in written:
        first = names.setdefault(each.name, each)
        if first is not each:
            span, where = each.place("name"), f"line {first.span.line}"
            problems.report(DUPLICATE_ID.at(span, kind="control total", id=each.name, first=where))
        planned = _planned(each, scope, expressions, problems)
        if planned is not None and _reaches_an_output(each, planned, at_outputs, problems):
            found.append(planned)
    return tuple(found)


def _planned(
    written: ControlTotal, scope: Scope, expressions: Expressions, problems: Problems
) -> PlannedControl | None:
    value = expressions.value(written.expression, scope, "in a control total", None)
    by = grouping_columns(written.by, scope, problems, UNGROUPABLE)
    if value is None or len(by) < len(written.by) or not _adds_up(written, value, problems):
        return None
    return PlannedControl(written.name, value, by, f"{written.tolerance:f}", written.on_difference.value)


def _adds_up(written: ControlTotal, value: PlannedExpression, problems: Problems) -> bool:
    """Whether an expression has a number, or nothing, for every row."""
    type_, place = value.tree.type, written.place("expression")
    if type_ == NULL:
        return False
    if type_.kind not in _NUMBERS:
        problem = f"is not a number: `{value.text}` is a {type_}"
        problems.report(INVALID_CONTROL.at(place, name=written.name, problem=problem))
        return False
    if can_fail(value.tree):
        hint = "set a column with an update, where a failure is reported at its row, and name that column"
        problem = f"may fail for a row: `{value.text}` calculates"
        problems.report(INVALID_CONTROL.at(place, name=written.name, problem=problem, hint=hint))
        return False
    return True


def _reaches_an_output(
    written: ControlTotal, planned: PlannedControl, at_outputs: Sequence[PlanningState], problems: Problems
) -> bool:
    if any(state.is_opaque or planned.columns <= state.schema.types.keys() for state in at_outputs):
        return True
    problem = "is never written: no output comes after the steps that set its columns"
    hint = "add an output, or name columns that exist earlier"
    problems.report(INVALID_CONTROL.at(written.span, name=written.name, problem=problem, hint=hint))
    return False
