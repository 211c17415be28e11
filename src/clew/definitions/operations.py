"""The operations of a project: what each type takes."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from clew.definitions.dataset import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.paths import format_of_path
from clew.definitions.postlude import AFTER_REQUEST, Job
from clew.definitions.scalars import Scalar
from clew.definitions.shapes import (
    ANY_SCALAR,
    EXPRESSION,
    FLAG,
    NAME,
    TEMPLATE,
    TEXT,
    ByKey,
    Choice,
    ConstantShape,
    ListOf,
    Located,
    MapOf,
    Record,
    Tagged,
    Whole,
    key,
    record,
)
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE

MOST_SEQ = 999_999_999
"""The largest seq that can be written: it still fits the whole numbers of every store after fragments are put in."""


class WriteMode(StrEnum):
    """What an output does with what is there already."""

    OVERWRITE = "overwrite"
    APPEND = "append"


@record("a join")
class RuntimeJoin(Located):
    """Another dataset, whose columns the assignments of the same update can use."""

    alias: str = key(NAME, "The name that expressions put before its columns.")
    dataset_id: str = key(NAME, "The id or name of the dataset.")
    dataset_version: int | None = key(Whole(1), "The version; the latest active one where left out.", default=None)
    on: ExpressionText = key(EXPRESSION, "When a row of the dataset matches a row of the working dataset.")

    @property
    def dataset(self) -> DatasetRef:
        """The dataset that is joined."""
        return DatasetRef(dataset_id=self.dataset_id, dataset_version=self.dataset_version, node=self.node)


@record("an assignment")
class AssignmentDefinition(Located):
    """A column and the value that it gets."""

    column: str = key(NAME, "The column, which may be new.")
    expression: ExpressionText = key(EXPRESSION, "The value.")


@record("an aggregation")
class Aggregation(Located):
    """A column of the summary rows and its value."""

    column: str = key(NAME, "The column of the summary rows.")
    expression: ExpressionText = key(EXPRESSION, "The value, with an aggregate function such as SUM.")


@record("the arguments of an update")
class UpdateArguments(Located):
    """What an update sets, and what it looks up for that."""

    joins: tuple[RuntimeJoin, ...] = key(ListOf(Record(RuntimeJoin), "joins"), "Datasets to look up in.", default=())
    assignments: tuple[AssignmentDefinition, ...] = key(
        ListOf(Record(AssignmentDefinition), "assignments", at_least=1), "The columns to set."
    )


@record("the arguments of an aggregate")
class AggregateArguments(Located):
    """How rows are summed up."""

    group_by: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"), "The columns to group by; one group of all rows where empty."
    )
    aggregations: tuple[Aggregation, ...] = key(
        ListOf(Record(Aggregation), "aggregations", at_least=1), "What is calculated for each group."
    )


@record("the aggregation of an append")
class AppendAggregation(Located):
    """How the rows of the source are summed up before they are appended."""

    group_by: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"), "The columns of the source to group by; one group of all rows where empty."
    )
    aggregations: tuple[Aggregation, ...] = key(
        ListOf(Record(Aggregation), "aggregations", at_least=1), "What is calculated for each group."
    )


@record("the arguments of an append")
class AppendArguments(Located):
    """Which rows are appended."""

    source: DatasetRef = key(Record(DatasetRef), "The dataset whose rows are appended.")
    source_selector: ExpressionText | None = key(EXPRESSION, "Which of its rows; all where left out.", default=None)
    aggregation: AppendAggregation | None = key(
        Record(AppendAggregation), "Sums the rows up before they are appended.", default=None
    )


@record("the arguments of a delete")
class DeleteArguments(Located):
    """A delete takes no arguments: its selector says which rows."""


@record("a table destination")
class TableDestination(Located):
    """A table of a database."""

    datasource_id: str = key(NAME, "The datasource.")
    table: str = key(TEMPLATE, "The table, with placeholders such as {period}.")
    format: str | None = key(
        NAME, "The format of Spark to write with, where it is not the database's own.", default=None
    )
    options: Mapping[str, Scalar] = key(MapOf(ANY_SCALAR, "options"), "Options of the format.", default_factory=dict)
    mode: WriteMode | None = key(
        Choice(WriteMode), "Whether to replace what is there or to add to it; overwrite where left out.", default=None
    )


@record("a path destination")
class PathDestination(Located):
    """Files below the root of a datasource."""

    datasource_id: str = key(NAME, "The datasource.")
    path: str = key(TEMPLATE, "The path below the root of the datasource, with placeholders such as {period}.")
    format: str | None = key(
        NAME,
        "csv, jsonl, parquet, or any other format of Spark; by the suffix of the path where left out.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(MapOf(ANY_SCALAR, "options"), "Options of the format.", default_factory=dict)
    mode: WriteMode | None = key(
        Choice(WriteMode), "Whether to replace what is there or to add to it; overwrite where left out.", default=None
    )

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or format_of_path(self.path)


@record("a location")
class Location(Located):
    """A place for files that no datasource describes."""

    path: str = key(TEMPLATE, "The path below the workspace, with placeholders such as {period}.")
    format: str | None = key(
        NAME,
        "csv, jsonl, parquet, or any other format of Spark; by the suffix of the path where left out.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(MapOf(ANY_SCALAR, "options"), "Options of the format.", default_factory=dict)

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or format_of_path(self.path)


@record("a location destination")
class LocationDestination(Located):
    """Files at a place that the project itself names."""

    location: Location = key(Record(Location), "Where the files are written.")
    mode: WriteMode | None = key(
        Choice(WriteMode), "Whether to replace what is there or to add to it; overwrite where left out.", default=None
    )


Destination: TypeAlias = TableDestination | PathDestination | LocationDestination

DESTINATION: ByKey[Destination] = ByKey(
    "a destination",
    {"path": Record(PathDestination), "table": Record(TableDestination), "location": Record(LocationDestination)},
)


@record("the arguments of an output")
class OutputArguments(Located):
    """What is written, and where."""

    destination: Destination = key(DESTINATION, "Where to write: a table or path of a datasource, or a location.")
    columns: tuple[str, ...] | None = key(
        ListOf(NAME, "columns", at_least=1), "The columns to write; all where left out.", default=None
    )
    include_deleted: bool = key(FLAG, "Whether deleted rows are written too.", default=False)
    register_as_dataset: str | None = key(
        NAME, "The name of the dataset that the output becomes a version of.", default=None
    )
    mode: WriteMode | None = key(
        Choice(WriteMode), "Whether to replace what is there or to add to it; overwrite where left out.", default=None
    )

    @property
    def write_mode(self) -> WriteMode:
        """The mode, wherever it is written."""
        return self.mode or self.destination.mode or WriteMode.OVERWRITE

    def check(self) -> Iterator[Diagnostic]:
        """The mode stands in one place."""
        if self.mode is not None and self.destination.mode is not None:
            problem = "the mode stands in the destination and beside it"
            yield INVALID_VALUE.at(self.place_of_key("mode"), problem=problem, hint="remove one of the two")


@record("an operation")
class _Common(Located):
    """What all operations have."""

    id: str | None = key(NAME, "The id.", default=None)
    seq: int = key(Whole(1, MOST_SEQ), "The position: operations are done in the order of their seq. Gaps are allowed.")
    name: str = key(NAME, "What the operation does, for people.")
    description: str = key(TEXT, "Why it does so.", default="")
    selector: ExpressionText | None = key(
        EXPRESSION,
        "Which rows it acts on; all that are not deleted where left out. {{NAME}} is a named selector.",
        default=None,
    )
    assign: str | None = key(TEXT, "A label that makes the point after this operation a breakpoint.", default=None)
    after_request: tuple[Job, ...] = key(
        AFTER_REQUEST, "Jobs on the rows at this point, done after the run.", default=()
    )


@record("an update operation")
class Update(_Common):
    """Sets columns of the selected rows."""

    type: Literal["update"] = key(ConstantShape("update"), "Sets columns of the selected rows.")
    arguments: UpdateArguments = key(Record(UpdateArguments), "What to set.")


@record("an aggregate operation")
class Aggregate(_Common):
    """Sums the selected rows up and appends the summary rows."""

    type: Literal["aggregate"] = key(ConstantShape("aggregate"), "Sums rows up and appends the summary rows.")
    arguments: AggregateArguments = key(Record(AggregateArguments), "How to sum up.")


@record("an append operation")
class Append(_Common):
    """Appends rows of another dataset."""

    type: Literal["append"] = key(ConstantShape("append"), "Appends rows of another dataset.")
    arguments: AppendArguments = key(Record(AppendArguments), "Which rows to append.")


@record("a delete operation")
class Delete(_Common):
    """Marks the selected rows as deleted."""

    type: Literal["delete"] = key(ConstantShape("delete"), "Marks the selected rows as deleted.")
    arguments: DeleteArguments = key(Record(DeleteArguments), "Nothing.", default_factory=DeleteArguments)


@record("an output operation")
class Output(_Common):
    """Writes the selected rows."""

    type: Literal["output"] = key(ConstantShape("output"), "Writes the selected rows.")
    arguments: OutputArguments = key(Record(OutputArguments), "What to write, and where.")


@record("the fragment to use")
class FragmentUse(Located):
    """A fragment and the name that it goes by here."""

    fragment: str = key(NAME, "The id of the fragment.")
    alias: str | None = key(
        TEXT, "The name in the breakpoints of the fragment; one by its place where left out.", named="as", default=None
    )


@record("a use")
class Use(Located):
    """The operations of a fragment in this place."""

    seq: int | None = key(
        Whole(1, MOST_SEQ),
        "The seq of the first operation of the fragment; behind the entry before where left out.",
        default=None,
    )
    use: FragmentUse = key(Record(FragmentUse), "The fragment.")


Operation: TypeAlias = Update | Aggregate | Append | Delete | Output

_OPERATION: Tagged[Operation] = Tagged(
    "an operation",
    "type",
    {
        "update": Record(Update),
        "aggregate": Record(Aggregate),
        "append": Record(Append),
        "delete": Record(Delete),
        "output": Record(Output),
    },
)

OPERATION: ByKey[Operation | Use] = ByKey("an operation", {"use": Record(Use)}, otherwise=_OPERATION)
