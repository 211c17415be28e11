"""What selectors decided about a row, and whether stored values equal what the Python evaluator computes.

Also builds the conditions for such questions: the keys of a group, and conditions with a row's values in place.
"""

import math
from collections.abc import Callable, Iterable

from clew.diagnostics import ClewError
from clew.explain.tree import Decision, Deleted, KeptRow, Recomputed, StepRef
from clew.lang.evaluation import Row, evaluator
from clew.lang.text_form import text_of
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.operations import Step
from clew.plan.steps import PlannedExpression


def all_of(conditions: Iterable[Expression | None]) -> Expression | None:
    """The condition that is true where all of them are; None if there are none."""
    found = [condition for condition in conditions if condition is not None]
    if len(found) < 2:
        return found[0] if found else None
    return Apply("AND", tuple(found), BOOLEAN)


def is_not_deleted(table: str) -> Expression:
    """The rows that steps see."""
    return Apply("NOT", (ColumnValue(table, "_deleted", BOOLEAN),), BOOLEAN)


def equals(value: Expression, other: Value) -> Expression:
    """Whether an expression has a value; NULL is a value here, as it is for groups."""
    if other is None:
        return Apply("ISNULL", (value,), BOOLEAN)
    return Apply("=", (value, Constant(other, value.type)), BOOLEAN)


def with_values(expression: Expression, alias: str, row: Row) -> Expression:
    """The expression with the row's values in place of everything that does not concern one table."""
    if all(table != alias for table, _ in columns_of(expression)):
        try:
            return Constant(evaluator(expression)(row), expression.type)
        except ClewError:
            return expression
    match expression:
        case Apply(function, arguments, type_):
            return Apply(function, tuple(with_values(argument, alias, row) for argument in arguments), type_)
        case Convert(operand, type_):
            return Convert(with_values(operand, alias, row), type_)
        case Constant() | ColumnValue():
            return expression


def decisions(condition: Expression, row: Row) -> tuple[Decision, ...]:
    """The parts of a condition that made it what it was for a row, with their values."""
    value = evaluator(condition)(row)
    inner = condition.operand if isinstance(condition, Convert) else condition
    if isinstance(inner, Apply) and inner.function in {"AND", "OR"}:
        settling = [
            argument
            for argument in inner.arguments
            if (inner.function == "AND") == (value is True) or (evaluator(argument)(row) is True) == (value is True)
        ]
        return tuple(decision for argument in settling for decision in decisions(argument, row))
    values = {column: row.tables[table][column] for table, column in sorted(columns_of(inner))}
    return (Decision(text_of(inner), value, values),)


def deleted_by(step: Step, seen: Row, kept: KeptRow | None = None) -> Deleted:
    """Why a step deleted a row that it saw, and which one stayed in its place."""
    if step.selector is None:
        return Deleted(StepRef.of(step), None, None, (), kept)
    text, resolved = selector_texts(step.selector)
    return Deleted(StepRef.of(step), text, resolved, decisions(step.selector.tree, seen), kept)


def selector_texts(selector: PlannedExpression) -> tuple[str, str | None]:
    """A selector as it was written and, where it uses named ones, with those put in place."""
    return selector.text, text_of(selector.tree) if "{{" in selector.text else None


_SAME_DOUBLES = 1e-9
"""How far sums of doubles may lie apart: they depend on the order of adding, which Spark does not promise."""


def compared(stored: Value, compute: Callable[[], Value]) -> Recomputed:
    """Compute a value again and compare it with the one that was stored."""
    try:
        value = compute()
    except ClewError as error:
        return Recomputed("differs", stored, None, str(error))
    return Recomputed("equal" if _is_same(stored, value) else "differs", stored, value)


def _is_same(stored: Value, value: Value) -> bool:
    if isinstance(stored, float) and isinstance(value, float):
        both_nan = math.isnan(stored) and math.isnan(value)
        return both_nan or math.isclose(stored, value, rel_tol=_SAME_DOUBLES)
    return stored == value
