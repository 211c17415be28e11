"""What users write for an update."""

from collections.abc import Iterator, Mapping
from typing import Literal

from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import EXPRESSION, NAME, ConstantShape, ListOf, Located, MapOf, Record, Whole, key, record
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY


@record("a join")
class RuntimeJoin(Located):
    """Another dataset, whose columns the assignments of the same update can use."""

    alias: str = key(NAME, "The name that expressions put before its columns.")
    dataset_id: str = key(NAME, "The id or name of the dataset.")
    dataset_version: int | None = key(Whole(1), "The version; by default the latest active one.", default=None)
    on: ExpressionText = key(EXPRESSION, "When a row of the dataset matches a row of the working dataset.")
    as_of: ExpressionText | None = key(
        EXPRESSION,
        "For a bitemporal dataset: the day whose rows are matched, such as PERIOD_END() or a column with a date; by "
        "default the first day of the run's period.",
        default=None,
    )

    @property
    def dataset(self) -> DatasetRef:
        """The dataset that is joined."""
        return DatasetRef(dataset_id=self.dataset_id, dataset_version=self.dataset_version, node=self.node)


@record("an assignment")
class AssignmentDefinition(Located):
    """A column and the value that it gets."""

    column: str = key(NAME, "The column, which may be new.")
    expression: ExpressionText = key(EXPRESSION, "The value.")


@record("the arguments of an update")
class UpdateArguments(Located):
    """What an update sets, and what it looks up for that."""

    joins: tuple[RuntimeJoin, ...] = key(ListOf(Record(RuntimeJoin), "joins"), "Datasets to look up in.", default=())
    assignments: tuple[AssignmentDefinition, ...] = key(
        ListOf(Record(AssignmentDefinition), "assignments", at_least=1), "The columns to set.", default=()
    )
    rename: Mapping[str, str] = key(
        MapOf(NAME, "names", at_least=1), "Columns with the names that they get, for all rows.", default_factory=dict
    )
    drop: tuple[str, ...] = key(
        ListOf(NAME, "columns", at_least=1), "Columns that later operations do not have, in no row.", default=()
    )

    def check(self) -> Iterator[Diagnostic]:
        """It does something."""
        if not (self.assignments or self.rename or self.drop):
            yield MISSING_KEY.at(self.span, key="assignments", where=" in the arguments of an update")


@record("an update operation")
class Update(OperationBase):
    """Sets columns of the selected rows."""

    type: Literal["update"] = key(ConstantShape("update"), "Sets columns of the selected rows.")
    arguments: UpdateArguments = key(Record(UpdateArguments), "What to set.")

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets that it joins."""
        return tuple(join.dataset for join in self.arguments.joins)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of its joins."""
        return tuple(join.alias for join in self.arguments.joins)

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns that it assigns."""
        assigned = (assignment.column for assignment in self.arguments.assignments)
        return (*assigned, *self.arguments.rename.values())

    def check(self) -> Iterator[Diagnostic]:
        """Names belong to all rows."""
        for name in ("rename", "drop"):
            if self.selector is not None and getattr(self.arguments, name):
                problem = f"{name} is for all rows, and there is a selector"
                hint = "remove the selector, or write an update for each"
                yield INVALID_VALUE.at(self.arguments.place_of_key(name), problem=problem, hint=hint)
