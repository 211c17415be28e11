"""What users write for an output."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from clew.definitions.operations.base import OperationBase
from clew.definitions.option_maps import options_of
from clew.definitions.path_segments import NOT_A_SEGMENT, is_path_segment, is_slug_like
from clew.definitions.shapes import (
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
    """A table of a database."""

    datasource_id: str = key(NAME, "The datasource.")
    table: str = key(TEMPLATE, "The table, with placeholders such as {period}.")
    format: str | None = key(NAME, "The Spark format to write with, instead of the database's own.", default=None)
    options: Mapping[str, Scalar] = key(
        options_of("options"), "Options of the format; secrets as references.", default_factory=dict
    )
    mode: WriteMode | None = key(
        Choice(WriteMode), "Whether to replace what is there or append to it; by default overwrite.", default=None
    )

    @property
    def target(self) -> WrittenPlace:
        """The table."""
        return WrittenPlace(self.datasource_id, self.table, None, self.format, self.options)


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
        Choice(WriteMode), "Whether to replace what is there or append to it; by default overwrite.", default=None
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
        Choice(WriteMode), "Whether to replace what is there or append to it; by default overwrite.", default=None
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
        Choice(WriteMode), "Whether to replace what is there or append to it; by default overwrite.", default=None
    )

    @property
    def write_mode(self) -> WriteMode:
        """The mode, wherever it is written."""
        return self.mode or self.destination.mode or WriteMode.OVERWRITE

    def check(self) -> Iterator[Diagnostic]:
        """The mode is set in one place only, and the name of the dataset can be that of a folder."""
        registers = self.register_as_dataset
        if registers is not None and is_slug_like(registers) and not is_path_segment(registers):
            problem = f'a dataset cannot be registered as "{registers}"'
            yield INVALID_VALUE.at(self.place("register_as_dataset"), problem=problem, hint=NOT_A_SEGMENT)
        if self.mode is not None and self.destination.mode is not None:
            problem = "the mode is set both in the destination and beside it"
            yield INVALID_VALUE.at(self.place_of_key("mode"), problem=problem, hint="remove one of the two")


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
