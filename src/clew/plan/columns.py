"""The columns of the working dataset as they stand between two steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

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

KEPT_COLUMNS = frozenset({*SYSTEM_COLUMNS, "_trace_id", "_period_from", "_period_to"}) - ASSIGNABLE_SYSTEM_COLUMNS
"""Columns that no assignment and no aggregation may set."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The data columns of the working dataset, in order. System columns are understood."""

    columns: tuple[Column, ...]

    def types(self) -> dict[str, Type]:
        """Every column that an expression can see, system columns last."""
        return {**{column.name: column.type for column in self.columns}, **SYSTEM_COLUMNS}

    def type_of(self, name: str) -> Type | None:
        """The type of a column, None where there is none of this name."""
        return self.types().get(name)

    def with_columns(self, added: Iterable[Column]) -> "Schema":
        """With new columns behind the existing ones; a column that exists keeps its place and its type."""
        existing = {column.name for column in self.columns} | SYSTEM_COLUMNS.keys()
        return Schema((*self.columns, *(column for column in added if column.name not in existing)))

    def name_like(self, name: str) -> str | None:
        """A column whose name differs from this one in upper and lower case only, which Spark cannot tell apart."""
        folded = name.casefold()
        return next((known for known in self.types() if known != name and known.casefold() == folded), None)
