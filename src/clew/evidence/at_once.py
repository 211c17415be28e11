"""The expressions of a step, evaluated for all rows at once with DuckDB.

DuckDB compares what it computes with what is stored, and names the rows that differ, or about which it may be wrong:
the evaluator decides about those, and looks at a sample of the others. Values that DuckDB does not compute like the
evaluator are left to it, for the rows that a selector chooses.
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from clew.deferred import dataclass
from clew.diagnostics import ClewError, EngineBug
from clew.evidence.group_sql import aggregate_in_sql
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import OVER, Apply, ColumnValue, Expression, columns_of
from clew.plan.operations import ChangingStep, CreatingStep, OutputStep
from clew.plan.steps import Join
from clew.storage.parts import ORDINAL, Part, PartFile
from clew.trace.exact_sql import Doubts, exact_value
from clew.trace.reader import RunTrace
from clew.trace.row_sets import Cells, RowSet, now_name, was_name
from clew.trace.run_parts import GroupKey
from clew.trace.sql import Sql, joined, quoted

SAMPLE = 300
"""About so many rows of a step are evaluated in Python although DuckDB finds nothing wrong with them."""
MOST_SUSPECTS = 100_000
"""If DuckDB leaves more rows of a step to the evaluator, that evaluates all of them."""
_LARGE_LOOKUP = 50_000
_SAMPLE_OF_LARGE_LOOKUPS = 20
_DELETED = "_deleted"
_NOT_DELETED = "NOT coalesce(_deleted, FALSE)"


@dataclass(frozen=True, slots=True)
class Judged:
    """What DuckDB says about the rows of a step."""

    rows: int
    live: int
    """Those that were not deleted before."""
    selected: int
    """Those of them that the selector chooses."""
    left: tuple[int, ...]
    """The ordinals of rows that the evaluator must look at: those that differ, doubtful ones, and a sample."""
    left_and_selected: frozenset[int]
    """Those of them that the selector chooses, as DuckDB sees it."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """What DuckDB computed for the rows that a step created, all of it as it is stored."""

    sources: int
    """The rows that they were made from."""
    created: int
    sampled: int
    """Those of the sources that the evaluator looked at."""


# Rows that a step changed


def changed_at_once(trace: RunTrace, step: ChangingStep) -> Judged | None:
    """Whether rows have the values that a step gives them; None where the evaluator has to look at all rows."""
    if step.keeps is not None:  # which rows it deletes depends on others
        return None
    rows, doubts = _SeenRows.before_and_after(trace, step), Doubts()
    lookups = rows.lookups(step.lookups, doubts)
    selected = Sql("TRUE") if step.selector is None else rows.value(step.selector.tree, doubts)
    if selected is None or lookups is None:
        return None
    live = Sql(f"(NOT coalesce({was_name(_DELETED)}, FALSE))")
    chosen = "(" + live + " AND coalesce(" + selected + ", FALSE))"
    is_deleted = "(NOT " + live + ")"
    if step.traced_as == "delete":
        is_deleted = "(" + is_deleted + " OR " + chosen + ")"
    differs = [
        Sql(f"({was_name(ORDINAL)} IS NULL OR {now_name(ORDINAL)} IS NULL)"),
        Sql(f"(coalesce({now_name(_DELETED)}, FALSE) IS DISTINCT FROM ") + is_deleted + ")",
    ]
    for each in step.assigned:
        before = was_name(each.column) if each.column in rows.before.names else "NULL"
        value = rows.value(each.value.tree, doubts)
        if value is None:  # the evaluator looks at all rows that are chosen
            differs += [chosen, Sql(f"({now_name(each.column)} IS DISTINCT FROM {before})")]
        else:
            expected = "(CASE WHEN " + chosen + " THEN " + value + f" ELSE {before} END)"
            differs.append(Sql(f"({now_name(each.column)} IS DISTINCT FROM ") + expected + ")")
    return rows.judged([each.column for each in step.assigned], lookups, live, chosen, [*differs, *doubts])


def written_at_once(trace: RunTrace, step: OutputStep) -> Judged | None:
    """Which rows an output chooses; None where the evaluator has to look at all rows."""
    working = trace.working(step.seq)
    rows, doubts = _SeenRows(trace, working, working), Doubts()
    selected = Sql("TRUE") if step.selector is None else rows.value(step.selector.tree, doubts)
    if selected is None:
        return None
    live = Sql("TRUE" if step.include_deleted else f"(NOT coalesce({was_name(_DELETED)}, FALSE))")
    chosen = "(" + live + " AND coalesce(" + selected + ", FALSE))"
    return rows.judged((), Sql(""), live, chosen, doubts)


@dataclass(slots=True)
class _SeenRows:
    """Rows as the expressions of a step see them, and as the step left them."""

    trace: RunTrace
    before: RowSet
    after: RowSet
    aliases: dict[str, str] = field(default_factory=dict)
    """What the tables of lookups are called in SQL."""
    needed: set[str] = field(default_factory=set)
    files: list[PartFile] = field(default_factory=list)
    sample: int = SAMPLE

    @classmethod
    def before_and_after(cls, trace: RunTrace, step: ChangingStep) -> "_SeenRows":
        """The rows of a step that changes them."""
        before, after = trace.working(trace.run.before(step.seq)), trace.working(step.seq)
        rows = cls(trace, before, after, {join.alias: f"j{index}" for index, join in enumerate(step.lookups)})
        rows.needed |= {each.column for each in step.assigned if each.column in before.names}
        return rows

    def value(self, tree: Expression, doubts: Doubts) -> Sql | None:
        """What an expression is for a row."""
        found = Doubts()
        sql = exact_value(tree, self._column, self.trace.today, doubts=found)
        if sql is not None:
            doubts += found
            table = self.trace.plan.input.table
            self.needed |= {name for owner, name in columns_of(tree) if owner == table}
        return sql

    def _column(self, column: ColumnValue) -> Sql | None:
        if column.table in self.aliases:
            return Sql(f"{self.aliases[column.table]}.{quoted(column.column)}")
        if column.table == OVER:  # what other rows hold is left to the evaluator
            return None
        return Sql(was_name(column.column)) if column.column in self.before.names else None

    def lookups(self, joins: Sequence[Join], doubts: Doubts) -> Sql | None:
        """The datasets in which rows look something up; None where DuckDB might find something else.

        A row that finds several is there several times: each must give what is stored, or the evaluator decides.
        """
        tables = list[Sql]()
        for join in joins:
            on = self.value(join.on.tree, doubts)
            if on is None:
                return None
            names = [column.name for column in join.dataset.columns]
            found = self.trace.pinned(join.dataset).relation(names, Sql(_NOT_DELETED))
            self.files += found.files
            tables.append(" LEFT JOIN (" + found.sql + f") AS {self.aliases[join.alias]} ON " + on)
            if self.trace.run.pinned(join.dataset).counted > _LARGE_LOOKUP:
                self.sample = _SAMPLE_OF_LARGE_LOOKUPS
        return joined("", tables)

    def judged(self, now: Sequence[str], lookups: Sql, live: Sql, chosen: Sql, differs: Sequence[Sql]) -> Judged | None:
        """Count the rows, and name those that the evaluator must look at; None if these are too many."""
        relation = self.after.since(self.before, sorted(self.needed), now)
        suspect = joined(" OR ", ["coalesce(" + each + ", FALSE)" for each in (*differs, Sql("FALSE"))])
        inner = f"SELECT coalesce({now_name(ORDINAL)}, {was_name(ORDINAL)}) AS o, "
        listed = inner + live + " AS live, " + chosen + " AS chosen, (" + suspect + ") AS suspect"
        rows = listed + " FROM (" + relation.sql + ") AS seen" + lookups
        every = max(1, _counted(self.trace) // self.sample)
        counts = "count(*) AS n, count(*) FILTER (live) AS live, count(*) FILTER (chosen) AS chosen"
        suspects = f"count(*) FILTER (suspect) AS suspects, {_least(MOST_SUSPECTS)} FILTER (suspect) AS found"
        sample = f"{_least(2 * self.sample)} FILTER (hash(o) % {every} = 0) AS sample"
        sql = f"SELECT {counts}, {suspects}, {sample} FROM (" + rows + ")"
        found = _first_row(self.after, sql, [*relation.files, *self.files])
        if found is None or found["suspects"] > MOST_SUSPECTS:
            return None
        left = {each["o"]: each["chosen"] for each in (*(found["found"] or ()), *(found["sample"] or ()))}
        selected = frozenset(ordinal for ordinal, is_chosen in left.items() if is_chosen)
        return Judged(found["n"], found["live"], found["chosen"], tuple(sorted(left)), selected)


def _least(number: int) -> str:
    """The first rows, and whether they are chosen."""
    return f"min(struct_pack(o := o, chosen := chosen), {number})"


def _counted(trace: RunTrace) -> int:
    return trace.run.loaded.counted + sum(part.counted for part in trace.run.created)


def _first_row(rows: RowSet, sql: Sql, files: Sequence[PartFile]) -> dict[str, Any] | None:
    """The one row that a query gives; None where DuckDB cannot compute it, such as for a value that does not fit."""
    try:
        table = rows.database.query(sql, list({file.path: file for file in files}.values()))
    except EngineBug:
        return None
    return {name: table[name][0].as_py() for name in table.column_names}


# Rows that a step created


def created_at_once(trace: RunTrace, step: CreatingStep, parts: Sequence[Part]) -> Agreed | None:
    """Whether the rows of a step are those that its sources give.

    None where they are not, or where DuckDB cannot tell: the evaluator finds out which row is wrong.
    """
    if step.having is not None:
        return None
    source = _Source.of(trace, step)
    if step.keys is None:
        return _appended(source, step, parts)
    return _summed_up(source, step, trace.group_keys(parts[0]), parts)


@dataclass(slots=True)
class _Source:
    """The rows that a step took, and how its expressions see them."""

    trace: RunTrace
    rows: RowSet
    table: str
    condition: Expression | None
    see: Callable[[int, Cells], Row]
    doubts: Doubts = field(default_factory=Doubts)
    needed: set[str] = field(default_factory=set)
    evaluated: dict[Expression, Sql] = field(default_factory=dict)
    """What DuckDB computes for each row, for comparison with the evaluator."""

    @classmethod
    def of(cls, trace: RunTrace, step: CreatingStep) -> "_Source":
        """The rows of the working dataset, or of the dataset that the step is made from."""
        condition = None if step.condition is None else step.condition.tree
        if step.made_from is None:
            return cls(trace, trace.working(trace.run.before(step.seq)), trace.plan.input.table, condition, trace.see)
        table = step.made_from.table

        def see(_ordinal: int, cells: Cells) -> Row:
            return Row({table: cells}, trace.today)

        return cls(trace, trace.pinned(step.made_from), table, condition, see)

    def value(self, tree: Expression) -> Sql | None:
        """What an expression is for a row."""
        sql = exact_value(tree, self._column, self.trace.today, doubts=self.doubts)
        if sql is not None:
            self.evaluated[tree] = sql
            self.needed |= {name for _, name in columns_of(tree)}
        return sql

    def of_group(self, tree: Expression) -> Sql | None:
        """What an expression is for a group of rows."""

        def aggregate(call: Apply) -> Sql | None:
            return aggregate_in_sql(call, self.value)

        sql = exact_value(tree, self._any, self.trace.today, doubts=self.doubts, aggregate=aggregate)
        if sql is not None:
            self.needed |= {name for _, name in columns_of(tree)}
        return sql

    def _column(self, column: ColumnValue) -> Sql | None:
        is_known = column.table == self.table and column.column in self.rows.names
        return Sql(quoted(column.column)) if is_known else None

    def _any(self, column: ColumnValue) -> Sql | None:
        """Outside of aggregations there are only keys, which are the same for all rows of a group."""
        known = self._column(column)
        return None if known is None else "first(" + known + ")"

    def selected(self, listed: Sql) -> tuple[Sql, list[PartFile]] | None:
        """Something about the rows that the step took."""
        chosen = Sql("TRUE") if self.condition is None else self.value(self.condition)
        if chosen is None:
            return None
        relation = self.rows.relation([*sorted(self.needed), _DELETED], Sql(_NOT_DELETED))
        rows = "SELECT " + listed + " FROM (" + relation.sql + ") WHERE coalesce(" + chosen + ", FALSE)"
        return rows, list(relation.files)

    def doubtful(self) -> Sql:
        """How many rows DuckDB may be wrong about, and how many there are."""
        doubt = joined(" OR ", ["coalesce(" + each + ", FALSE)" for each in (*self.doubts, Sql("FALSE"))])
        return "count(*) AS sources, count(*) FILTER (" + doubt + ") AS doubtful"

    def sampled(self) -> int | None:
        """How many rows of a sample the evaluator sees as DuckDB does; None where it sees one in another way."""
        relation = self.rows.relation([*sorted(self.needed), _DELETED], Sql(_NOT_DELETED))
        every = max(1, sum(file.rows for file in relation.files) // SAMPLE)
        values = [sql + f" AS v{number}" for number, sql in enumerate(self.evaluated.values())]
        listed = joined(", ", [Sql(ORDINAL), *values])
        some = f") WHERE hash({ORDINAL}) % {every} = 0 LIMIT {2 * SAMPLE}"
        try:
            table = self.rows.database.query("SELECT " + listed + " FROM (" + relation.sql + some, relation.files)
        except EngineBug:
            return None
        found = {row[ORDINAL]: row for row in table.to_pylist()}
        for ordinal, cells in self.rows.values(sorted(found), sorted(self.needed)) if found else ():
            if not self._agrees(found[ordinal], self.see(ordinal, cells)):
                return None
        return len(found)

    def _agrees(self, computed: Mapping[str, Any], seen: Row) -> bool:
        try:
            return all(computed[f"v{n}"] == evaluator(tree)(seen) for n, tree in enumerate(self.evaluated))
        except ClewError:
            return False


def _appended(source: _Source, step: CreatingStep, parts: Sequence[Part]) -> Agreed | None:
    values = [source.value(each.value.tree) for each in step.filled]
    known = [value for value in values if value is not None]
    columns = [each.column for each in step.filled]
    if len(known) < len(values) or not columns:
        return None
    listed = joined(", ", [value + f" AS c{number}" for number, value in enumerate(known)])
    return _compared(source, listed, "", parts, columns)


def _summed_up(source: _Source, step: CreatingStep, keys: Sequence[GroupKey], parts: Sequence[Part]) -> Agreed | None:
    values = [source.value(key.value) for key in keys]
    values += [source.of_group(each.value.tree) for each in step.filled]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    listed = joined(", ", [value + f" AS c{number}" for number, value in enumerate(known)])
    positions = ", ".join(str(number + 1) for number in range(len(keys)))
    grouped = f" GROUP BY {positions}" if keys else " HAVING count(*) > 0"
    columns = [*(key.column for key in keys), *(each.column for each in step.filled)]
    return _compared(source, listed, grouped, parts, columns)


def _compared(
    source: _Source, listed: Sql, grouped: str, parts: Sequence[Part], columns: Sequence[str]
) -> Agreed | None:
    """Every row that the source gives is stored as often, and no other."""
    expected, counted = source.selected(listed), source.selected(source.doubtful())
    if expected is None or counted is None:
        return None
    stored, files = _stored(source.trace, parts, columns)
    whole = expected[0] + grouped
    differences = "SELECT 1 FROM ((" + whole + ") EXCEPT ALL (" + stored + "))"
    others = "SELECT 1 FROM ((" + stored + ") EXCEPT ALL (" + whole + "))"
    sql = "SELECT count(*) AS differences FROM (" + differences + " UNION ALL " + others + ")"
    found = _first_row(source.rows, sql, [*expected[1], *files])
    if found is None or found["differences"]:
        return None
    told = _first_row(source.rows, counted[0], counted[1])
    sampled = None if told is None or told["doubtful"] else source.sampled()
    if told is None or sampled is None:
        return None
    return Agreed(told["sources"], sum(part.counted for part in parts), sampled)


def _stored(trace: RunTrace, parts: Sequence[Part], columns: Sequence[str]) -> tuple[Sql, list[PartFile]]:
    """The rows of a step as it created them."""
    selects, files = list[Sql](), list[PartFile]()
    listed = ", ".join(f"{quoted(name)} AS c{number}" for number, name in enumerate(columns))
    for part in parts:
        relation = trace.created(part).relation(dict.fromkeys(columns), Sql("TRUE"))
        selects.append(f"SELECT {listed} FROM (" + relation.sql + ")")
        files += relation.files
    return joined(" UNION ALL ", selects), files
