"""Checks of a plan: what must be true of rows at a point, ready to be decided by Spark and from a trace alike."""

from dataclasses import field
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import Span
from clew.lang.typed import Apply, ColumnValue, Constant, Expression, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.datasets import DatasetUse
from clew.plan.steps import Join, PlannedExpression

CheckKind = Literal[
    "not_null",
    "unique",
    "in_set",
    "range",
    "pattern",
    "expression",
    "total",
    "freshness",
    "complete",
    "join_must_match",
    "schema",
]
SeverityName = Literal["fail", "warn", "quarantine"]


@dataclass(frozen=True, slots=True)
class Tie:
    """The number that a total has to be, over the same rows or over a dataset."""

    value: PlannedExpression
    dataset: DatasetUse | None
    tolerance: str
    """A decimal number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCheck:
    """One check. Exactly one of `failing`, `keys`, `total`, `join` and `decided` says what it requires."""

    name: str
    kind: CheckKind
    severity: SeverityName
    at: int
    """It looks at the rows after this step; 0 is loading."""
    text: str
    """What it requires, for people."""
    description: str = ""
    place: Span | None = field(default=None, compare=False)
    dataset: DatasetUse | None = None
    """The dataset whose definition declares it; None where the project does."""
    of_dataset: bool = False
    """Whether it looks at the rows of that dataset as it was loaded, and not at the working dataset."""
    within: PlannedExpression | None = None
    """Which rows are checked; None for all."""
    failing: PlannedExpression | None = None
    """True for rows that fail."""
    keys: tuple[str, ...] = ()
    """Columns whose values together must be unique."""
    total: PlannedExpression | None = None
    """What must be TRUE of all rows together, or the number that ties."""
    tie: Tie | None = None
    join: Join | None = None
    """What every row has to find a match in."""
    decided: str | None = None
    """What is wrong with the columns, found when the project was compiled; empty where nothing is."""
    quarantined_by: int | None = None
    """The step that deletes the rows that fail."""

    @property
    def of_rows(self) -> bool:
        """Whether single rows fail."""
        return self.failing is not None or bool(self.keys) or self.join is not None

    @property
    def datasets(self) -> tuple[DatasetUse, ...]:
        """The datasets that it reads beside the working dataset."""
        own = (self.dataset,) if self.of_dataset and self.dataset is not None else ()
        joined = (self.join.dataset,) if self.join is not None else ()
        tied = (self.tie.dataset,) if self.tie is not None and self.tie.dataset is not None else ()
        return (*own, *joined, *tied)

    def columns(self, table: str) -> frozenset[str]:
        """The columns that it reads of a table: of the working dataset, or of its dataset."""
        tied = self.tie.value if self.tie is not None and self.tie.dataset is None else None
        on = self.join.on if self.join is not None else None
        trees = [each.tree for each in (self.within, self.failing, self.total, tied, on) if each is not None]
        return frozenset(name for tree in trees for each, name in columns_of(tree) if each == table) | set(self.keys)

    @property
    def joined_columns(self) -> frozenset[str]:
        """The columns that it reads of the dataset in which rows have to find a match."""
        if self.join is None:
            return frozenset()
        return frozenset(name for each, name in columns_of(self.join.on.tree) if each == self.join.alias)

    def condition(self, table: str) -> Expression | None:
        """True for living rows that fail, where a row shows it by itself."""
        return None if self.failing is None else self.among_living(self.failing.tree, table)

    def among_living(self, condition: Expression | None, table: str) -> Expression:
        """A condition, for rows that are checked. What may fail is not asked about other rows."""
        checked = self.is_checked(table)
        return checked if condition is None else Apply("IF", (checked, condition, _FALSE), BOOLEAN)

    def is_checked(self, table: str) -> Expression:
        """True for rows that are checked."""
        living: Expression = Apply("NOT", (_deleted(table),), BOOLEAN)
        if self.within is None:
            return living
        return Apply("IF", (_deleted(table), _FALSE, self.within.tree), BOOLEAN)


def _deleted(table: str) -> ColumnValue:
    return ColumnValue(table, "_deleted", BOOLEAN)


_FALSE = Constant(False, BOOLEAN)
