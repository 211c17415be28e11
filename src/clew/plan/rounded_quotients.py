"""Quotients that are rounded before they are multiplied, so that digits of an amount are lost.

Every quotient has a fixed number of digits after the decimal point. `amount * (30 / 365)` first rounds 30 / 365 to six
digits, and multiplies what is left by the amount; `amount * 30 / 365` rounds once, at the end.
"""

from collections.abc import Iterable, Iterator

from clew.lang.text_form import text_of
from clew.lang.typed import Apply, Constant, Convert, Expression, walk
from clew.lang.types import Kind, Type
from clew.plan.operations import Step
from clew.plan.plan import Plan
from clew.plan.steps import ChangingStepBase, CreatingStepBase

_DIGITS_OF_COUNTS = 10
"""What a column of whole numbers is taken to have. All that fit into 64 bits would make every share suspicious."""


def rounded_quotients(plan: Plan) -> Iterator[str]:
    """A sentence for each quotient whose rounding can be seen in a product, with its place."""
    for step in plan.steps:
        where = f"{step.place.file}:{step.place.line}" if step.place is not None else f"{plan.name} step {step.seq}"
        for tree in _values(step):
            for quotient, other in _multiplied(tree):
                digits = f"{quotient.type.scale} digits after the decimal point"
                yield (
                    f"{where}: {text_of(quotient)} is rounded to {digits} before it is "
                    f"multiplied by {text_of(other)}: multiply first, then divide"
                )


def _values(step: Step) -> Iterable[Expression]:
    if isinstance(step, ChangingStepBase):
        return [each.value.tree for each in step.assigned]
    return [each.value.tree for each in step.filled] if isinstance(step, CreatingStepBase) else []


def _multiplied(tree: Expression) -> Iterator[tuple[Apply, Expression]]:
    """The quotients in products that have too few digits for what they are multiplied by."""
    for node in walk(tree):
        if isinstance(node, Apply) and node.function == "*":
            one, two = map(_without_conversion, node.arguments)
            for quotient, other in ((one, two), (two, one)):
                if isinstance(quotient, Apply) and quotient.function == "/" and _is_too_short(quotient.type, other):
                    yield quotient, other


def _is_too_short(quotient: Type, other: Expression) -> bool:
    """Whether half of the quotient's last digit, times the largest other number, shows in the digits of that."""
    if quotient.kind is not Kind.DECIMAL or other.type.kind not in {Kind.DECIMAL, Kind.INTEGER}:
        return False
    if isinstance(other, Constant) and isinstance(other.value, int):
        return quotient.scale < len(str(abs(other.value)))
    return quotient.scale < (other.type.precision or _DIGITS_OF_COUNTS)


def _without_conversion(expression: Expression) -> Expression:
    while isinstance(expression, Convert):
        expression = expression.operand
    return expression
