"""Control totals of a plan: amounts that are followed from the loaded rows to every output."""

from decimal import Decimal
from typing import Literal

from clew.deferred import dataclass
from clew.lang.typed import columns_of
from clew.lang.types import Kind, Type
from clew.plan.steps import PlannedExpression

SCALE_OF_DOUBLES = 6
"""Doubles are rounded to this many decimals before they are added up: their exact sum depends on the order."""


@dataclass(frozen=True, slots=True)
class PlannedControl:
    """An amount that each row contributes to a total; rows without a value contribute nothing."""

    name: str
    expression: PlannedExpression
    by: tuple[str, ...]
    tolerance: str
    """A decimal number."""
    on_difference: Literal["fail", "warn"]

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the working dataset that it reads, keys among them."""
        return frozenset(column for _, column in columns_of(self.expression.tree)) | frozenset(self.by)

    @property
    def scale(self) -> int:
        """How many decimals its amounts have."""
        return scale_of(self.expression.tree.type)

    @property
    def largest_difference(self) -> Decimal:
        """The tolerance as a number."""
        return Decimal(self.tolerance)


def scale_of(type_: Type) -> int:
    """How many decimals amounts of a type have."""
    if type_.kind is Kind.DECIMAL:
        return type_.scale
    return SCALE_OF_DOUBLES if type_.kind is Kind.DOUBLE else 0
