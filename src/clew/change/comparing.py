"""Compares two runs at a point: one full outer join over the files of both traces, in DuckDB.

Only the places of differing rows are kept; the values of a page are read by them. Where several rows have the same key,
or rows have no key at all, equal rows are matched first.
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from clew.change.comparison import (
    Amount,
    ColumnTotals,
    ComparisonCounts,
    DifferingRow,
    NotCompared,
    RunComparison,
)
from clew.change.points import CountedRows, Point, points_of, rows_at
from clew.change.row_kinds import RowKinds, kinds_of
from clew.deferred import dataclass
from clew.definitions.privacy import Sight
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.changes import DIFFERENT_PROJECTS, INVALID_COMPARISON
from clew.diagnostics.codes.trace import INVALID_PAGE
from clew.lang.typed import Value
from clew.lang.types import Kind, Type
from clew.privacy.eyes import ColumnEyes
from clew.storage.parts import ORDINAL, PartFile
from clew.trace.reader import RunTrace
from clew.trace.records import Diff, RowValues
from clew.trace.sql import Sql, quoted
from clew.trace.trace_database import TraceDatabase

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP})
_MOST_DIGITS = 38
_MOST_DIGITS_ADDED = 28
"""Sums of longer numbers may not fit a decimal of DuckDB."""


@dataclass(frozen=True, slots=True)
class CompareSide:
    """One of two runs, and how the caller sees its columns."""

    trace: RunTrace
    eyes: ColumnEyes


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareQuestion:
    """What is compared, and which of the rows that differ are shown."""

    output: int | None = None
    """The seq of an output of the first run; by default its last."""
    at: int | None = None
    """Instead: the working dataset after a step."""
    where: str | None = None
    """Only rows for which this is true, in each run by itself."""
    key: tuple[str, ...] = ()
    """Columns to match rows by, instead of natural keys and group keys."""
    sort: str | None = None
    """Largest differences of this column first."""
    limit: int | None = 100
    """None for all rows."""
    offset: int = 0


def compare_runs(a: CompareSide, b: CompareSide, question: CompareQuestion) -> RunComparison:
    """In what the second run differs from the first."""
    _require_comparable(a.trace, b.trace, question)
    for side in (a, b):
        side.eyes.require_condition(question.where)
        for name in question.key:
            side.eyes.require(name, "match rows by")
    points = points_of(a.trace, b.trace, question.output, question.at)
    kinds = kinds_of(a.trace, b.trace, points, question.key)
    columns, left_out = _compared_columns(a, b, points)
    return _Comparing(a, b, question, points, kinds, columns, left_out).comparison()


def require_same_project(a: RunTrace, b: RunTrace) -> None:
    """Raise UserError DifferentProjects for runs that have nothing in common."""
    if a.plan.name != b.plan.name:
        problem = f'{a.run_id} is a run of "{a.plan.name}", and {b.run_id} one of "{b.plan.name}"'
        raise UserError(DIFFERENT_PROJECTS.anywhere(problem=problem))


def _require_comparable(a: RunTrace, b: RunTrace, question: CompareQuestion) -> None:
    require_same_project(a, b)
    if question.offset < 0 or (question.limit is not None and question.limit < 1):
        problem = f"a page cannot have {question.limit} rows after {question.offset}"
        raise UserError(INVALID_PAGE.anywhere(problem=problem, hint="ask for 1 or more rows"))


def _compared_columns(
    a: CompareSide, b: CompareSide, points: tuple[Point, Point]
) -> tuple[tuple[str, ...], tuple[NotCompared, ...]]:
    """The columns that both have and the caller sees, and those that are left out."""
    found, left_out = list[str](), list[NotCompared]()
    for name in points[0].columns:
        if name not in points[1].columns:
            continue
        if name == "_row_id":
            left_out.append(NotCompared(name, "row ids differ from run to run"))
        elif name == "_period" and a.trace.period != b.trace.period:
            left_out.append(NotCompared(name, "the runs are for different periods"))
        elif not (a.eyes.is_clear(name) and b.eyes.is_clear(name)):
            left_out.append(NotCompared(name, "the role of the caller does not see it as it is"))
        else:
            found.append(name)
    return tuple(found), tuple(left_out)


@dataclass(frozen=True, slots=True)
class _Comparing:
    a: CompareSide
    b: CompareSide
    question: CompareQuestion
    points: tuple[Point, Point]
    kinds: RowKinds
    columns: tuple[str, ...]
    left_out: tuple[NotCompared, ...]

    def comparison(self) -> RunComparison:
        database = self._database
        self._require_sortable()
        rows = (self._rows(0), self._rows(1))
        self.b.trace.working(self.points[1].seq).database.require_whole(rows[1].relation.files)
        totals = [self._totals(side, rows[side]) for side in (0, 1)]
        with self._matched(rows, (totals[0].rows, totals[1].rows)) as (table, repeated):
            counts = database.query(Sql(self._counting(table)), ())
            found = {name: int(counts[name][0].as_py()) for name in counts.column_names}
            page, has_more = self._page(table)
        return RunComparison(
            run_a=self.a.trace.run_id,
            run_b=self.b.trace.run_id,
            point_a=self.points[0],
            point_b=self.points[1],
            where=self.question.where,
            kinds=tuple(self.kinds.kinds),
            counts=ComparisonCounts(
                rows_a=totals[0].rows,
                rows_b=totals[1].rows,
                only_in_a=found["only_in_a"],
                only_in_b=found["only_in_b"],
                changed=found["changed"],
                repeated_keys=repeated,
            ),
            columns=tuple(
                ColumnTotals(
                    name,
                    self._types(0)[name],
                    self._types(1)[name],
                    found[f"d{index}"],
                    totals[0].amounts.get(name),
                    totals[1].amounts.get(name),
                )
                for index, name in enumerate(self.columns)
            ),
            columns_only_in_a=_missing(self.points[0], self.points[1], self.a.eyes),
            columns_only_in_b=_missing(self.points[1], self.points[0], self.b.eyes),
            not_compared=self.left_out,
            rows=tuple(page),
            has_more=has_more,
            offset=self.question.offset,
        )

    @property
    def _database(self) -> TraceDatabase:
        return self.a.trace.working(self.points[0].seq).database

    def _types(self, side: int) -> Mapping[str, Type]:
        trace = (self.a, self.b)[side].trace
        return trace.working(self.points[side].seq).types

    def _rows(self, side: int) -> CountedRows:
        trace = (self.a, self.b)[side].trace
        columns = [*self.kinds.key_columns, *self.columns]
        return rows_at(trace, self.points[side], self.question.where, columns)

    def _require_sortable(self) -> None:
        sort = self.question.sort
        if sort is None:
            return
        for side in (self.a, self.b):
            side.eyes.require(sort, "sort by")
        if sort not in self.columns or not self._is_added_up(sort):
            numbers = [name for name in self.columns if self._is_added_up(name)]
            problem = f'rows cannot be sorted by the difference of "{sort}": it is not a number that both runs have'
            hint = did_you_mean(sort, numbers) or f"the numbers are {', '.join(numbers) or 'none'}"
            raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint=hint))

    def _is_added_up(self, name: str) -> bool:
        return all(self._types(side)[name].kind in _NUMBERS for side in (0, 1))

    # SQL

    def _side(self, side: int, rows: CountedRows) -> Sql:
        """Place, kind, keys and values of the rows of a run, under names that both runs have."""
        kind = self.kinds.in_sql(side)
        keys = "".join(
            f", {self._comparable(name, self.kinds.key_in_sql(name, kind), side)} AS k{index}"
            for index, name in enumerate(self.kinds.key_columns)
        )
        values = "".join(
            f", {self._comparable(name, quoted(name), side)} AS c{index}" for index, name in enumerate(self.columns)
        )
        return f"SELECT {ORDINAL} AS o, {kind} AS kind{keys}{values} FROM (" + rows.relation.sql + ")"

    def _comparable(self, name: str, value: str, side: int) -> str:
        """A value in a form in which values of both runs can be compared."""
        first, second = self._types(0)[name], self._types(1)[name]
        mine = (first, second)[side]
        kinds = {first.kind, second.kind}
        if first == second or kinds <= _MOMENTS:
            return value
        if not kinds <= _NUMBERS:
            return f"CAST({value} AS VARCHAR)"
        digits = max(_whole_digits(first), _whole_digits(second)) + max(first.scale, second.scale)
        if Kind.DOUBLE in kinds or digits <= _MOST_DIGITS:
            return value
        text = f"CAST({value} AS VARCHAR)"
        return f"rtrim(rtrim({text}, '0'), '.')" if mine.scale else text

    def _keys(self) -> list[str]:
        return ["kind", *(f"k{index}" for index in range(len(self.kinds.key_columns)))]

    def _values(self) -> list[str]:
        return [f"c{index}" for index in range(len(self.columns))]

    @contextmanager
    def _matched(self, rows: tuple[CountedRows, CountedRows], sizes: tuple[int, int]) -> Iterator[tuple[str, int]]:
        """A table with the places of matched rows, and how many keys several rows of a run have.

        Most keys are keys: rows are joined first, and the join tells whether any key was there twice.
        """
        if not self.kinds.keyless:
            with self._all_joined(rows, sizes) as table:
                if self._matches_once(table, sizes):
                    yield table, 0
                    return
        repeated = sum(self._repeated(side, rows[side]) for side in (0, 1))
        with self._differing(rows, is_ambiguous=bool(repeated)) as table:
            yield table, repeated

    @contextmanager
    def _all_joined(self, rows: tuple[CountedRows, CountedRows], sizes: tuple[int, int]) -> Iterator[str]:
        """All pairs of rows with the same key, with equal rows, but no more than there are if keys are keys."""
        sides = [self._side(side, rows[side]) for side in (0, 1)]
        keys = ", ".join(f"coalesce(a.{name}, b.{name})" for name in self._keys())
        alone = f", CASE WHEN a.o IS NULL OR b.o IS NULL THEN hash({keys}) END AS alone"
        sql = "WITH a AS (" + sides[0] + "), b AS (" + sides[1] + ") "
        sql += self._pairs("a", "b", self._keys(), alone) + f" LIMIT {sum(sizes) + 1}"
        with self._database.kept(
            sql, _distinct(file for each in rows for file in each.relation.files), _tables(rows)
        ) as table:
            yield table

    def _matches_once(self, table: str, sizes: tuple[int, int]) -> bool:
        """Whether no row has several partners, and no two rows without any have the same key."""
        found = self._database.query(
            Sql(
                "SELECT count(oa) AS a, count(ob) AS b, count(*) FILTER (WHERE ob IS NULL) AS only_a"
                ", count(*) FILTER (WHERE oa IS NULL) AS only_b"
                ", count(DISTINCT alone) FILTER (WHERE ob IS NULL) AS keys_a"
                f", count(DISTINCT alone) FILTER (WHERE oa IS NULL) AS keys_b FROM {table}"
            ),
            (),
        )
        counts = {name: int(found[name][0].as_py()) for name in found.column_names}
        is_once = (counts["a"], counts["b"]) == sizes
        return is_once and (counts["only_a"], counts["only_b"]) == (counts["keys_a"], counts["keys_b"])

    def _repeated(self, side: int, rows: CountedRows) -> int:
        """How many keys several rows of a run have."""
        keyless = f" WHERE kind NOT IN ({', '.join(map(str, self.kinds.keyless))})" if self.kinds.keyless else ""
        keys = ", ".join(self._keys())
        sql = "SELECT count(*) AS n FROM (SELECT 1 FROM (" + self._side(side, rows)
        sql += f"){keyless} GROUP BY {keys} HAVING count(*) > 1)"
        return int(self._ask(sql, (rows,))["n"][0].as_py())

    @contextmanager
    def _differing(self, rows: tuple[CountedRows, CountedRows], *, is_ambiguous: bool) -> Iterator[str]:
        """A table with the places of the rows that differ."""
        sides = [self._side(side, rows[side]) for side in (0, 1)]
        if is_ambiguous or self.kinds.keyless:
            sql = self._equal_first(sides[0], sides[1])
        else:
            sql = "WITH a AS (" + sides[0] + "), b AS (" + sides[1] + ") " + self._joined("a", "b", self._keys())
        files = _distinct(file for each in rows for file in each.relation.files)
        with self._database.kept(sql, files, _tables(rows)) as table:
            yield table

    def _equal_first(self, a: Sql, b: Sql) -> Sql:
        """Equal rows are matched with each other and drop out; the others are numbered within their keys."""
        keys, values = self._keys(), self._values()
        everything = ", ".join([*keys, *values])

        def numbered(side: str, rows: Sql) -> Sql:
            number = f"row_number() OVER (PARTITION BY {everything} ORDER BY o) AS n"
            return f"{side}1 AS MATERIALIZED (SELECT *, {number} FROM (" + rows + ")), "

        def left(side: str, other: str) -> str:
            same = " AND ".join(f"x.{name} IS NOT DISTINCT FROM y.{name}" for name in [*keys, *values, "n"])
            number = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY o) AS m"
            return (
                f"{side} AS (SELECT *, {number} FROM {side}1 AS x WHERE NOT EXISTS (FROM {other}1 AS y WHERE {same}))"
            )

        sql = "WITH " + numbered("a", a) + numbered("b", b) + left("a", "b") + ", " + left("b", "a") + " "
        return sql + self._joined("a", "b", [*keys, "m"])

    def _joined(self, a: str, b: str, by: Sequence[str]) -> str:
        """The pairs that differ."""
        return f"SELECT * FROM ({self._pairs(a, b, by)}) WHERE differs"

    def _pairs(self, a: str, b: str, by: Sequence[str], more: str = "") -> str:
        """Pairs of rows, whether they differ, and in which columns."""
        conditions = [f"{a}.{name} IS NOT DISTINCT FROM {b}.{name}" for name in by if name != "kind"]
        keyless = f" AND {a}.kind NOT IN ({', '.join(map(str, self.kinds.keyless))})" if self.kinds.keyless else ""
        differing = [f"{a}.{name} IS DISTINCT FROM {b}.{name}" for name in self._values()]
        flags = "".join(f", {each} AS d{index}" for index, each in enumerate(differing))
        return (
            f"SELECT {a}.o AS oa, {b}.o AS ob{flags}, {self._size(a, b)} AS size, "
            f"({' OR '.join([f'{a}.o IS NULL', f'{b}.o IS NULL', *differing])}) AS differs{more} "
            f"FROM {a} FULL OUTER JOIN {b} ON {' AND '.join([f'{a}.kind = {b}.kind', *conditions])}{keyless}"
        )

    def _size(self, a: str, b: str) -> str:
        """How much the column that rows are sorted by differs; a row that one run has counts with all of its value."""
        if self.question.sort is None:
            return "0"
        name = f"c{self.columns.index(self.question.sort)}"
        types = [self._types(side)[self.question.sort] for side in (0, 1)]
        digits = max(map(_whole_digits, types)) + max(each.scale for each in types)
        is_exact = all(each.kind is not Kind.DOUBLE for each in types) and digits < _MOST_DIGITS
        number = f"DECIMAL(38, {max(each.scale for each in types)})" if is_exact else "DOUBLE"
        old, new = (f"coalesce(CAST({side}.{name} AS {number}), 0)" for side in (a, b))
        return f"abs({new} - {old})"

    def _counting(self, table: str) -> str:
        both = "oa IS NOT NULL AND ob IS NOT NULL"
        flags = "".join(
            f", count(*) FILTER (WHERE {both} AND d{index}) AS d{index}" for index in range(len(self.columns))
        )
        return (
            f"SELECT count(*) FILTER (WHERE ob IS NULL) AS only_in_a, count(*) FILTER (WHERE oa IS NULL) AS only_in_b, "
            f"count(*) FILTER (WHERE {both}) AS changed{flags} FROM {table} WHERE differs"
        )

    def _ask(self, sql: Sql, rows: Sequence[CountedRows]) -> "pa.Table":
        files = _distinct(file for each in rows for file in each.relation.files)
        return self._database.query(sql, files, _tables(rows))

    # Totals

    def _totals(self, side: int, rows: CountedRows) -> "_SideTotals":
        """How many rows a run has, and the sums of its numbers."""
        keys = set(self.kinds.kinds[self.kinds.loaded].key)  # the sum of the numbers of orders means nothing
        numbers = [name for name in self.columns if self._is_added_up(name) and name not in keys]
        return _added_up(numbers, self._types(side), rows, self._database)

    # Rows

    def _page(self, table: str) -> tuple[list[DifferingRow], bool]:
        limit = "" if self.question.limit is None else f" LIMIT {int(self.question.limit) + 1}"
        by = "oa NULLS LAST, ob"
        order = f"size DESC, {by}" if self.question.sort is not None else by
        sql = f"SELECT oa, ob FROM {table} WHERE differs ORDER BY {order}{limit} OFFSET {int(self.question.offset)}"
        found = self._database.query(Sql(sql), ())
        places = list(zip(found["oa"].to_pylist(), found["ob"].to_pylist(), strict=True))
        has_more = self.question.limit is not None and len(places) > self.question.limit
        shown = places[: self.question.limit] if self.question.limit is not None else places
        old = self._cells(0, [a for a, _ in shown if a is not None])
        new = self._cells(1, [b for _, b in shown if b is not None])
        rows = [self._row(a, b, old.get(a), new.get(b)) for a, b in shown]
        return rows, has_more

    def _cells(self, side: int, ordinals: Sequence[int]) -> dict[int | None, RowValues]:
        if not ordinals:
            return {}
        trace = (self.a, self.b)[side].trace
        names = list(dict.fromkeys([*self.kinds.key_columns, *self.columns]))
        return dict(trace.working(self.points[side].seq).values(sorted(ordinals), names))

    def _row(self, a: int | None, b: int | None, old: RowValues | None, new: RowValues | None) -> DifferingRow:
        side, ordinal, cells = (0, a, old) if a is not None else (1, b, new)
        assert ordinal is not None and cells is not None  # noqa: S101, PT018 - a row is in one of the runs
        eyes = (self.a, self.b)[side].eyes
        key = {name: cells[name] for name in self.kinds.of(side, ordinal).key}
        changes = {
            name: Diff(None if old is None else old[name], None if new is None else new[name])
            for name in self.columns
            if old is None or new is None or self._differs(name, old[name], new[name])
        }
        return DifferingRow(
            change="changed" if a is not None and b is not None else "only_in_a" if b is None else "only_in_b",
            key={name: eyes.value(name, value) for name, value in key.items() if eyes.sight(name) is not Sight.HIDDEN},
            row_a=None if a is None else self.a.trace.row_ids.row_id(a),
            row_b=None if b is None else self.b.trace.row_ids.row_id(b),
            columns=changes,
        )

    def _differs(self, name: str, old: Value, new: Value) -> bool:
        if old is None or new is None:
            return old is not new
        kinds = {self._types(side)[name].kind for side in (0, 1)}
        if len(kinds) > 1 and not kinds <= _NUMBERS and not kinds <= _MOMENTS:
            return str(old) != str(new)
        both_nan = old != old and new != new  # noqa: PLR0124 - only NaN differs from itself
        return old != new and not both_nan


@dataclass(frozen=True, slots=True)
class _SideTotals:
    rows: int
    amounts: dict[str, Amount]


def totals_at(
    trace: RunTrace, point: Point, columns: Sequence[str], where: str | None = None
) -> tuple[int, dict[str, Amount]]:
    """How many rows there are at a point of a run, and the sums of columns with numbers."""
    rows, working = rows_at(trace, point, where, columns), trace.working(point.seq)
    found = _added_up(columns, working.types, rows, working.database)
    return found.rows, found.amounts


def _added_up(
    names: Sequence[str], types: Mapping[str, Type], rows: CountedRows, database: TraceDatabase
) -> _SideTotals:
    short = [name for name in names if types[name].kind is not Kind.DECIMAL or _is_short(types[name])]
    sums = "".join(f", {_sum(name, types[name])} AS s{index}" for index, name in enumerate(short))
    sql = f"SELECT count(*) AS n{sums} FROM (" + rows.relation.sql + ")"
    table = database.query(sql, rows.relation.files, rows.tables)
    amounts = {name: _amount(table[f"s{index}"][0].as_py(), types[name]) for index, name in enumerate(short)}
    for name in names:
        if name not in amounts:
            amounts[name] = _long_sum(name, types[name], rows, database)
    return _SideTotals(int(table["n"][0].as_py()), amounts)


def _long_sum(name: str, type_: Type, rows: CountedRows, database: TraceDatabase) -> Decimal:
    """The sum of decimals so long that it may not fit a decimal of DuckDB."""
    half = 10 ** (type_.precision // 2)
    whole = f"CAST(replace(CAST({quoted(name)} AS VARCHAR), '.', '') AS HUGEINT)"
    high, low = (f"CAST(sum({whole} {operator} {half}) AS VARCHAR)" for operator in ("//", "%"))
    sql = f"SELECT {high} AS high, {low} AS low FROM (" + rows.relation.sql + ")"
    table = database.query(sql, rows.relation.files, rows.tables)
    tops, rests = (int(table[each][0].as_py() or 0) for each in ("high", "low"))
    with localcontext(prec=100):
        return Decimal(tops * half + rests).scaleb(-type_.scale)


def _missing(point: Point, other: Point, eyes: ColumnEyes) -> tuple[str, ...]:
    return tuple(name for name in point.columns if name not in other.columns and eyes.sight(name) is not Sight.HIDDEN)


def _whole_digits(type_: Type) -> int:
    return 19 if type_.kind is Kind.INTEGER else type_.precision - type_.scale


def _is_short(type_: Type) -> bool:
    return type_.precision <= _MOST_DIGITS_ADDED


def _sum(name: str, type_: Type) -> str:
    if type_.kind is Kind.DOUBLE:
        return f"fsum({quoted(name)})"
    return f"CAST(sum({quoted(name)}) AS VARCHAR)"


def _amount(total: object, type_: Type) -> Amount:
    if type_.kind is Kind.DOUBLE:
        return float(total) if isinstance(total, float) else 0.0
    return Decimal(0) if total is None else Decimal(str(total))


def _distinct(files: Iterable[PartFile]) -> list[PartFile]:
    return list({file.path: file for file in files}.values())


def _tables(rows: Sequence[CountedRows]) -> dict[str, "pa.Table"]:
    return {name: table for each in rows for name, table in each.tables.items()}
