"""What users write for an append."""

from typing import Literal

from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.aggregate import Aggregation
from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import EXPRESSION, SELECTOR, ConstantShape, ListOf, Located, Record, key, record


@record("the aggregation of an append")
class AppendAggregation(Located):
    """How the rows of the source are summed up before they are appended."""

    group_by: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"), "The columns of the source to group by; if empty, all rows form one group."
    )
    aggregations: tuple[Aggregation, ...] = key(
        ListOf(Record(Aggregation), "aggregations", at_least=1), "What is calculated for each group."
    )


@record("the arguments of an append")
class AppendArguments(Located):
    """Which rows are appended."""

    source: DatasetRef = key(Record(DatasetRef), "The dataset whose rows are appended.")
    source_selector: ExpressionText | None = key(SELECTOR, "Which of its rows; by default all.", default=None)
    aggregation: AppendAggregation | None = key(
        Record(AppendAggregation), "Aggregates the rows before they are appended.", default=None
    )


@record("an append operation")
class Append(OperationBase):
    """Appends rows of another dataset."""

    type: Literal["append"] = key(ConstantShape("append"), "Appends rows of another dataset.")
    arguments: AppendArguments = key(Record(AppendArguments), "Which rows to append.")

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The source."""
        return (self.arguments.source,)
