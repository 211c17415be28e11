"""What an expression can see: the working table and, in an update, the tables it joins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, PlainText, did_you_mean
from clew.diagnostics.codes.language import AMBIGUOUS_COLUMN, UNKNOWN_COLUMN, UNKNOWN_PARAMETER, UNKNOWN_TABLE
from clew.lang.lexer import tokenize
from clew.lang.syntax import Reference, Region
from clew.lang.typed import ColumnValue, Constant
from clew.lang.types import NULL, Type

PARAMETERS = "param"
"""What stands before the name of a parameter, as if it were a table."""


WORKING = ""
"""In place of a table: the working table, whatever it is called. It stands in arguments of fragments, whose names mean
what they mean where the fragment is used, and not columns of what it joins."""


def nothing_elsewhere(_name: str) -> str | None:
    """No hint."""
    return None


@dataclass(frozen=True, slots=True)
class Table:
    """A name and its columns."""

    name: str
    columns: Mapping[str, Type]
    is_opaque: bool = False
    """Its columns are not known, because something else is wrong that was reported; any name may be one of them."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables that names resolve against; the first is the working table.

    A working table without a name is one that could not be found, so that any table may be it unless it is known to
    be another.
    A bare name that starts with an underscore is a system column and means the working table, although every table
    has it.
    """

    tables: tuple[Table, ...]
    column_elsewhere: Callable[[str], str | None] = nothing_elsewhere
    """A hint for a column that does not exist here but somewhere near, such as one that a later operation adds."""
    table_elsewhere: Callable[[str], str | None] = nothing_elsewhere
    """A hint for a table or alias that exists in another operation."""
    parameters: Mapping[str, Constant] | None = None
    """The parameters of the project, as `param.name`; None outside of projects, where nothing about a run is known."""

    def resolve(self, reference: Reference) -> ColumnValue | Constant | Diagnostic:
        """The column or parameter that is meant, or what is wrong with the reference."""
        if reference.table is None:
            return self.resolve_bare(reference)
        if reference.table == WORKING:
            return replace(self, tables=self.tables[:1]).resolve_bare(reference)
        table = next((table for table in self.tables if table.name == reference.table), None)
        if table is None and reference.table == PARAMETERS and self.parameters is not None:
            return self.parameters.get(reference.column) or self._unknown_parameter(reference, self.parameters)
        if table is None:
            if not self.tables[0].name and self.table_elsewhere(reference.table) is None:
                return ColumnValue(reference.table, reference.column, NULL)
            return self._unknown_table(reference)
        if reference.column not in table.columns:
            if table.is_opaque:
                return ColumnValue(table.name, reference.column, NULL)
            return self._unknown_column(reference, table)
        return ColumnValue(table.name, reference.column, table.columns[reference.column])

    def resolve_bare(self, reference: Reference) -> ColumnValue | Diagnostic:
        """The column that a name without a table means, or what is wrong with it."""
        name = reference.column
        tables = self.tables[:1] if name.startswith("_") and name in self.tables[0].columns else self.tables
        having = [table for table in tables if name in table.columns]
        if len(having) > 1:
            candidates = " or ".join(f"{table.name}.{name}" for table in having)
            return AMBIGUOUS_COLUMN.at(reference.region.span, column=name, candidates=candidates)
        if not having:
            opaque = next((table for table in self.tables if table.is_opaque), None)
            return ColumnValue(opaque.name, name, NULL) if opaque else self._unknown_bare(reference)
        return ColumnValue(having[0].name, name, having[0].columns[name])

    def _unknown_bare(self, reference: Reference) -> Diagnostic:
        candidates = [column for table in self.tables for column in table.columns]
        where = " or ".join(table.name for table in self.tables)
        name = reference.column
        hint = self.column_elsewhere(name) or did_you_mean(name, candidates) or _columns_or_text(name, candidates)
        return UNKNOWN_COLUMN.at(reference.region.span, column=reference.column, table=where, hint=hint)

    def _unknown_column(self, reference: Reference, table: Table) -> Diagnostic:
        hint = did_you_mean(reference.column, table.columns)
        if table is self.tables[0]:
            hint = self.column_elsewhere(reference.column) or hint
        return UNKNOWN_COLUMN.at(_part(reference, -1).span, column=reference.column, table=table.name, hint=hint)

    def _unknown_parameter(self, reference: Reference, parameters: Mapping[str, Constant]) -> Diagnostic:
        hint = did_you_mean(reference.column, parameters) or "declare it under `parameters` of the project"
        return UNKNOWN_PARAMETER.at(_part(reference, -1).span, name=reference.column, hint=hint)

    def _unknown_table(self, reference: Reference) -> Diagnostic:
        name = reference.table or ""
        hint = self.table_elsewhere(name) or did_you_mean(name, [table.name for table in self.tables])
        return UNKNOWN_TABLE.at(_part(reference, 0).span, table=name, hint=hint)


_LISTED = 12


def _columns_or_text(name: str, columns: Sequence[str]) -> str:
    """For a name that is like no column: it may be text without quotes."""
    own = [column for column in dict.fromkeys(columns) if not column.startswith("_")]
    more = f" and {len(own) - _LISTED} more" if len(own) > _LISTED else ""
    listed = f"; the columns are {', '.join(own[:_LISTED])}{more}" if own else ""
    return f'if text is meant, write "{name}" in quotes{listed}'


def _part(reference: Reference, index: int) -> Region:
    """The characters before (0) or after (-1) the dot, so that the caret is under the part that is wrong."""
    region = reference.region
    *parts, _end = tokenize(PlainText(region.source))
    token = parts[index]
    return Region(region.text, region.start + token.start, region.start + token.end)
