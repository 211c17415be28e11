"""What an expression can see: the working table and, in an update, the tables it joins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.language import AMBIGUOUS_COLUMN, UNKNOWN_COLUMN, UNKNOWN_TABLE
from clew.lang.syntax import Reference, Region
from clew.lang.typed import ColumnValue
from clew.lang.types import Type


@dataclass(frozen=True, slots=True)
class Table:
    """A name and the columns behind it."""

    name: str
    columns: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables that names resolve against; the first is the working table.

    A bare name that starts with an underscore is a system column and means the working table, although every table
    has it.
    """

    tables: tuple[Table, ...]
    columns_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Hints for columns that do not exist here but somewhere near, such as one that a later operation adds."""
    tables_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Hints for tables and aliases that exist in other operations."""

    def resolve(self, reference: Reference) -> ColumnValue | Diagnostic:
        """The column that is meant, or what is wrong with the reference."""
        if reference.table is None:
            return self._resolve_bare(reference)
        table = next((table for table in self.tables if table.name == reference.table), None)
        if table is None:
            return self._unknown_table(reference)
        if reference.column not in table.columns:
            return self._unknown_column(reference, table)
        return ColumnValue(table.name, reference.column, table.columns[reference.column])

    def _resolve_bare(self, reference: Reference) -> ColumnValue | Diagnostic:
        name = reference.column
        tables = self.tables[:1] if name.startswith("_") and name in self.tables[0].columns else self.tables
        having = [table for table in tables if name in table.columns]
        if len(having) > 1:
            candidates = " or ".join(f"{table.name}.{name}" for table in having)
            return AMBIGUOUS_COLUMN.at(reference.region.span, column=name, candidates=candidates)
        if not having:
            return self._unknown_bare(reference)
        return ColumnValue(having[0].name, name, having[0].columns[name])

    def _unknown_bare(self, reference: Reference) -> Diagnostic:
        candidates = [column for table in self.tables for column in table.columns]
        where = " or ".join(table.name for table in self.tables)
        hint = self.columns_elsewhere.get(reference.column) or did_you_mean(reference.column, candidates)
        return UNKNOWN_COLUMN.at(reference.region.span, column=reference.column, table=where, hint=hint)

    def _unknown_column(self, reference: Reference, table: Table) -> Diagnostic:
        hint = did_you_mean(reference.column, table.columns)
        if table is self.tables[0]:
            hint = self.columns_elsewhere.get(reference.column) or hint
        span = _column_part(reference).span
        return UNKNOWN_COLUMN.at(span, column=reference.column, table=table.name, hint=hint)

    def _unknown_table(self, reference: Reference) -> Diagnostic:
        name = reference.table or ""
        hint = self.tables_elsewhere.get(name) or did_you_mean(name, [table.name for table in self.tables])
        region = reference.region
        span = Region(region.text, region.start, region.start + len(name)).span
        return UNKNOWN_TABLE.at(span, table=name, hint=hint)


def _column_part(reference: Reference) -> Region:
    """The characters behind the point, so that the caret stands under the column and not the table."""
    region = reference.region
    name = reference.column
    start = region.end - len(name) if region.source.endswith(name) else region.start
    return Region(region.text, start, region.end)
