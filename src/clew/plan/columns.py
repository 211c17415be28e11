"""The columns of the working dataset between two steps."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType

from clew.deferred import dataclass
from clew.lang.types import BOOLEAN, STRING, Type


@dataclass(frozen=True, slots=True)
class Column:
    """A name and a type."""

    name: str
    type: Type


SYSTEM_COLUMNS: Mapping[str, Type] = MappingProxyType(
    {"_row_id": STRING, "_period": STRING, "_labels": STRING, "_deleted": BOOLEAN}
)
"""Columns that every row has. Only `_labels` can be assigned; it starts as an empty text."""

ASSIGNABLE_SYSTEM_COLUMNS = frozenset({"_labels"})

UNDERIVED_COLUMNS = frozenset(SYSTEM_COLUMNS) - ASSIGNABLE_SYSTEM_COLUMNS
"""System columns that come from no column of a dataset."""

KEPT_COLUMNS = frozenset({*SYSTEM_COLUMNS, "_trace_id", "_period_from", "_period_to"}) - ASSIGNABLE_SYSTEM_COLUMNS
"""Columns that no assignment and no aggregation may set."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The data columns of the working dataset, in order. System columns are understood."""

    columns: tuple[Column, ...]
    hidden: frozenset[str] = frozenset()
    """Those that were dropped: later steps do not see them. Rows and histories keep what they had."""
    types: Mapping[str, Type] = field(init=False, repr=False, compare=False)
    """Every column that an expression can see, system columns last."""

    def __post_init__(self) -> None:
        types = {**{column.name: column.type for column in self.visible}, **SYSTEM_COLUMNS}
        object.__setattr__(self, "types", MappingProxyType(types))

    def with_columns(self, added: Iterable[Column]) -> "Schema":
        """With new columns after the existing ones; a column that exists keeps its place and its type."""
        new = tuple(column for column in added if column.name not in self.types)
        return Schema((*self.columns, *new), self.hidden) if new else self

    @property
    def visible(self) -> tuple[Column, ...]:
        """The columns that were not dropped."""
        return tuple(column for column in self.columns if column.name not in self.hidden)

    def without(self, names: Iterable[str]) -> "Schema":
        """After some columns were dropped."""
        return Schema(self.columns, self.hidden | frozenset(names))
