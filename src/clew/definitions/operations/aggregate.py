"""What users write for an aggregate."""

from typing import Literal

from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import EXPRESSION, NAME, ConstantShape, ListOf, Located, Record, key, record


@record("an aggregation")
class Aggregation(Located):
    """A column of the summary rows and its value."""

    column: str = key(NAME, "The column of the summary rows.")
    expression: ExpressionText = key(EXPRESSION, "The value, with an aggregate function such as SUM.")


@record("the arguments of an aggregate")
class AggregateArguments(Located):
    """How rows are summed up."""

    group_by: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"), "The columns to group by; if empty, all rows form one group."
    )
    aggregations: tuple[Aggregation, ...] = key(
        ListOf(Record(Aggregation), "aggregations", at_least=1), "What is calculated for each group."
    )
    having: ExpressionText | None = key(
        EXPRESSION,
        "Which groups get a summary row: a condition on the group, such as SUM(amount) > 0; by default all.",
        default=None,
    )


@record("an aggregate operation")
class Aggregate(OperationBase):
    """Sums the selected rows up and appends the summary rows."""

    type: Literal["aggregate"] = key(ConstantShape("aggregate"), "Aggregates rows and appends the summary rows.")
    arguments: AggregateArguments = key(Record(AggregateArguments), "How to aggregate.")

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns of its aggregations."""
        return tuple(aggregation.column for aggregation in self.arguments.aggregations)
