"""Which values a column has: how many rows have each of the most frequent ones, and from where to where they go."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections import Counter
from collections.abc import Callable

from clew.deferred import dataclass
from clew.lang.evaluation import Row
from clew.lang.typed import Expression, Value, columns_of
from clew.lang.types import INTEGER, Type
from clew.trace.json_values import json_value, values_of
from clew.trace.row_sets import Cells, RowSet
from clew.trace.sql import Sql, quoted

_OVER_ALL = {
    "total": "sum(n)",
    "missing": "sum(CASE WHEN value IS NULL THEN n ELSE 0 END)",
    "differing": "count(value)",
    "low": "min(value)",
    "high": "max(value)",
}
_MOST_FREQUENT = ") ORDER BY n DESC, value NULLS FIRST LIMIT ?"
_MOST_LOOKED_AT = 50_000
"""Rows that are looked at one by one, where only the evaluator can judge the condition."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column after a step, of the rows that match a condition; deleted rows are among them."""

    at: int
    column: str
    type: Type
    rows: int
    nulls: int
    distinct: int
    """How many different values there are, without NULL."""
    least: Value
    greatest: Value
    top: tuple[tuple[Value, int], ...]
    """The most frequent values with their numbers of rows, NULL among them."""
    is_whole: bool = True
    """Whether all rows were looked at."""

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "at": self.at,
            "column": self.column,
            "type": str(self.type),
            "rows": self.rows,
            "nulls": self.nulls,
            "distinct": self.distinct,
            "least": json_value(self.least),
            "greatest": json_value(self.greatest),
            "top": [{"value": json_value(value), "rows": count} for value, count in self.top],
            "complete": self.is_whole,
        }


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """A column after a step, and how many of its values are asked for."""

    at: int
    name: str
    type: Type
    most: int


def column_values(
    rows: RowSet, asked: AskedColumn, condition: Expression | None, see: Callable[[int, Cells], Row]
) -> ColumnValues:
    """The values of a column. By DuckDB where it certainly judges the condition as the evaluator does."""
    exact = Sql("TRUE") if condition is None else rows.in_sql(condition, see(0, {}).today)
    if exact is None:
        return _looked_at(rows, asked, condition, see)
    also = [] if condition is None else [name for _, name in columns_of(condition)]
    chosen = rows.relation([asked.name], exact, also)
    chosen_value = quoted(asked.name)
    over = ", ".join(f"{each} OVER () AS {name}" for name, each in _OVER_ALL.items())
    grouped = f"{chosen_value} AS value, count(*) AS n FROM (" + chosen.sql + f") GROUP BY {chosen_value}"
    sql = f"SELECT value, n, {over} FROM (SELECT " + grouped + Sql(_MOST_FREQUENT, (asked.most,))
    table = rows.database.query(sql, chosen.files)
    if not table.num_rows:
        return ColumnValues(asked.at, asked.name, asked.type, 0, 0, 0, None, None, ())

    def number(name: str) -> int:
        return int(table[name][0].as_py())

    def values(name: str) -> list[Value]:
        return values_of(table[name], asked.type)

    return ColumnValues(
        at=asked.at,
        column=asked.name,
        type=asked.type,
        rows=number("total"),
        nulls=number("missing"),
        distinct=number("differing"),
        least=values("low")[0],
        greatest=values("high")[0],
        top=tuple(zip(values("value"), [int(str(n)) for n in values_of(table["n"], INTEGER)], strict=True)),
    )


def _looked_at(
    rows: RowSet, asked: AskedColumn, condition: Expression | None, see: Callable[[int, Cells], Row]
) -> ColumnValues:
    counted, is_whole = Counter[Value](), True
    for number, (_, cells) in enumerate(rows.matching(condition, (asked.name,), see)):
        if number == _MOST_LOOKED_AT:
            is_whole = False
            break
        counted[cells[asked.name]] += 1
    present = sorted((value for value in counted if value is not None), key=lambda value: (value != value, value))  # noqa: PLR0124 - NaN comes last
    return ColumnValues(
        at=asked.at,
        column=asked.name,
        type=asked.type,
        rows=counted.total(),
        nulls=counted[None],
        distinct=len(present),
        least=present[0] if present else None,
        greatest=present[-1] if present else None,
        top=tuple(counted.most_common(asked.most)),
        is_whole=is_whole,
    )
