"""What users write for an append."""

from collections.abc import Iterator, Mapping
from typing import Literal

from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.aggregate import Aggregation
from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import EXPRESSION, SELECTOR, ConstantShape, ListOf, Located, MapOf, Record, key, record
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE


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
    columns: Mapping[str, ExpressionText] | None = key(
        MapOf(EXPRESSION, "expressions by column", at_least=1),
        "For columns of the working dataset, the value for each row of the source; by default every column of the "
        "source goes to the column of its name.",
        default=None,
    )
    aggregation: AppendAggregation | None = key(
        Record(AppendAggregation), "Aggregates the rows before they are appended.", default=None
    )

    def check(self) -> Iterator[Diagnostic]:
        """Columns are given in one way."""
        if self.columns is not None and self.aggregation is not None:
            problem = "columns and aggregation both say what the new rows have"
            hint = "remove columns: the columns of summaries are those of the aggregation"
            yield INVALID_VALUE.at(self.place_of_key("columns"), problem=problem, hint=hint)


@record("an append operation")
class Append(OperationBase):
    """Appends rows of another dataset."""

    type: Literal["append"] = key(ConstantShape("append"), "Appends rows of another dataset.")
    arguments: AppendArguments = key(Record(AppendArguments), "Which rows to append.")

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The source."""
        return (self.arguments.source,)
