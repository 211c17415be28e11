"""Rows of a question as tables of DuckDB, to which values of expressions are added for all rows at once.

DuckDB computes what it certainly computes like the evaluator. Everything else is evaluated in Python, once for each
combination of the values that the expression reads, so that the answer is the evaluator's either way.
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING

from clew import budgets
from clew.deferred import dataclass
from clew.lang.evaluation import Evaluator, Row, evaluator
from clew.lang.typed import Expression, Value, columns_of
from clew.lang.types import Kind, Type
from clew.storage.parts import ORDINAL, PartFile
from clew.trace.exact_sql import exact_value
from clew.trace.json_values import arrow_type, table_of, values_of
from clew.trace.reader import RunTrace
from clew.trace.sql import Sql, joined, quoted, sql_type
from clew.trace.trace_database import TraceDatabase

if TYPE_CHECKING:
    import pyarrow as pa

Named = tuple[str, str]
"""A column as expressions name it: its table and its name."""

THERE = "__there"
"""Whether a row would be there."""
_MOST_COMBINATIONS = 100_000
_ROWS_PER_CHECK = 256
_GIVEN = "given_rows"


class NotInBulk(Exception):
    """Something that is not certainly the same for all rows at once as for one after the other."""


@dataclass(frozen=True, slots=True)
class BulkTable:
    """A table of DuckDB: a row for each ordinal, whether it would be there, and columns."""

    name: str
    columns: Mapping[Named, Type]

    def column(self, named: Named) -> Sql:
        """A column of it."""
        if named not in self.columns:
            raise NotInBulk(f"{named} is not known")
        return Sql(quoted(stored_name(named)))


def stored_name(named: Named) -> str:
    """What a column of some table is called in tables of DuckDB. No name that users give begins with a space."""
    return f" {named[0]}.{named[1]}"


@dataclass(frozen=True, slots=True)
class BulkTables:
    """Makes tables, which are there until others take their places, or a question is answered."""

    trace: RunTrace
    _made: "dict[str, AbstractContextManager[str]]" = field(default_factory=dict)

    def make(self, sql: Sql, files: Iterable[PartFile] = (), tables: "Mapping[str, pa.Table] | None" = None) -> str:
        """A table with the rows that a query gives; its name."""
        kept = self._database.kept(sql, files, tables)
        name = kept.__enter__()
        self._made[name] = kept
        return name

    def keep_only(self, *names: str) -> None:
        """Drop all tables but these, so that what they take is free."""
        for name in [each for each in self._made if each not in names]:
            self._made.pop(name).__exit__(None, None, None)

    def close(self) -> None:
        """Drop all tables."""
        self.keep_only()

    def ask(self, sql: Sql, files: Iterable[PartFile] = ()) -> "pa.Table":
        """The rows that a query gives."""
        return self._database.query(sql, files)

    @property
    def _database(self) -> TraceDatabase:
        return self.trace.working(0).database

    def number(self, sql: str | Sql) -> int:
        """The one number that a query gives."""
        found = self.ask(sql if isinstance(sql, Sql) else Sql(sql))
        return int(found.column(0)[0].as_py() or 0)

    def combinations(
        self, table: BulkTable, names: Sequence[Named], among: Sql, evaluate: "Callable[[Row], Sequence[Value]]"
    ) -> "tuple[pa.Table, list[list[Value]]]":
        """The combinations of values that some rows have, and what Python makes of each of them."""
        listed = [f"{key} AS k{index}" for index, key in enumerate(_told_apart(table, names))] or ["1 AS k0"]
        limit = f" LIMIT {_MOST_COMBINATIONS + 1}"
        found = self.ask(f"SELECT DISTINCT {', '.join(listed)} FROM {table.name} WHERE " + among + limit)
        if found.num_rows > _MOST_COMBINATIONS:
            raise NotInBulk("too many combinations of values")
        cells = [values_of(found[f"k{index}"], table.columns[name]) for index, name in enumerate(names)]
        made = list[list[Value]]()
        for number, values in enumerate(zip(*cells, strict=True) if names else [()] * found.num_rows):
            if number % _ROWS_PER_CHECK == 0:
                budgets.check()
            made.append(list(evaluate(self.row(dict(zip(names, values, strict=True))))))
        return found, made

    def row(self, values: Mapping[Named, Value]) -> Row:
        """A row as the evaluator sees it."""
        tables = dict[str, dict[str, Value]]()
        for (owner, name), value in values.items():
            tables.setdefault(owner, {})[name] = value
        return Row(tables, self.trace.today)

    def with_values(self, table: BulkTable, wanted: Mapping[Named, Expression], among: Sql) -> BulkTable:
        """A table with values of expressions beside, for the rows for which a condition is true; NULL in others."""
        selected, joins, given = list[Sql](), Sql(""), dict[str, "pa.Table"]()
        for index, (named, tree) in enumerate(wanted.items()):
            value = exact_value(tree, lambda each: table.column((each.table, each.column)), self.trace.today)
            if value is None:
                names = sorted(columns_of(tree))
                found, made = self.combinations(table, names, among, _alone(evaluator(tree)))
                given[f"{_GIVEN}_{index}"] = _beside(found, [("v", tree.type, [each[0] for each in made])])
                joins += _looked_up(table, names, index)
                value = Sql(f"g{index}.v")
            typed = "CAST(" + value + f" AS {sql_type(tree.type)})" if tree.type.kind is not Kind.NULL else Sql("NULL")
            selected.append("CASE WHEN " + among + " THEN " + typed + " END AS " + quoted(stored_name(named)))
        sql = "SELECT t.*, " + joined(", ", selected) + f" FROM {table.name} AS t" + joins
        name = self.make(sql, (), given)
        return BulkTable(name, {**table.columns, **{named: tree.type for named, tree in wanted.items()}})

    def looked_up(
        self,
        table: BulkTable,
        names: Sequence[Named],
        among: Sql,
        found_columns: Mapping[Named, Type],
        find: Callable[[Row], Sequence[Value]],
    ) -> BulkTable:
        """A table with columns that Python finds by some of its values."""
        found, made = self.combinations(table, names, among, find)
        given = _beside(
            found,
            [
                (stored_name(named), type_, [each[place] for each in made])
                for place, (named, type_) in enumerate(found_columns.items())
            ],
        )
        listed = "".join(f", g0.{quoted(stored_name(named))}" for named in found_columns)
        sql = f"SELECT t.*{listed} FROM {table.name} AS t" + _looked_up(table, names, 0)
        name = self.make(sql, (), {f"{_GIVEN}_0": given})
        return BulkTable(name, {**table.columns, **found_columns})


def _alone(evaluate: Evaluator) -> Callable[[Row], Sequence[Value]]:
    return lambda row: [evaluate(row)]


def _beside(table: "pa.Table", columns: Iterable[tuple[str, Type, list[Value]]]) -> "pa.Table":
    more = table_of([(name, arrow_type(type_), values) for name, type_, values in columns])
    for name in more.column_names:
        table = table.append_column(name, more[name])
    return table


def _told_apart(table: BulkTable, names: Sequence[Named]) -> list[str]:
    """What tells combinations of values apart: the values, and the text of doubles, since 0 equals -0."""
    columns = [quoted(stored_name(name)) for name in names]
    doubles = [each for each, name in zip(columns, names, strict=True) if table.columns[name].kind is Kind.DOUBLE]
    return [*columns, *(f"CAST({each} AS VARCHAR)" for each in doubles)]


def _looked_up(table: BulkTable, names: Sequence[Named], index: int) -> Sql:
    same = [f"{key} IS NOT DISTINCT FROM g{index}.k{at}" for at, key in enumerate(_told_apart(table, names))]
    return Sql(f" LEFT JOIN {_GIVEN}_{index} AS g{index} ON {' AND '.join(same) or 'TRUE'}")


def rows_of_trace(
    trace: RunTrace, at: int, names: Sequence[str], where: Sql, *, also: Iterable[str] = (), among: str | None = None
) -> "tuple[Sql, tuple[PartFile, ...]]":
    """Rows of the run after a step, with their columns as tables of DuckDB name them, and the files that are read."""
    rows, table = trace.working(at), trace.plan.input.table
    if "_row_id" in names or not rows.names.issuperset(names):
        raise NotInBulk("a column that the run does not have")
    relation = rows.relation(names, where, also, among=among)
    renamed = "".join(f", {quoted(name)} AS {quoted(stored_name((table, name)))}" for name in names)
    return f"SELECT {ORDINAL}{renamed} FROM (" + relation.sql + ")", relation.files
