"""Column-level lineage: from which columns of which datasets a column of the working dataset derives.

There are two kinds. A column *derives from* the columns whose values go into it; it is *influenced by* the columns
that decide which rows it is set on or made of: selectors, join conditions, group keys, and what was deleted before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from clew.deferred import dataclass
from clew.lang.typed import Expression, columns_of


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a dataset as it is loaded."""

    dataset: str
    column: str


@dataclass(frozen=True, slots=True)
class Origins:
    """Where a value comes from."""

    derives_from: frozenset[SourceColumn] = frozenset()
    influenced_by: frozenset[SourceColumn] = frozenset()
    chosen_by: frozenset[SourceColumn] = frozenset()
    """Those of `influenced_by` that selectors and join conditions read: they decide which value a row gets."""

    def __or__(self, other: "Origins") -> "Origins":
        return Origins(
            self.derives_from | other.derives_from,
            self.influenced_by | other.influenced_by,
            self.chosen_by | other.chosen_by,
        )

    def as_influence(self) -> "Origins":
        """The same sources, as things that merely decided."""
        return Origins(frozenset(), self.derives_from | self.influenced_by)

    def as_choice(self) -> "Origins":
        """The same sources, as what a selector or a join condition reads."""
        return Origins(frozenset(), self.derives_from | self.influenced_by, self.derives_from | self.chosen_by)


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The lineage of one column, sorted, as a plan keeps it."""

    column: str
    derives_from: tuple[SourceColumn, ...] = ()
    influenced_by: tuple[SourceColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class LineageState:
    """The origins of every column of the working dataset between two steps, and of the tables that a step joins."""

    working: Mapping[str, Origins]
    working_table: str
    joined: Mapping[str, str] = field(default_factory=dict)
    """Join aliases and their datasets."""
    deletions: Origins = field(default_factory=Origins)
    """What has decided so far which rows are deleted. Summaries depend on it: they are made of the rows that remain."""

    @staticmethod
    def loaded(dataset: str, table: str, columns: Iterable[str]) -> "LineageState":
        """The state of a dataset as it is loaded: every column comes from itself."""
        return LineageState({name: Origins(frozenset({SourceColumn(dataset, name)})) for name in columns}, table)

    def of(self, expressions: Iterable[Expression]) -> Origins:
        """What goes into the values of expressions."""
        found = Origins()
        for table, column in sorted({pair for expression in expressions for pair in columns_of(expression)}):
            if table == self.working_table:
                found |= self.working.get(column, Origins())
            elif table in self.joined:
                found |= Origins(frozenset({SourceColumn(self.joined[table], column)}))
        return found

    def selected_by(self, condition: Expression | None) -> Origins:
        """What decides which rows a condition matches."""
        return self.of([condition] if condition is not None else []).as_choice()

    def joining(self, aliases: Mapping[str, str]) -> "LineageState":
        """The state that the expressions of an operation with joins see."""
        return replace(self, joined=aliases)

    def deleting(self, condition: Iterable[Expression]) -> "LineageState":
        """The state after rows were deleted."""
        return replace(self, deletions=self.deletions | self.of(condition).as_influence())

    def changed(self, changes: Mapping[str, Origins]) -> "LineageState":
        """The state after a step. A column keeps its former origins too, for the rows that the step left alone."""
        merged = dict(self.working)
        for column, origins in changes.items():
            merged[column] = merged.get(column, Origins()) | origins
        return replace(self, working=merged, joined={})

    def summary(self, columns: Iterable[str]) -> tuple[ColumnLineage, ...]:
        """The lineage of these columns, sorted for people and digests."""
        return tuple(
            ColumnLineage(name, _sorted(origins.derives_from), _sorted(origins.influenced_by))
            for name in columns
            for origins in (self.working.get(name, Origins()),)
        )


def _sorted(sources: Iterable[SourceColumn]) -> tuple[SourceColumn, ...]:
    return tuple(sorted(sources, key=lambda source: (source.dataset, source.column)))
