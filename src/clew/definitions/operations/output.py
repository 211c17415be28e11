"""What users write for an output."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from clew.deferred import dataclass
from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.base import OperationBase
from clew.definitions.option_maps import options_of
from clew.definitions.path_segments import NOT_A_SEGMENT, is_path_segment, is_slug_like
from clew.definitions.shapes import (
    EXPRESSION,
    FLAG,
    NAME,
    TEMPLATE,
    ByKey,
    Choice,
    ConstantShape,
    ListOf,
    Located,
    Record,
    key,
    record,
)
from clew.definitions.shapes.scalars import format_of_path
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE


class WriteMode(StrEnum):
    """What an output does with what is there already."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    REPLACE_PERIOD = "replace_period"
    UPSERT = "upsert"


class NewColumns(StrEnum):
    """What an output does with columns that the table does not have yet."""

    REFUSE = "refuse"
    ADD = "add"


class CreateMissing(StrEnum):
    """What an output to a catalog may create."""

    NOTHING = "nothing"
    TABLE = "table"
    SCHEMA = "schema"


MODE_HELP = (
    "What to do with what is there: overwrite (the default) or append; for delta and iceberg also replace_period or "
    "upsert."
)
FILE_FORMATS = ("csv", "jsonl", "json", "orc", "parquet")
"""Formats that are written file by file."""
TABLE_FORMATS = ("delta", "iceberg")
"""Formats with commits: an output to one of them can replace a period, or update rows by their keys."""
UPSERT_BY = "upsert_by"
NEW_COLUMNS = "new_columns"
CREATE_MISSING = "create_missing"
"""The options of plans that stand for the keys of these names; plans without them stay as they were."""


@dataclass(frozen=True, slots=True)
class WrittenPlace:
    """A destination, whichever way it is written: a table or a path, of a datasource or not."""

    datasource_id: str | None
    table: str | None
    path: str | None
    format: str | None
    options: Mapping[str, Scalar]


@record("a table destination")
class TableDestination(Located):
    """A table of a database or a catalog."""

    datasource_id: str = key(NAME, "The datasource.")
    table: str = key(TEMPLATE, "The table, with placeholders such as {period}.")
    format: str | None = key(
        NAME,
        "For a catalog: delta or iceberg. For a database: the Spark format to write with, instead of its own.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(
        options_of("options"), "Options of the format; secrets as references.", default_factory=dict
    )
    mode: WriteMode | None = key(
        Choice(WriteMode),
        MODE_HELP,
        default=None,
    )

    create_missing: CreateMissing | None = key(
        Choice(CreateMissing),
        "For a catalog: what is created if it is missing: nothing, the table (the default), or its schema too.",
        default=None,
    )

    @property
    def target(self) -> WrittenPlace:
        """The table."""
        further = {} if self.create_missing is None else {CREATE_MISSING: self.create_missing.value}
        return WrittenPlace(self.datasource_id, self.table, None, self.format, {**self.options, **further})


@record("a path destination")
class PathDestination(Located):
    """Files below the root of a datasource."""

    datasource_id: str = key(NAME, "The datasource.")
    path: str = key(TEMPLATE, "The path below the root of the datasource, with placeholders such as {period}.")
    format: str | None = key(
        NAME,
        "csv, jsonl, parquet, or any other Spark format; by default derived from the suffix of the path.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(
        options_of("options"), "Options of the format; secrets as references.", default_factory=dict
    )
    escape_formulas: bool = key(
        FLAG,
        "For csv: whether texts that a spreadsheet would take for a formula get a ' in front. Others stay as they are.",
        default=False,
    )
    mode: WriteMode | None = key(
        Choice(WriteMode),
        MODE_HELP,
        default=None,
    )

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or format_of_path(self.path)

    @property
    def target(self) -> WrittenPlace:
        """The path below the root of the datasource."""
        return WrittenPlace(self.datasource_id, None, self.path, self.file_format, _all_options(self))

    def check(self) -> Iterator[Diagnostic]:
        """Only csv has formulas to escape."""
        yield from _formula_problems(self)


@record("a location")
class Location(Located):
    """A place for files that no datasource describes."""

    path: str = key(TEMPLATE, "The path below the workspace, with placeholders such as {period}.")
    format: str | None = key(
        NAME,
        "csv, jsonl, parquet, or any other Spark format; by default derived from the suffix of the path.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(
        options_of("options"), "Options of the format; secrets as references.", default_factory=dict
    )
    escape_formulas: bool = key(
        FLAG,
        "For csv: whether texts that a spreadsheet would take for a formula get a ' in front. Others stay as they are.",
        default=False,
    )

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or format_of_path(self.path)

    def check(self) -> Iterator[Diagnostic]:
        """Only csv has formulas to escape."""
        yield from _formula_problems(self)


@record("a location destination")
class LocationDestination(Located):
    """Files at a place that the project itself names."""

    location: Location = key(Record(Location), "Where the files are written.")
    mode: WriteMode | None = key(
        Choice(WriteMode),
        MODE_HELP,
        default=None,
    )

    @property
    def target(self) -> WrittenPlace:
        """The location."""
        return WrittenPlace(None, None, self.location.path, self.location.file_format, _all_options(self.location))


ESCAPE_FORMULAS = "escape_formulas"
"""The option of plans that stands for the key of that name; plans without it stay as they were."""


def _all_options(place: PathDestination | Location) -> Mapping[str, Scalar]:
    return {**place.options, ESCAPE_FORMULAS: True} if place.escape_formulas else place.options


def _formula_problems(place: PathDestination | Location) -> Iterator[Diagnostic]:
    if ESCAPE_FORMULAS in place.options:
        problem = f"{ESCAPE_FORMULAS} is not an option of the format"
        hint = f"write {ESCAPE_FORMULAS} beside options, not below it"
        yield INVALID_VALUE.at(place.place("options", ESCAPE_FORMULAS), problem=problem, hint=hint)
    if place.escape_formulas and place.file_format != "csv":
        problem = f"{ESCAPE_FORMULAS} is for csv only, and the format here is {place.file_format}"
        yield INVALID_VALUE.at(place.place(ESCAPE_FORMULAS), problem=problem, hint="remove it, or write csv")


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
        ListOf(NAME, "columns", at_least=1), "The columns to write; by default all.", default=None
    )
    include_deleted: bool = key(FLAG, "Whether deleted rows are written too.", default=False)
    register_as_dataset: str | None = key(
        NAME, "The name of the dataset that the output becomes a version of.", default=None
    )
    mode: WriteMode | None = key(
        Choice(WriteMode),
        MODE_HELP,
        default=None,
    )
    upsert_by: tuple[str, ...] | None = key(
        ListOf(NAME, "columns", at_least=1), "For upsert: the columns by which rows are the same.", default=None
    )
    new_columns: NewColumns = key(
        Choice(NewColumns),
        "For delta and iceberg: whether columns that the table does not have are refused or added to it.",
        default=NewColumns.REFUSE,
    )
    sort: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"),
        "For files: the columns by which rows are put in order, each with desc behind it where it runs down.",
        default=(),
    )
    partition_by: tuple[str, ...] = key(
        ListOf(NAME, "columns"),
        "For a folder of files: the columns by whose values rows go to folders such as region=north.",
        default=(),
    )
    file_per: ExpressionText | None = key(
        EXPRESSION,
        "For a folder of files: a column or another expression; there is one file for each value, called by it.",
        default=None,
    )

    @property
    def write_mode(self) -> WriteMode:
        """The mode, wherever it is written."""
        return self.mode or self.destination.mode or WriteMode.OVERWRITE

    def check(self) -> Iterator[Diagnostic]:
        """The mode is set in one place only and fits, and the name of the dataset can be that of a folder."""
        yield from self._mode_problems()
        yield from self._arrangement_problems()
        registers = self.register_as_dataset
        if registers is not None and is_slug_like(registers) and not is_path_segment(registers):
            problem = f'a dataset cannot be registered as "{registers}"'
            yield INVALID_VALUE.at(self.place("register_as_dataset"), problem=problem, hint=NOT_A_SEGMENT)
        if self.mode is not None and self.destination.mode is not None:
            problem = "the mode is set both in the destination and beside it"
            yield INVALID_VALUE.at(self.place_of_key("mode"), problem=problem, hint="remove one of the two")

    def _arrangement_problems(self) -> Iterator[Diagnostic]:
        target = self.destination.target
        is_files = target.path is not None and target.format in FILE_FORMATS
        is_folder = is_files and target.path is not None and not PurePosixPath(target.path).suffix
        for name, is_given, fits, needs in (
            ("sort", bool(self.sort), is_files, f"files in one of the formats {', '.join(FILE_FORMATS)}"),
            ("partition_by", bool(self.partition_by), is_folder, "a folder of files: a path without a suffix"),
            ("file_per", self.file_per is not None, is_folder, "a folder of files: a path without a suffix"),
        ):
            if is_given and not fits:
                yield INVALID_VALUE.at(self.place_of_key(name), problem=f"{name} needs {needs}", hint="remove it")
        if self.partition_by and self.file_per is not None:
            problem = "partition_by and file_per both say which rows share a file"
            yield INVALID_VALUE.at(self.place_of_key("file_per"), problem=problem, hint="remove one of the two")
        if self.file_per is not None and self.write_mode is WriteMode.APPEND:
            problem = "file_per replaces what is there, and the mode is append"
            yield INVALID_VALUE.at(self.place_of_key("file_per"), problem=problem, hint="use partition_by")

    def _mode_problems(self) -> Iterator[Diagnostic]:
        is_table = self.destination.target.format in TABLE_FORMATS
        mode = self.write_mode
        if mode in {WriteMode.REPLACE_PERIOD, WriteMode.UPSERT} and not is_table:
            at = self.place_of_key("mode") if self.mode is not None else self.destination.place_of_key("mode")
            problem = f"the mode {mode.value} needs a table with commits"
            yield INVALID_VALUE.at(
                at, problem=problem, hint="set the format delta or iceberg, or use overwrite or append"
            )
        if mode is WriteMode.UPSERT and self.upsert_by is None:
            hint = "list the columns by which rows are the same, such as upsert_by: [id]"
            yield INVALID_VALUE.at(self.span, problem="the mode upsert needs upsert_by", hint=hint)
        if mode is not WriteMode.UPSERT and self.upsert_by is not None:
            problem = "upsert_by is for the mode upsert only"
            yield INVALID_VALUE.at(self.place_of_key(UPSERT_BY), problem=problem, hint="remove it, or set mode: upsert")
        if self.new_columns is not NewColumns.REFUSE and not is_table:
            problem = "new_columns is for the formats delta and iceberg only"
            yield INVALID_VALUE.at(self.place_of_key(NEW_COLUMNS), problem=problem, hint="remove it")
        for name in (UPSERT_BY, NEW_COLUMNS):
            if name in self.destination.target.options:
                problem = f"{name} is not an option of the format"
                yield INVALID_VALUE.at(self.span, problem=problem, hint=f"write {name} beside destination")


@record("an output operation")
class Output(OperationBase):
    """Writes the selected rows."""

    type: Literal["output"] = key(ConstantShape("output"), "Writes the selected rows.")
    arguments: OutputArguments = key(Record(OutputArguments), "What to write, and where.")

    @property
    def registers(self) -> str | None:
        """The dataset that the output becomes a version of."""
        return self.arguments.register_as_dataset

    @property
    def datasource(self) -> str | None:
        """The datasource of the destination; None for a location."""
        return self.arguments.destination.target.datasource_id
