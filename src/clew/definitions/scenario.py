"""Scenarios: tests that users write, with rows in and rows out."""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from typing import TypeAlias

from clew.definitions.calendar import Period
from clew.definitions.dataset import TableDefinition, key_problems
from clew.definitions.project import INLINE_PROJECT, Project
from clew.definitions.shapes import (
    ANY_SCALAR,
    DAY,
    FLAG,
    NAME,
    PATH,
    SLUG,
    TEXT,
    Choice,
    Definition,
    ListOf,
    Located,
    MapOf,
    Record,
    TextOr,
    Whole,
    key,
    record,
)
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY

Row: TypeAlias = Mapping[str, Scalar]

_ROW = MapOf(ANY_SCALAR, "values by column")
_ROWS = ListOf(_ROW, "rows")


class Match(StrEnum):
    """How expected rows are compared."""

    EXACT = "exact"
    SUBSET = "subset"


class ExpectedChange(StrEnum):
    """What a step does to a row."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


@record("a dataset of a scenario")
class ScenarioDataset(Located):
    """The rows of a dataset, which is one of the workspace or defined here."""

    id: str = key(SLUG, "The id of the dataset.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    main_table: TableDefinition | None = key(
        Record(TableDefinition), "The table; by default that of the workspace's dataset.", default=None
    )
    natural_key: tuple[str, ...] = key(ListOf(NAME, "columns"), "The columns that together identify a row.", default=())
    rows: tuple[Row, ...] | None = key(_ROWS, "The rows.", default=None)
    file: str | None = key(
        PATH,
        "A CSV or Parquet file with the rows; the path is relative to the scenario or the workspace.",
        default=None,
    )

    def check(self) -> Iterator[Diagnostic]:
        """Rows come from one place, and the natural key exists."""
        if self.rows is not None and self.file is not None:
            problem = "the rows are given both here and in a file"
            yield INVALID_VALUE.at(self.place_of_key("file"), problem=problem, hint="remove `rows` or `file`")
        if self.rows is None and self.file is None:
            hint = "write the rows, `rows: []` for none, or name a `file`"
            yield MISSING_KEY.at(self.span, key="rows", where=" in a dataset of a scenario", hint=hint)
        if self.main_table is not None:
            yield from key_problems(self, self.natural_key, self.main_table)


@record("an expected output")
class ExpectedOutput(Located):
    """The rows that an output has to have."""

    rows: tuple[Row, ...] = key(_ROWS, "The rows.")
    match: Match = key(
        Choice(Match), "exact: these rows and columns and no others; subset: at least these.", default=Match.EXACT
    )
    ordered: bool = key(FLAG, "Whether the order of the rows counts.", default=False)


@record("an expected change")
class ExpectedDiff(Located):
    """The value of a column before and after a step."""

    old: Scalar = key(ANY_SCALAR, "The value before.", default=None)
    new: Scalar = key(ANY_SCALAR, "The value after.", default=None)


@record("an expected trace record")
class ExpectedTrace(Located):
    """A change to a row that the trace has to have."""

    operation_seq: int = key(Whole(0), "The seq of the operation; 0 for loading.")
    change_type: ExpectedChange = key(Choice(ExpectedChange), "What happened to the row.")
    row_match: Row = key(_ROW, "Values that the row must have.", default_factory=dict)
    expected_diff: Mapping[str, ExpectedDiff] = key(
        MapOf(Record(ExpectedDiff), "changes by column"), "The changes of its values.", default_factory=dict
    )
    match: Match | None = key(
        Choice(Match),
        "exact: nothing else of the row changed; subset: other columns may have. By default subset for created rows.",
        default=None,
    )


@record("an expected error")
class ExpectedError(Located):
    """The error that the scenario has to end with."""

    code: str = key(NAME, "The code of the error.")

    def check(self) -> Iterator[Diagnostic]:
        """An error that does not exist would never come."""
        if self.code not in CATALOGUE:
            hint = did_you_mean(self.code, CATALOGUE) or "docs/reference/errors.md lists all codes"
            yield INVALID_VALUE.at(self.place("code"), problem=f'no error has the code "{self.code}"', hint=hint)


@record("a scenario")
class Scenario(Definition):
    """A test: rows in, a project, and what has to come out."""

    name: str = key(NAME, "The name, unique among scenarios.")
    description: str = key(TEXT, "What the scenario shows.", default="")
    periods: tuple[Period, ...] = key(
        ListOf(Record(Period), "periods"), "The periods; by default those of the workspace.", default=()
    )
    period: str = key(NAME, "The period that the project runs for.")
    today: date | None = key(DAY, "The day that TODAY() gives; by default the day of the test.", default=None)
    parameters: Mapping[str, Scalar] = key(
        MapOf(ANY_SCALAR, "values"), "Values of the parameters of the project, by name.", default_factory=dict
    )
    datasets: tuple[ScenarioDataset, ...] = key(
        ListOf(Record(ScenarioDataset), "datasets"), "The datasets with their rows.", default=()
    )
    project: Project | str = key(
        TextOr(NAME, INLINE_PROJECT),
        "The project: its id, the path of its file, or the project itself.",
    )
    expected_output: ExpectedOutput | None = key(
        Record(ExpectedOutput), "The rows expected in the only output.", default=None
    )
    expected_outputs: Mapping[str, ExpectedOutput] | None = key(
        MapOf(Record(ExpectedOutput), "expected outputs by seq or name of the operation", at_least=1),
        "The rows expected in each output, by the seq or name of its operation.",
        default=None,
    )
    expected_trace: tuple[ExpectedTrace, ...] = key(
        ListOf(Record(ExpectedTrace), "expected trace records"), "Changes that the trace must contain.", default=()
    )
    expected_error: ExpectedError | None = key(
        Record(ExpectedError), "The error that is expected instead of outputs.", default=None
    )

    def check(self) -> Iterator[Diagnostic]:
        """The scenario expects one kind of thing."""
        expected = [name for name in ("expected_output", "expected_outputs", "expected_error") if getattr(self, name)]
        if len(expected) > 1:
            problem = f"a scenario has one of {', '.join(expected)}, not {len(expected)}"
            yield INVALID_VALUE.at(self.place_of_key(expected[1]), problem=problem, hint="keep one of them")
        elif self.expected_error is not None and self.expected_trace:
            problem = "a scenario that expects an error has no trace to expect"
            yield INVALID_VALUE.at(self.place_of_key("expected_trace"), problem=problem, hint="keep one of the two")
        elif not expected and not self.expected_trace:
            hint = "add expected_output, expected_outputs, expected_error or expected_trace"
            yield MISSING_KEY.at(self.span, key="expected_output", where=" in a scenario", hint=hint)
