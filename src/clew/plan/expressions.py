"""Expressions of an operation: parsed, selectors put in place, checked against what the operation can see."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.diagnostics import Problems
from clew.diagnostics.codes.language import TYPE_MISMATCH
from clew.lang import Grouped, Scalar, Scope, check, check_condition
from clew.lang.conversion import assignable
from clew.lang.syntax import Node
from clew.lang.typed import ColumnValue, Constant, Convert, Expression, walk
from clew.lang.types import BOOLEAN, NULL, Type
from clew.lang.windowing import WindowCall
from clew.plan.selectors import Selectors
from clew.plan.steps import PlannedExpression

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import ExpressionText


class Expressions:
    """Reads the expressions of one operation; what is wrong goes to the problems and gives None."""

    def __init__(
        self, selectors: Selectors, problems: Problems, parameters: Mapping[str, Constant] | None = None
    ) -> None:
        self._selectors = selectors
        self._problems = problems
        self._parameters = parameters

    def reporting_to(self, problems: Problems) -> "Expressions":
        """The same, with problems reported elsewhere."""
        return Expressions(self._selectors, problems, self._parameters)

    def selector(self, text: "ExpressionText", scope: Scope, place: str = "in a selector") -> PlannedExpression | None:
        """A condition in which named selectors may be used."""
        return self._condition(text, self._selectors.parse(text), scope, place)

    def condition(self, text: "ExpressionText", scope: Scope, place: str) -> PlannedExpression | None:
        """A condition on which no rows are selected, such as that of a join."""
        return self._condition(text, self._selectors.parse(text), scope, place)

    def value(
        self,
        text: "ExpressionText",
        scope: Scope,
        place: str,
        target: Type | None,
        windows: "list[WindowCall] | None" = None,
    ) -> PlannedExpression | None:
        """A value for each row, converted to the target's type where the column has one.

        Its calls with OVER are added to `windows`; they are refused where there is no such list.
        """
        node = self._selectors.parse(text)
        if node is None:
            return None
        checked = check(node, self._in_project(scope), Scalar(place, takes_windows=windows is not None))
        self._problems.report(*checked.diagnostics)
        if windows is not None:
            windows += [each for each in checked.windows if each not in windows]
        return self._converted(text, node, checked.expression, target)

    def aggregation(
        self, text: "ExpressionText", scope: Scope, group_by: frozenset[str], target: Type | None
    ) -> PlannedExpression | None:
        """A value for each group."""
        node = self._selectors.parse(text)
        if node is None:
            return None
        checked = check(node, self._in_project(scope), Grouped(group_by))
        self._problems.report(*checked.diagnostics)
        return self._converted(text, node, checked.expression, target)

    def group_condition(
        self, text: "ExpressionText", scope: Scope, group_by: frozenset[str]
    ) -> PlannedExpression | None:
        """A condition on each group."""
        return self.aggregation(text, scope, group_by, BOOLEAN)

    def _in_project(self, scope: Scope) -> Scope:
        return replace(scope, parameters=self._parameters)

    def _condition(
        self, text: "ExpressionText", node: Node | None, scope: Scope, place: str
    ) -> PlannedExpression | None:
        if node is None:
            return None
        checked = check_condition(node, self._in_project(scope), place)
        self._problems.report(*checked.diagnostics)
        if checked.expression is None:
            return None
        written = self._selectors.shown(text) if self._selectors.is_used_in(text) else text.value
        return PlannedExpression(written, converted(checked.expression, BOOLEAN))

    def _converted(
        self, text: "ExpressionText", node: Node, expression: Expression | None, target: Type | None
    ) -> PlannedExpression | None:
        if expression is None:
            return None
        if target is None:
            if expression.type == NULL and not _reads_unknown_type(expression):
                hint = "give it a type, for example TO_STRING(NULL) or TO_DECIMAL(NULL, 18, 2)"
                problem = "a new column cannot be only NULL: its type is not known"
                self._problems.report(TYPE_MISMATCH.at(node.region.span, problem=problem, hint=hint))
                return None
            return PlannedExpression(self._selectors.shown(text), expression)
        if target != NULL and not assignable(expression.type, target):
            problem = f"a {expression.type} cannot be assigned to a column of type {target}"
            self._problems.report(TYPE_MISMATCH.at(node.region.span, problem=problem))
            return None
        return PlannedExpression(self._selectors.shown(text), converted(expression, target))


def converted(expression: Expression, target: Type) -> Expression:
    """The expression as another type, with the conversion written out where there is one."""
    return expression if target in {expression.type, NULL} else Convert(expression, target)


def _reads_unknown_type(expression: Expression) -> bool:
    """Whether it reads a column that is NULL only because something else is wrong, which was reported."""
    return any(isinstance(node, ColumnValue) and node.type == NULL for node in walk(expression))


def types_of(expressions: Mapping[str, PlannedExpression | None]) -> dict[str, Type]:
    """The types that new columns get; the type of NULL where the expression is wrong, to avoid further errors."""
    return {name: planned.tree.type if planned else NULL for name, planned in expressions.items()}
