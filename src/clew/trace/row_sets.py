"""Rows in files with the changes on top of them: finding rows by a condition, sorting them, reading their values.

These can be the working dataset after a step, or a dataset as a run saw it.
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from clew import budgets
from clew.deferred import dataclass
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Expression, Value, columns_of
from clew.lang.types import BOOLEAN, INTEGER, STRING, Type
from clew.plan.datasets import DatasetUse
from clew.plan.operations import CreatingStep
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import (
    ORDINAL,
    ORIGIN,
    SOURCE_FILE,
    SOURCE_LINE,
    SOURCE_ROW_ID,
    WRITTEN_ROW_ID,
    Part,
    PartFile,
    TracedStep,
    after_column,
)
from clew.trace.json_values import arrow_type, table_of, values_of
from clew.trace.prefilter import conjuncts, translated
from clew.trace.row_sources import FileRows, FileSource, RowBounds, RowSource, StateSource, excluded_from
from clew.trace.run_parts import STATE_COLUMNS, GroupKey, group_keys, periods_of
from clew.trace.sql import (
    Sql,
    is_set,
    joined,
    latest_value,
    layers_of,
    needed_columns,
    parquet,
    quoted,
    sql_type,
    typed_column,
)
from clew.trace.trace_database import Reading, TraceDatabase

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Order:
    """By the values of a column. NULL comes last either way; rows with the same value stay in their own order."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as a query, and the files that it reads."""

    sql: Sql
    files: tuple[PartFile, ...]


_FIRST_CHUNK = 1_000
_LARGEST_CHUNK = 100_000
_ROWS_PER_CHECK = 16
_SHARES = 4
"""Rows read at once take no more than this part of the memory of a question."""
_BYTES_PER_CELL = 60
"""What a value of a row takes in Python, beside its text."""
_WANTED = "__wanted"
_COUNT, _SUM = "__count", "__sum"
_LAST_ORDINAL = 2**63 - 1

Cells = dict[str, Value]


class RowSet:
    """Rows with ordinals, and what steps have changed in them."""

    def __init__(
        self,
        *,
        files: TraceFiles,
        database: TraceDatabase,
        types: Sequence[tuple[str, Type]],
        origins: Sequence[FileRows],
        state: Part | None = None,
        changes: Sequence[tuple[Part, TracedStep]] = (),
    ) -> None:
        self._files = files
        self._database = database
        self._types = dict(types)
        self._origins = origins
        self._state = state
        self._changes = [(part, step) for part, step in changes if part.files]
        self._row_bytes = 1
        """What the values of a row take, as far as rows were read."""

    def matching(
        self, condition: Expression | None, columns: Sequence[str], see: Callable[[int, Cells], Row], after: int = -1
    ) -> Iterator[tuple[int, Cells]]:
        """The rows for which a condition is true, by ordinal, with the values of some columns.

        `see` makes a row for the evaluator out of an ordinal and values.
        """
        needed, decide = list(columns), None
        if condition is not None:
            named = {column for _, column in columns_of(condition) if column in self._types}
            needed, decide = sorted({*columns, *named}), evaluator(condition)
        for chunk in self._chunks(condition, see(0, {}).today, after):
            for number, (ordinal, cells) in enumerate(self._valued(chunk, needed)):
                if number % _ROWS_PER_CHECK == 0:
                    budgets.check()
                if decide is None or decide(see(ordinal, cells)) is True:
                    yield ordinal, {name: cells[name] for name in columns}

    def _valued(self, chunk: "_Ordinals", columns: Sequence[str]) -> Iterator[tuple[int, Cells]]:
        """The values of rows, so many at once as fit into a share of the memory that the question may take."""
        budget = budgets.current()
        if budget is None:
            yield from self.values(chunk, columns)
            return
        start, share = 0, budget.limits.memory_bytes // _SHARES
        while start < len(chunk):
            size = max(1, share // self._row_bytes)
            table = self._table(chunk.slice(start, size), columns)
            needed = table.nbytes * 2 + table.num_rows * (len(columns) + 1) * _BYTES_PER_CELL
            self._row_bytes = max(1, needed // max(1, table.num_rows))
            with budgets.holding(needed):
                yield from self._rows(table, columns)
            start += size

    def size(self) -> int | None:
        """How many rows there are; None where files also hold rows that do not count."""
        sources = list(self._sources((0, None)))
        files = [source for source in sources if isinstance(source, FileSource)]
        if not all(source.counts_all for source in files):
            return None
        states = [source.part for source in sources if isinstance(source, StateSource)]
        return sum(len(source.ordinals) for source in files) + sum(file.rows for part in states for file in part.files)

    def count(self, condition: Sql | None, also: Iterable[str]) -> int:
        """How many rows there are, or match a condition that reads the columns in `also`; deleted ones among them."""
        found = self.relation((), condition if condition is not None else Sql("TRUE"), also)
        if not found.files:
            return 0
        return int(self._database.query("SELECT count(*) AS n FROM (" + found.sql + ")", found.files)["n"][0].as_py())

    def judged(self, ordinals: Sequence[int], condition: Expression, see: Callable[[int, Cells], Row]) -> set[int]:
        """Those of some rows for which a condition is true."""
        named = sorted({column for _, column in columns_of(condition) if column in self._types})
        decide = evaluator(condition)
        return {ordinal for ordinal, cells in self.values(ordinals, named) if decide(see(ordinal, cells)) is True}

    def ordinals(self, after: int, limit: int) -> list[int]:
        """The first rows after an ordinal."""
        chunks = self._chunks(None, date.min, after)
        return list(islice((ordinal for chunk in chunks for ordinal in chunk.to_pylist()), limit))

    def values(self, ordinals: "_Ordinals | Sequence[int]", columns: Sequence[str]) -> list[tuple[int, Cells]]:
        """The values of rows, by ordinal."""
        return self._rows(self._table(ordinals, columns), columns)

    def _rows(self, table: "pa.Table", columns: Sequence[str]) -> list[tuple[int, Cells]]:
        keys = table[ORDINAL].to_pylist()
        cells = [values_of(table[name], self._types[name]) for name in columns]
        rows = zip(*cells, strict=True) if columns else [()] * len(keys)
        return [(key, dict(zip(columns, row, strict=True))) for key, row in zip(keys, rows, strict=True)]

    def ordered(self, ordinals: Sequence[int] | None, order: Order, *, offset: int, limit: int) -> list[int]:
        """Some of these rows, of all rows where none are given, in an order: those after the first `offset`."""
        types, read = {order.column: self._types[order.column]}, list[PartFile]()
        wanted = table_of([(ORDINAL, arrow_type(INTEGER), list(ordinals or ()))])
        bounds = (0, _LAST_ORDINAL) if ordinals is None else _bounds(ordinals)
        selects = list[Sql]()
        for source in self._sources(bounds):
            inside = "" if ordinals is None else f" WHERE {ORDINAL} IN (SELECT {ORDINAL} FROM {_WANTED})"
            selects.append("SELECT * FROM (" + source.select(types) + f"){inside}")
            read += source.read
        if not selects:
            return []
        rows = self._overlaid(joined(" UNION ALL ", selects), types, bounds, read)
        direction = "DESC" if order.descending else "ASC"
        by = f" ORDER BY {quoted(order.column)} {direction} NULLS LAST, {ORDINAL} LIMIT ? OFFSET ?"
        sql = f"SELECT {ORDINAL} FROM (" + rows + ")" + Sql(by, (limit, offset))
        found: list[int] = self._database.query(sql, _distinct(read), {_WANTED: wanted})[ORDINAL].to_pylist()
        return found

    def sums(
        self,
        column: str | None,
        by: Sequence[str],
        condition: Sql | None = None,
        also: Iterable[str] = (),
        *,
        include_deleted: bool,
    ) -> "list[tuple[Cells, int, Value]]":
        """For each group of rows with the same values: those values, how many rows, and the sum of a column.

        Rows that were deleted count where they are included. Where no column is given, the sum is NULL. The condition
        is SQL that `in_sql` gave, and reads the columns in `also`.
        """
        names = dict.fromkeys([*by, *([column] if column else ()), *also, "_deleted"])
        types, read, bounds = {name: self._types[name] for name in names}, list[PartFile](), (0, _LAST_ORDINAL)
        selects = list[Sql]()
        for source in self._sources(bounds):
            selects.append("SELECT * FROM (" + source.select(types) + ")")
            read += source.read
        if not selects:
            return []
        rows = self._overlaid(joined(" UNION ALL ", selects), types, bounds, read)
        value = f"sum({quoted(column)})" if column else "NULL"
        keys = ", ".join(map(quoted, by))
        listed = f"{keys}, " if by else ""
        kept = [Sql("TRUE")] if include_deleted else [Sql("NOT coalesce(_deleted, FALSE)")]
        where = joined(" AND ", [*kept, *([condition] if condition is not None else ())])
        sql = f"SELECT {listed}count(*) AS {_COUNT}, {value} AS {_SUM} FROM (" + rows + ") WHERE " + where
        table = self._database.query(sql + (f" GROUP BY {keys}" if by else ""), _distinct(read))
        cells = [values_of(table[name], self._types[name]) for name in by]
        keyed = zip(*cells, strict=True) if by else [()] * table.num_rows
        counts, totals = table[_COUNT].to_pylist(), table[_SUM].to_pylist()
        return [
            (dict(zip(by, key, strict=True)), int(count), total)
            for key, count, total in zip(keyed, counts, totals, strict=True)
        ]

    def computed(
        self, values: Mapping[str, Sql], needed: Iterable[str], condition: Expression, today: date
    ) -> Cells | None:
        """Values of all rows for which a condition is true at once: aggregates in SQL, by name.

        They read the columns in `needed`. None where DuckDB might judge the condition in another way.
        """
        exact = self.in_sql(condition, today)
        if exact is None:
            return None
        named = dict.fromkeys([*needed, *(name for _, name in columns_of(condition))])
        types, read, bounds = {name: self._types[name] for name in named}, list[PartFile](), (0, _LAST_ORDINAL)
        filters = [sql for each in conjuncts(condition) if (sql := self._filter(each, today, read)) is not None]
        where = " WHERE " + joined(" AND ", filters) if filters else Sql("")
        selects = list[Sql]()
        for source in self._sources(bounds):
            selects.append("SELECT * FROM (" + source.select(types) + ")" + where)
            read += source.read
        if not selects:
            return None
        rows = self._overlaid(joined(" UNION ALL ", selects), types, bounds, read, is_ordered=False)
        listed = joined(", ", [sql + f" AS {quoted(name)}" for name, sql in values.items()])
        table = self._database.query("SELECT " + listed + " FROM (" + rows + ") WHERE " + exact, _distinct(read))
        return {name: table[name][0].as_py() for name in values}

    def relation(
        self, columns: Iterable[str], where: Sql, also: Iterable[str] = (), *, among: str | None = None
    ) -> "Relation":
        """These rows for a query of someone else: their ordinals and some columns, deleted rows among them.

        The condition reads the columns in `also`, and may read `_deleted` and ordinals. `among` is a table with the
        ordinals of those that are asked for, where not all are.
        """
        listed = list(dict.fromkeys(columns))
        types = {name: self._types[name] for name in dict.fromkeys([*listed, *also, "_deleted"])}
        read, bounds, selects = list[PartFile](), (0, _LAST_ORDINAL), list[Sql]()
        inside = "" if among is None else f" WHERE {ORDINAL} IN (SELECT {ORDINAL} FROM {among})"
        for source in self._sources(bounds):
            selects.append("SELECT * FROM (" + source.select(types) + f"){inside}")
            read += source.read
        names = ", ".join([ORDINAL, *map(quoted, listed)])
        if not selects:
            nothing = "".join(f", CAST(NULL AS {sql_type(type_)}) AS {quoted(name)}" for name, type_ in types.items())
            return Relation(Sql(f"SELECT {names} FROM (SELECT 0 AS {ORDINAL}{nothing}) WHERE FALSE"), ())
        rows = self._overlaid(joined(" UNION ALL ", selects), types, bounds, read, is_ordered=False)
        return Relation(f"SELECT {names} FROM (" + rows + ") WHERE " + where, tuple(_distinct(read)))

    def since(self, earlier: "RowSet", was: Iterable[str], now: Iterable[str]) -> "Relation":
        """These rows beside what they were earlier: ordinals, and columns named by `was_name` and `now_name`.

        Rows that are in one of both only have NULL for the ordinal of the other, `was_ordinal` or `now_ordinal`.
        """
        named = list(dict.fromkeys([*was, "_deleted"])), list(dict.fromkeys([*now, "_deleted"]))
        if self.origin != earlier.origin:
            return _side_by_side(earlier, self, *named)
        types = {name: self._types[name] for name in dict.fromkeys([*named[0], *named[1]])}
        read, bounds, selects = list[PartFile](), (0, _LAST_ORDINAL), list[Sql]()
        for source in self._sources(bounds):
            selects.append("SELECT * FROM (" + source.select(types) + ")")
            read += source.read
        if not selects:
            return _side_by_side(earlier, self, *named)
        layers = layers_of(self._changes, types)
        past = earlier.changing_steps
        old = [(part, [step for step in steps if step.seq in past]) for part, steps in layers]
        selected = [f"{ORDINAL} AS {was_name(ORDINAL)}, {ORDINAL} AS {now_name(ORDINAL)}"]
        selected += [f"{latest_value(name, types[name], old)} AS {was_name(name)}" for name in named[0]]
        selected += [f"{latest_value(name, types[name], layers)} AS {now_name(name)}" for name in named[1]]
        tables = self._layered(layers, types, bounds, read)
        sql = "WITH created AS (" + joined(" UNION ALL ", selects) + f") SELECT {', '.join(selected)} FROM created"
        return Relation(sql + tables, tuple(_distinct(read)))

    @property
    def origin(self) -> tuple[Part | None, tuple[FileRows, ...]]:
        """Where the rows lie, but for changes: a state that was written, and files."""
        return self._state, tuple(self._origins)

    @property
    def changing_steps(self) -> frozenset[int]:
        """The steps whose changes the rows have."""
        return frozenset(step.seq for _, step in self._changes)

    @property
    def types(self) -> Mapping[str, Type]:
        """The columns that the rows have, with their types."""
        return self._types

    @property
    def database(self) -> TraceDatabase:
        """Where queries over them are answered."""
        return self._database

    def in_sql(self, condition: Expression, today: date) -> Sql | None:
        """A condition on the rows as SQL, where DuckDB certainly judges like the evaluator; None elsewhere."""
        if not {name for _, name in columns_of(condition)} <= self._types.keys():
            return None
        return translated(condition, lambda column: Sql(quoted(column.column)), today)

    @property
    def names(self) -> frozenset[str]:
        """The columns that the rows have."""
        return frozenset(self._types)

    def _chunks(self, condition: Expression | None, today: date, after: int) -> "Iterator[_Ordinals]":
        """The ordinals, ascending, of rows that may match; no row that matches is missing.

        Few come first, since a page is often full with them, then more and more. Where DuckDB can judge nothing, they
        follow from the positions in the files.
        """
        read = list[PartFile]()
        found = [] if condition is None else conjuncts(condition)
        filters = {each: sql for each in found if (sql := self._filter(each, today, read)) is not None}
        sources = list(self._sources((after + 1, None)))
        if not sources:
            return iter(())
        if not filters and all(isinstance(source, FileSource) and source.counts_all for source in sources):
            ranges = sorted((source.ordinals for source in sources if isinstance(source, FileSource)), key=min)
            return _growing(_Ranges(ranges))
        return _growing(self._candidates(filters, sources, read, after))

    def _candidates(
        self, filters: Mapping[Expression, Sql], sources: Sequence[RowSource], read: list[PartFile], after: int
    ) -> "pa.ChunkedArray":
        columns = {name: self._types[name] for each in filters for _, name in columns_of(each)}
        condition = joined(" AND ", [Sql(f"{ORDINAL} > ?", (after,)), *filters.values()])
        selects = [f"SELECT {ORDINAL} FROM (" + source.select(columns) + ") WHERE " + condition for source in sources]
        files = _distinct([*read, *(file for source in sources for file in source.read)])
        return self._database.query(joined(" UNION ALL ", selects) + f" ORDER BY {ORDINAL}", files)[ORDINAL]

    def _filter(self, conjunct: Expression, today: date, read: list[PartFile]) -> Sql | None:
        """SQL over rows as they were created that keeps all rows for which a condition may be true."""
        names = {name for _, name in columns_of(conjunct)}
        if not names or not names <= self._types.keys() or "_deleted" in names:
            return None
        created = translated(conjunct, lambda column: Sql(quoted(column.column)), today)
        changing = [(part, step) for part, step in self._changes if names & set(step.columns)]
        if created is None or not changing:
            return created
        if len(names) > 1:
            return None
        [name] = names
        selects = [self._changed(conjunct, name, part, step, today) for part, step in changing]
        read += [file for part, _ in changing for file in part.files]
        return "(" + created + f" OR {ORDINAL} IN (" + joined(" UNION ALL ", selects) + "))"

    def _changed(self, conjunct: Expression, name: str, part: Part, step: TracedStep, today: date) -> Sql:
        """The ordinals of rows that a step has given a value for which a condition is true."""
        position = step.columns.index(name)
        column = Sql(typed_column(after_column(step.seq, position), self._types[name]))
        condition = translated(conjunct, lambda _column: column, today)
        assert condition is not None  # noqa: S101 - it was translated over another column of the same type
        table = parquet([self._files.source(file) for file in part.files])
        return f"SELECT {ORDINAL} FROM " + table + f" WHERE {is_set(step, position)} AND " + condition

    def _table(self, ordinals: "_Ordinals | Sequence[int]", columns: Sequence[str]) -> "pa.Table":
        listed = ordinals if isinstance(ordinals, Sequence) else ordinals.to_pylist()
        wanted = table_of([(ORDINAL, arrow_type(INTEGER), listed)])
        types = {name: self._types[name] for name in columns}
        bounds = _bounds(listed)
        read, selects = list[PartFile](), list[Sql]()
        for source in self._sources(bounds):
            inside = f"{ORDINAL} IN (SELECT {ORDINAL} FROM {_WANTED})"
            selects.append("SELECT * FROM (" + source.select(types) + f") WHERE {inside}")
            read += source.read
        if not selects:
            return table_of([(name, arrow_type(type_), []) for name, type_ in ((ORDINAL, INTEGER), *types.items())])
        sql = self._overlaid(joined(" UNION ALL ", selects), types, bounds, read)
        return self._database.query(sql, _distinct(read), {_WANTED: wanted})

    def _overlaid(
        self,
        rows: Sql,
        types: Mapping[str, Type],
        bounds: RowBounds,
        read: list[PartFile],
        *,
        is_ordered: bool = True,
    ) -> Sql:
        layers = layers_of(self._changes, types)
        tables = self._layered(layers, types, bounds, read)
        selected = [ORDINAL, *(f"{latest_value(name, types[name], layers)} AS {quoted(name)}" for name in types)]
        begin, end = f") SELECT {', '.join(selected)} FROM created", f" ORDER BY {ORDINAL}" if is_ordered else ""
        return "WITH created AS (" + rows + begin + tables + end

    def _layered(
        self,
        layers: Sequence[tuple[Part, Sequence[TracedStep]]],
        types: Mapping[str, Type],
        bounds: RowBounds,
        read: list[PartFile],
    ) -> Sql:
        """The changes beside the rows that were created, as `latest_value` names them."""
        tables = list[Sql]()
        for index, (part, steps) in enumerate(layers):
            columns = sorted({name for step in steps for name in needed_columns(step, types)})
            listed = ", ".join([ORDINAL, *map(quoted, columns)])
            source = parquet([self._files.source(file) for file in part.files])
            within = Sql(f" WHERE {ORDINAL} BETWEEN ? AND ?", bounds)
            if len(steps) < len(part.steps):  # few rows of a part may have what these steps did
                within += f" AND ({' OR '.join(f'{quoted(name)} IS NOT NULL' for name in columns)})"
            tables.append(f" LEFT JOIN (SELECT {listed} FROM " + source + within + f") AS c{index} USING ({ORDINAL})")
            read += part.files
        return joined("", tables)

    def _sources(self, bounds: RowBounds) -> Iterator[RowSource]:
        """Where rows with ordinals in a range are read from."""
        if self._state is not None and self._state.files:
            yield StateSource(self._files, self._state, bounds)
        for origin in self._origins:
            source = FileSource(self._files, origin, bounds)
            if not source.is_outside:
                yield source


def was_name(column: str) -> str:
    """What a column of `since` is called that has the values of earlier."""
    return quoted("was:" + column)


def now_name(column: str) -> str:
    """What a column of `since` is called that has the values of now."""
    return quoted("now:" + column)


def _side_by_side(earlier: RowSet, later: RowSet, was: Sequence[str], now: Sequence[str]) -> Relation:
    """What `since` gives, for rows that lie in other files than before."""
    left, right = earlier.relation(was, Sql("TRUE")), later.relation(now, Sql("TRUE"))
    old = ", ".join(f"{quoted(name)} AS {was_name(name)}" for name in (ORDINAL, *was))
    new = ", ".join(f"{quoted(name)} AS {now_name(name)}" for name in (ORDINAL, *now))
    sql = f"SELECT * FROM (SELECT {old} FROM (" + left.sql + f")) FULL JOIN (SELECT {new} FROM (" + right.sql
    on = f")) ON {was_name(ORDINAL)} = {now_name(ORDINAL)}"
    return Relation(sql + on, tuple(_distinct([*left.files, *right.files])))


class _Ordinals(Protocol):
    """Ordinals in a row."""

    def __len__(self) -> int: ...

    def slice(self, offset: int, length: int) -> "_Ordinals":
        """Some of them."""
        ...

    def to_pylist(self) -> list[int]:
        """All of them."""
        ...


class _Ranges:
    """The ordinals of ranges, made when they are asked for."""

    def __init__(self, ranges: Sequence[range]) -> None:
        self._ranges = ranges

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    def slice(self, offset: int, length: int) -> "_Ranges":
        """Some of them."""
        cut = list[range]()
        for each in self._ranges:
            part = each[max(0, offset) : max(0, offset + length)]
            offset -= len(each)
            if part:
                cut.append(part)
        return _Ranges(cut)

    def to_pylist(self) -> list[int]:
        """All of them."""
        return [ordinal for each in self._ranges for ordinal in each]


def _growing(ordinals: _Ordinals) -> Iterator[_Ordinals]:
    size, start, count = _FIRST_CHUNK, 0, len(ordinals)
    while start < count:
        yield ordinals.slice(start, size)
        start += size
        size = min(size * 10, _LARGEST_CHUNK)


def _bounds(ordinals: Sequence[int]) -> tuple[int, int]:
    return (min(ordinals), max(ordinals)) if ordinals else (0, -1)


def _distinct(files: Sequence[PartFile]) -> list[PartFile]:
    return list({file.path: file for file in files}.values())


def working_rows(reading: Reading, at: int) -> RowSet:
    """The working dataset after a step, deleted rows among them.

    A part that holds the state after its last step stands for everything before it.
    """
    run, files = reading.run, reading.files
    states = [part for part in run.changes if part.columns and part.seq <= at]
    state = states[-1] if states else None
    start = state.seq if state else 0
    columns = run.columns(at)
    origins = list[FileRows]()
    if state is None:
        data = {column.name for column in run.plan.input.columns} | {name for name, _ in STATE_COLUMNS}
        system = (("_period", Sql("?", (reading.period,))), ("_labels", Sql("''")), ("_deleted", Sql("FALSE")))
        periods = periods_of(run.loaded, run.plan.input)
        origins += [
            FileRows(file, files.columns(file) & data, system, periods, excluded_from(run.loaded, file))
            for file in run.loaded.files
        ]
    for part in run.created:
        if start < part.seq <= at:
            origins += [FileRows(file, files.columns(file), (("_deleted", Sql("FALSE")),)) for file in part.files]
    return RowSet(
        files=files,
        database=reading.database,
        types=columns,
        origins=origins,
        state=state,
        changes=list(run.traced(start, at)),
    )


def created_rows(reading: Reading, part: Part) -> RowSet:
    """The rows that a step created, as it created them, with the keys of their groups."""
    system = (("_deleted", Sql("FALSE")),)
    origins = [FileRows(file, reading.files.columns(file), system) for file in part.files]
    keys = [(key.column, key.value.type) for key in keys_of(reading, part) if key.column != key.name]
    types = (*reading.run.columns(part.seq), *keys)
    return RowSet(files=reading.files, database=reading.database, types=types, origins=origins)


def keys_of(reading: Reading, part: Part) -> tuple[GroupKey, ...]:
    """The keys of the groups that the rows of a part stand for; none if they are not summaries."""
    step = reading.run.step(part.seq)
    if not isinstance(step, CreatingStep):
        return ()
    return group_keys(reading.run, reading.files, step, part)


def pinned_rows(reading: Reading, use: DatasetUse) -> RowSet:
    """A dataset as the run saw it, with the sources of its rows."""
    return _pinned(reading, use, periods_of(reading.run.pinned(use), use))


def rows_of_all_periods(reading: Reading, use: DatasetUse) -> RowSet:
    """All rows in the files of a dataset, including those of periods that the run did not need."""
    return _pinned(reading, use, None)


def _pinned(reading: Reading, use: DatasetUse, periods: frozenset[str] | None) -> RowSet:
    part, files = reading.run.pinned(use), reading.files
    types = {column.name: column.type for column in use.columns}
    types |= {"_deleted": BOOLEAN, SOURCE_FILE: STRING, SOURCE_LINE: INTEGER}
    types |= {SOURCE_ROW_ID: INTEGER, ORIGIN: INTEGER, WRITTEN_ROW_ID: STRING}
    numbered = [
        replace(file, ordinal=index if file.ordinal is None else file.ordinal) for index, file in enumerate(part.files)
    ]
    return RowSet(
        files=files,
        database=reading.database,
        types=list(types.items()),
        origins=[
            FileRows(file, files.columns(file), (("_deleted", Sql("FALSE")),), periods, excluded_from(part, file))
            for file in numbered
        ],
    )
