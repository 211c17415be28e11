"""Control totals: what a project adds up from its sources to its outputs, to prove that nothing was lost."""

from decimal import Decimal
from enum import StrEnum

from clew.definitions.expression_text import ExpressionText
from clew.definitions.nodes import Node, ScalarNode
from clew.definitions.shapes import EXPRESSION, NAME, Choice, JsonSchema, ListOf, Located, key, record, refused
from clew.definitions.shapes.scalars import Single
from clew.definitions.yaml_scalars import scalar_value


class OnDifference(StrEnum):
    """What a run does if a control total does not tie."""

    FAIL = "fail"
    WARN = "warn"


class ToleranceShape(Single[Decimal]):
    """A number of at least 0, with as many decimals as it is written with."""

    def read(self, node: Node) -> Decimal:
        """The number."""
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if not isinstance(value, int | Decimal) or isinstance(value, bool) or value < 0:
            raise refused(node, "a number of at least 0")
        return Decimal(value)

    @property
    def own_schema(self) -> JsonSchema:
        """A number."""
        return {"type": "number", "minimum": 0}


@record("a control total")
class ControlTotal(Located):
    """An amount that every run follows from its sources to each output."""

    name: str = key(NAME, "The name, unique in the project.")
    expression: ExpressionText = key(EXPRESSION, "What is added up, such as amount_usd.")
    by: tuple[ExpressionText, ...] = key(ListOf(EXPRESSION, "columns"), "Columns to add up by as well.", default=())
    tolerance: Decimal = key(ToleranceShape(), "The largest difference that still ties.", default=Decimal(0))
    on_difference: OnDifference = key(
        Choice(OnDifference),
        "`fail` fails a run whose amounts do not tie; `warn` raises an alert.",
        default=OnDifference.FAIL,
    )
