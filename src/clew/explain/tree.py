"""An explanation as a tree of values: what set a value, from which values, down to the sources."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.plan.operations import Step
from clew.trace.records import Source
from clew.trace.results import data_frame

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StepRef:
    """A step, for people."""

    seq: int
    name: str
    type: str
    place: str | None = None
    """File and line of the operation."""

    @classmethod
    def of(cls, step: Step) -> "StepRef":
        """The reference to a step of a plan."""
        return cls(step.seq, step.name, step.type, f"{step.place.file}:{step.place.line}" if step.place else None)


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the same inputs give when the expression is evaluated again, in Python or, for many rows, with DuckDB."""

    outcome: Literal["equal", "differs", "not checked"]
    stored: Value = None
    recomputed: Value = None
    reason: str | None = None
    """Why it was not checked, or what went wrong."""
    by: Literal["python", "duckdb"] = "python"
    rows: int = 1
    """How many rows went in."""
    rows_in_python: int = 1
    """How many of them were also evaluated in Python, with the same result. The rest went through DuckDB alone."""

    def of_many(self, by: Literal["python", "duckdb"], rows: int, rows_in_python: int) -> "Recomputed":
        """The same about the rows of a group."""
        return replace(self, by=by, rows=rows, rows_in_python=rows_in_python)


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """The row of a joined dataset that a step saw under an alias."""

    alias: str
    dataset: str
    on: str
    row: Mapping[str, Value] | None
    """None if nothing matched, which gives NULLs."""
    label: str | None = None
    source: Source | None = None
    matches: int = 1


@dataclass(frozen=True, slots=True)
class CutOff:
    """A value that is not explained here, since the tree has become deep or large enough; it can be asked about."""

    run_id: str
    row_id: str
    column: str
    at: int


@dataclass(frozen=True, slots=True)
class Input:
    """A value that went into an expression."""

    name: str
    value: Value
    explanation: "Explanation | JoinedRow | None"
    """None if the tree ends because it is deep or large enough."""
    upstream: "Explanation | None" = None
    """For a value of another dataset: why the run that registered the dataset wrote it."""
    cut: CutOff | None = None
    """Where its explanation was left out."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """A row that a summary row came from."""

    row_id: str | None
    """None for rows of a dataset that was summarised on its way in."""
    label: str
    value: Value
    share: Decimal | None
    """The part of a sum, 1 for all of it."""
    source: Source | None = None
    inputs: tuple[Input, ...] = ()


def _rounded(share: Decimal | None) -> float | None:
    return None if share is None else float(share)


@dataclass(frozen=True, slots=True)
class Parents:
    """The source rows of a summary row."""

    count: int
    contributors: tuple[Contributor, ...]
    """The largest first, or all of them."""

    def to_arrow(self) -> "pa.Table":
        """The contributors as a table: who they are, what they brought in, and where they came from."""
        import pyarrow as pa

        sources = [each.source for each in self.contributors]
        return pa.table(
            {
                "row_id": pa.array([each.row_id for each in self.contributors], pa.string()),
                "label": pa.array([each.label for each in self.contributors], pa.string()),
                "value": pa.array([each.value for each in self.contributors]),
                "share": pa.array([_rounded(each.share) for each in self.contributors], pa.float64()),
                "dataset": pa.array([None if each is None else each.dataset for each in sources], pa.string()),
                "file": pa.array([None if each is None else each.file for each in sources], pa.string()),
                "line": pa.array([None if each is None else each.line for each in sources], pa.int64()),
            }
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())


@dataclass(frozen=True, slots=True)
class Loaded:
    """The value was loaded, and nothing changed it."""

    source: Source
    upstream: "Explanation | None" = None
    """Why the run that registered the dataset wrote this value."""
    cut: CutOff | None = None
    """That value, where its explanation was left out."""


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The rows that a call with OVER looked at, and what it gave."""

    call: str
    value: Value
    group: Mapping[str, Value]
    """What the rows of its partition have in common."""
    order: str
    """The order of the rows, empty where it makes no difference."""
    parents: Parents
    """The rows of its frame; with all of them, in order."""


@dataclass(frozen=True, slots=True)
class Updated:
    """An update set the value."""

    step: StepRef
    expression: str
    inputs: tuple[Input, ...]
    joins: tuple[JoinedRow, ...]
    recomputed: Recomputed
    windows: tuple[WindowRows, ...] = ()
    """The rows that calls with OVER looked at. Values of their calls are among the inputs."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """The row is a summary, and the value one of its keys or aggregations."""

    step: StepRef
    expression: str
    of: str
    """What was summarised: the working dataset's table, or another dataset."""
    group: Mapping[str, Value]
    parents: Parents
    recomputed: Recomputed


@dataclass(frozen=True, slots=True)
class Appended:
    """The row came from another dataset as it was."""

    step: StepRef
    expression: str
    source: Source | None
    inputs: tuple[Input, ...]
    recomputed: Recomputed
    upstream: "Explanation | None" = None
    cut: CutOff | None = None
    """The value in the run that registered the dataset, where its explanation was left out."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A condition, what it was for a row, and the values that made it so."""

    condition: str
    value: Value
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class KeptRow:
    """The row that stayed when a step deleted others with the same keys."""

    row_id: str
    label: str
    rule: str
    """Which row stays, in words."""
    values: Mapping[str, Value]
    """What it had in the columns that decide."""
    own: Mapping[str, Value]
    """What the deleted row had in them."""
    recomputed: Recomputed
    """Which row stays, decided again from all rows with these keys."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A step deleted the row."""

    step: StepRef
    selector: str | None
    resolved: str | None
    """The selector with named selectors put in place, where it uses any."""
    decisions: tuple[Decision, ...]
    kept: KeptRow | None = None
    """The row that stayed in its place, where one did."""


@dataclass(frozen=True, slots=True)
class Unset:
    """Nothing has set the value."""

    reason: str


Cause = Loaded | Updated | Summarised | Appended | Deleted | Unset


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a column of a row has its value."""

    run_id: str
    row_id: str
    label: str
    """What people call the row: its natural key, or the keys of its group."""
    column: str
    value: Value
    at: int
    """The step after which it has the value."""
    cause: Cause
    trace_id: int | None = None
    """The id for questions about the lineage of the row."""
    project: str = ""
    period: str = ""
    """What the run was for."""

    @property
    def parents(self) -> Parents | None:
        """The source rows of the value, if it belongs to a summary row."""
        return self.cause.parents if isinstance(self.cause, Summarised) else None
