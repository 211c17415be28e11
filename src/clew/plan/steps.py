"""The steps of a plan: a closed union of frozen records, with nothing left to look up or decide."""

from dataclasses import dataclass, field
from typing import Literal

from clew.diagnostics import Span
from clew.lang.conversion import keeps_apart
from clew.lang.typed import Convert, Expression
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse


@dataclass(frozen=True, slots=True)
class PlannedExpression:
    """An expression as the user wrote it, for people, and as it was understood, for the engine."""

    text: str
    tree: Expression


@dataclass(frozen=True, slots=True)
class Read:
    """A column that a step needs, and what it needs it for."""

    table: str
    column: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBase:
    """What all steps have."""

    seq: int
    id: str
    name: str
    description: str | None
    path: str
    """The fragment instances that the operation came through, "main" for the project's own."""
    place: Span | None = field(compare=False)
    breakpoint: str | None
    """The qualified name of the breakpoint behind this step."""
    selector: PlannedExpression | None
    reads: tuple[Read, ...]
    adds: tuple[Column, ...]
    """The columns that the working dataset has after this step and did not have before."""


@dataclass(frozen=True, slots=True)
class Join:
    """A dataset whose matching row an update sees under an alias."""

    alias: str
    dataset: DatasetUse
    on: PlannedExpression


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and the value it gets, converted to the column's type."""

    column: str
    value: PlannedExpression
    adds_column: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep(StepBase):
    """Sets columns on the rows that the selector matches."""

    type: Literal["update"] = "update"
    joins: tuple[Join, ...]
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateStep(StepBase):
    """Adds one summary row for each group of the rows that the selector matches."""

    type: Literal["aggregate"] = "aggregate"
    group_by: tuple[str, ...]
    aggregations: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendStep(StepBase):
    """Adds rows of another dataset, or summaries of them. Columns that are not filled are NULL."""

    type: Literal["append"] = "append"
    source: DatasetUse
    source_selector: PlannedExpression | None
    group_by: tuple[str, ...] | None
    """None for raw rows."""
    columns: tuple[Assignment, ...]
    """The columns that the new rows fill: from the source's columns, or from aggregations over them."""

    @property
    def narrowed_keys(self) -> tuple[tuple[int, str], ...]:
        """The keys, with their positions, that conversion may make equal though groups differ in them."""
        trees = {each.column: each.value.tree for each in self.columns}
        return tuple(
            (position, name)
            for position, name in enumerate(self.group_by or ())
            if isinstance(tree := trees[name], Convert) and not keeps_apart(tree.operand.type, tree.type)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStep(StepBase):
    """Marks the rows that the selector matches as deleted."""

    type: Literal["delete"] = "delete"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an output goes: a datasource with a table or a path, or a location of its own."""

    datasource_id: str | None
    table: str | None
    path: str | None
    format: str | None
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStep(StepBase):
    """Writes the rows that the selector matches."""

    type: Literal["output"] = "output"
    destination: Destination
    mode: Literal["overwrite", "append"]
    columns: tuple[str, ...]
    include_deleted: bool
    registers: str | None
    """The dataset that the output becomes a version of."""


Step = UpdateStep | AggregateStep | AppendStep | DeleteStep | OutputStep
