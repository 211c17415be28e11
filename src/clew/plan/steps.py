"""What every step of a plan has, and what the rest of Clew asks about a step.

A step is frozen, with nothing left to look up or decide. Each type of operation has its own step class, in
`clew.plan.operations`; it answers the questions here, so that readers of a plan need not know the types. By what they
do to rows there are three kinds: steps that change rows, steps that create rows, and outputs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import Span
from clew.lang.typed import Expression
from clew.lang.types import Type
from clew.lang.windowing import WindowCall
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.keeping import Keeping
from clew.plan.lineage import LineageState


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


@dataclass(frozen=True, slots=True)
class StepDataset:
    """A dataset that a step reads beside the working dataset."""

    use: DatasetUse
    role: str
    """What the step does with it, in two or three words."""
    becomes_rows: bool
    """Whether its rows become rows of the working dataset, or are summed up into such rows."""


@dataclass(frozen=True, slots=True)
class Detail:
    """A labelled part of the description of a step: a table of column, type and value, and lines of text below it."""

    label: str
    lines: tuple[str, ...] = ()
    table: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBase(ABC):
    """What all steps have. The answers here are those of a step that reads and sets nothing."""

    seq: int
    id: str
    name: str
    description: str | None
    path: str
    """The fragment instances that the operation came through, "main" for the project's own."""
    place: Span | None = field(compare=False)
    breakpoint: str | None
    """The qualified name of the breakpoint after this step."""
    selector: PlannedExpression | None
    reads: tuple[Read, ...]
    adds: tuple[Column, ...]
    """The columns that the working dataset has after this step and did not have before."""

    @property
    @abstractmethod
    def capabilities(self) -> tuple[str, ...]:
        """What an engine must be able to do for this step."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the step does, in a few words."""

    @abstractmethod
    def details(self) -> Iterator[Detail]:
        """What the step does, for a reviewer who does not read YAML."""

    @abstractmethod
    def lineage_after(self, state: LineageState) -> LineageState:
        """The origins of all columns after this step."""

    @property
    def writes_output(self) -> bool:
        """Whether it writes rows to where others read them."""
        return False

    @property
    def lookups(self) -> tuple[Join, ...]:
        """The datasets in which it looks up values for the rows that it changes."""
        return ()

    @property
    def datasets(self) -> tuple[StepDataset, ...]:
        """The datasets that it reads beside the working dataset."""
        return ()

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The columns of the working dataset that it sets or fills."""
        return ()

    @property
    def columns_calculated(self) -> tuple[str, ...]:
        """The columns whose values need not be as they were loaded after this step."""
        return ()

    @property
    def columns_dropped(self) -> tuple[str, ...]:
        """The columns that later steps do not see."""
        return ()

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns that it needs by name, beside those that its expressions read."""
        return ()

    @property
    def row_names(self) -> tuple[tuple[str, ...], ...]:
        """Lists of columns that may name the rows that it creates."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingStepBase(StepBase):
    """Changes rows that exist: sets columns, or marks rows as deleted."""

    @property
    @abstractmethod
    def traced_as(self) -> Literal["update", "delete"]:
        """The kind of its records in a trace."""

    @property
    def assigned(self) -> tuple[Assignment, ...]:
        """The values that it gives to columns, in the order in which a trace keeps them."""
        return ()

    @property
    def is_wide(self) -> bool:
        """Whether what it does to a row depends on other rows, so that its results are stored with all rows."""
        return False

    @property
    def keeps(self) -> Keeping | None:
        """Which rows of those that it selects a delete leaves alone."""
        return None

    @property
    def window_calls(self) -> tuple[WindowCall, ...]:
        """The calls of its expressions that look at other rows that it selects."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatingStepBase(StepBase):
    """Adds rows to the working dataset, made from its own rows or from those of another dataset."""

    @property
    @abstractmethod
    def made_from(self) -> DatasetUse | None:
        """The dataset whose rows it takes; None for the working dataset."""

    @property
    @abstractmethod
    def condition(self) -> PlannedExpression | None:
        """Which of those rows it takes; all if there is none."""

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...] | None:
        """The columns that it groups by; None if rows come in one by one."""

    @property
    @abstractmethod
    def filled(self) -> tuple[Assignment, ...]:
        """The columns that the new rows fill. Group keys may be among them."""

    @property
    def having(self) -> PlannedExpression | None:
        """Which groups get a summary row; all if there is none."""
        return None

    @abstractmethod
    def key_values(self, table: str, types: Mapping[str, Type]) -> dict[str, Expression]:
        """What gives each group key for a source row of a summary.

        `table` is the name of the working dataset, `types` are its columns before the step.
        """

    @property
    def narrowed_keys(self) -> tuple[tuple[int, str], ...]:
        """The keys, with their positions, that conversion may make equal though groups differ in them."""
        return ()
