"""The cone of a supposition with many rows: evaluated again for all of them at once, in DuckDB.

A table has the rows that the supposition reaches, and of their columns those that may differ from what the run has;
all others are read from the trace. A step that looks at none of them has done to these rows what it would do.
`clew.change.cone` does the same row by row, and whatever this module gives up on (NotInBulk).
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clew import budgets
from clew.change.bulk_groups import BulkGroups, Summaries
from clew.change.bulk_tables import THERE, BulkTable, BulkTables, Named, NotInBulk, rows_of_trace, stored_name
from clew.change.cone import Cone, EditedRow, require_any
from clew.change.recomputing import JoinLookup, before_joins, trees_of
from clew.change.step_edits import StepEdit
from clew.deferred import dataclass
from clew.explain.row_conditions import all_of, is_not_deleted
from clew.lang.evaluation import Row
from clew.lang.typed import ColumnValue, Expression, Value, columns_of
from clew.lang.types import BOOLEAN, INTEGER, Type
from clew.plan.datasets import DatasetUse
from clew.plan.operations import ChangingStep, CreatingStep, OutputStep, Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase, Join
from clew.storage.parts import ORDINAL, PartFile
from clew.trace.exact_sql import exact_value
from clew.trace.json_values import arrow_type, table_of
from clew.trace.reader import RunTrace
from clew.trace.row_sets import RowSet
from clew.trace.sql import Sql, joined, quoted, sql_type

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CONDITIONS = 20
"""Rows that look up one of more edited rows than that are not told apart from others that join."""
_DELETED = "_deleted"


@dataclass(slots=True)
class BulkCone:
    """Rows that may differ from what the run has stored, and their columns that may."""

    tables: BulkTables
    single: Cone
    """The same, row by row: it knows what is supposed of datasets, and which summaries the run has."""
    rows: BulkTable | None = None
    """The rows with those of their columns that may differ; None while there are none."""
    evaluated: int = 0
    at: int = 0
    """The step of the run after which all other columns, and all other rows, are as they would be."""
    has_new: bool = False
    """Whether rows may come that the run does not have. Their columns are all among those that may differ."""
    has_dropped: bool = False

    @property
    def table(self) -> str:
        """The name of the working dataset."""
        return self.single.trace.plan.input.table

    @property
    def differing(self) -> list[str]:
        """The columns that may differ."""
        return [] if self.rows is None else [name for _, name in self.rows.columns]

    def take(self, entry: Step | StepEdit) -> None:
        """Do a step of the run and of the supposed plan. Raises NotInBulk where that cannot be done at once."""
        budgets.check()
        self.tables.keep_only(*([] if self.rows is None else [self.rows.name]))
        if isinstance(entry, StepEdit):
            self._edit(entry)
            self.at = entry.old.seq if entry.old is not None else self.at
            return
        if isinstance(entry, ChangingStep):
            for join in entry.lookups:
                self._reach_lookups(entry, join)
            if self._concerns(entry):
                self._change(entry)
        elif isinstance(entry, CreatingStep) and entry.made_from is None:
            if self._concerns(entry):
                self._sum_up(entry, entry, everything=False)
        elif isinstance(entry, CreatingStep) and self._supposes_of(entry.made_from):
            raise NotInBulk("rows of an appended dataset")
        self.at = entry.seq

    def _edit(self, edit: StepEdit) -> None:
        old, new = edit.old, edit.new
        steps = [step for step in (old, new) if step is not None]
        if all(isinstance(step, OutputStep) for step in steps):
            return
        if (() if old is None else old.adds) != (() if new is None else new.adds):
            raise NotInBulk("other columns")
        changing = [step for step in steps if isinstance(step, ChangingStep)]
        if len(changing) == len(steps):
            self._edit_changing(changing, new if isinstance(new, ChangingStep) else None)
        elif (
            isinstance(old, CreatingStepBase)
            and isinstance(new, CreatingStepBase)
            and (old.made_from, new.made_from) == (None, None)
            and (old.keys, _filled(old)) == (new.keys, _filled(new))
        ):
            self._sum_up(new, old, everything=True)
        else:
            raise NotInBulk("an edit of another kind")

    def _edit_changing(self, steps: Sequence[ChangingStep], new: ChangingStep | None) -> None:
        """Do a step in place of another, or leave one out: rows that any of them selects are as before both."""
        selected = dict[Expression | None, None]()
        for step in steps:
            if step.keeps is not None or step.window_calls:
                raise NotInBulk("rows that are compared with others")
            own = before_joins(step.selector, self.table)
            selected[own.tree if own else None] = None
        for condition in selected:
            self.reach(condition)
        if self.rows is not None:
            if new is None or set(_columns_set(steps[0])) != set(_columns_set(new)):
                self.rows = self._seen([name for step in steps for name in _columns_set(step)])
            if new is not None:
                self._change(new)

    def _concerns(self, step: ChangingStep | CreatingStep) -> bool:
        """Whether a step may do something else to rows of the cone than it has done."""
        if self.rows is None:
            return False
        columns, table = set(self.differing), self.table
        read = {name for tree in trees_of(step) for owner, name in columns_of(tree) if owner == table}
        read |= {*step.columns_named, _DELETED}
        sees_rows = True
        if isinstance(step, ChangingStep):
            read |= {each.column for each in step.assigned}
            sees_rows = step.keeps is not None or bool(step.window_calls)
        looks_up = any(self._supposes_of(join.dataset) for join in step.lookups)
        return self.has_new or looks_up or bool(columns & read) or (self.has_dropped and sees_rows)

    def _supposes_of(self, use: DatasetUse | None) -> bool:
        """Whether rows of a dataset are supposed to be different."""
        return use is not None and bool(self.single.supposed.of_dataset(use))

    # Rows that are reached

    def load(self) -> None:
        """Take in the rows of the input that are supposed to be different."""
        use = self.single.trace.plan.input
        for each in self.single.supposed.of_dataset(use):
            marked = self.tables.make(*self._found(all_of([is_not_deleted(self.table), each.where]), ()))
            require_any(self.tables.number(f"SELECT count(*) FROM {marked}"), each, use)
            self._add(marked)
            chosen = Sql(f"{ORDINAL} IN (SELECT {ORDINAL} FROM {marked})")
            if each.column is None or each.value is None:
                self.has_dropped = True
                rows = self._known()
                there = f"({THERE} AND {ORDINAL} NOT IN (SELECT {ORDINAL} FROM {marked})) AS {THERE}"
                sql = f"SELECT * REPLACE ({there}) FROM {rows.name}"
                self.rows = BulkTable(self.tables.make(Sql(sql)), rows.columns)
                continue
            read = [name for _, name in columns_of(each.value)]
            seen = self._seen([*read, each.column])
            self._assign(seen, chosen, {each.column: each.value})

    def reach(self, condition: Expression | None) -> None:
        """Take in the live rows of the run for which a condition is true now."""
        self._add(self.tables.make(*self._found(all_of([is_not_deleted(self.table), condition]), ())))

    def _reach_lookups(self, step: ChangingStepBase, join: Join) -> None:
        """Take in the rows that look up an edited row of a dataset, or would."""
        if not self.single.supposed.of_dataset(join.dataset):
            return
        own = before_joins(step.selector, self.table)
        edited: Sequence[EditedRow] = self.single.dataset(join.dataset).edited
        versions = [version for each in edited for version in (each.old, each.new) if version is not None]
        looking = [self.single.looking_up(join, version) for version in versions]
        known = [each for each in looking if each is not None]
        if len(known) < len(looking) or len(known) > _MOST_CONDITIONS:
            self.reach(own.tree if own else None)
            return
        for each in dict.fromkeys(known):
            self.reach(all_of([own.tree if own else None, each]))

    def _found(self, condition: Expression | None, names: Sequence[str]) -> tuple[Sql, tuple[PartFile, ...]]:
        """The rows of the run for which a condition is true, as a query and the files that it reads."""
        rows = self.single.trace.working(self.at)
        where = Sql("TRUE") if condition is None else in_sql(rows, condition, self.single.trace)
        also = [] if condition is None else sorted({name for _, name in columns_of(condition)})
        return rows_of_trace(self.single.trace, self.at, names, where, also=also)

    def _add(self, found: str) -> None:
        """Take in rows of the run, by ordinal, with what they have in the columns that may differ."""
        if self.rows is None:
            rows_alone = f"SELECT {ORDINAL}, TRUE AS {THERE} FROM {found}"
            if self.tables.number(f"SELECT count(*) FROM {found}"):
                self.rows = BulkTable(self.tables.make(Sql(rows_alone)), {})
            return
        new = f"SELECT {ORDINAL} FROM {found} WHERE {ORDINAL} NOT IN (SELECT {ORDINAL} FROM {self.rows.name})"
        if not self.tables.number(f"SELECT count(*) FROM ({new})"):
            return
        more = self.tables.make(Sql(new))
        names = self.differing
        rows, files = rows_of_trace(self.single.trace, self.at, names, Sql("TRUE"), among=more)
        listed = "".join(f", {quoted(stored_name((self.table, name)))}" for name in names)
        sql = Sql(f"SELECT {ORDINAL}, {THERE}{listed} FROM {self.rows.name} UNION ALL ")
        sql += f"SELECT {ORDINAL}, TRUE AS {THERE}{listed} FROM (" + rows + ")"
        self.rows = BulkTable(self.tables.make(sql, files), self.rows.columns)

    def _known(self) -> BulkTable:
        assert self.rows is not None  # noqa: S101 - asked only where there are rows
        return self.rows

    def _seen(self, names: Iterable[str], at: int | None = None) -> BulkTable:
        """The rows of the cone with more of their columns, as they would be now; NULL where they come later."""
        rows, seq = self._known(), self.at if at is None else at
        more = [name for name in dict.fromkeys(names) if (self.table, name) not in rows.columns]
        if not more:
            return rows
        trace, there = self.single.trace, self.single.trace.working(seq).names
        types = dict(trace.run.columns(trace.run.last))
        if there.isdisjoint(more):
            nothing = "".join(
                f", CAST(NULL AS {sql_type(types[name])}) AS {quoted(stored_name((self.table, name)))}" for name in more
            )
            made = self.tables.make(Sql(f"SELECT *{nothing} FROM {rows.name}"))
            return BulkTable(made, {**rows.columns, **{(self.table, name): types[name] for name in more}})
        sql, files = rows_of_trace(trace, seq, [name for name in more if name in there], Sql("TRUE"), among=rows.name)
        own = "".join(f", c.{quoted(stored_name(named))}" for named in rows.columns)
        for name in more:
            column = quoted(stored_name((self.table, name)))
            value = f"t.{column}" if name in there else f"CAST(NULL AS {sql_type(types[name])})"
            own += f", {value} AS {column}"
        query = f"SELECT c.{ORDINAL}, c.{THERE}{own} FROM {rows.name} AS c LEFT JOIN (" + sql
        query += f") AS t ON t.{ORDINAL} = c.{ORDINAL}"
        columns: dict[Named, Type] = {**rows.columns, **{(self.table, name): types[name] for name in more}}
        return BulkTable(self.tables.make(query, files), columns)

    # Updates and deletions

    def _change(self, step: ChangingStep) -> None:
        if step.keeps is not None or step.window_calls:
            raise NotInBulk("rows that are compared with others")
        table = self.table
        trees = trees_of(step)
        own_columns = [name for tree in trees for owner, name in columns_of(tree) if owner == table]
        deletes = step.traced_as == "delete"
        seen = self._seen([*own_columns, *_columns_set(step), _DELETED])
        live = Sql(f"({THERE} AND NOT coalesce({quoted(stored_name((table, _DELETED)))}, FALSE))")
        self.evaluated += self.tables.number("SELECT count(*) FROM " + Sql(f"{seen.name} WHERE ") + live)
        own = before_joins(step.selector, table)
        chosen = live
        if own is not None:
            seen, chosen = self._chosen(seen, live, own.tree, 0)
        for join in step.lookups:
            seen = self._joined(step, join, seen, chosen, trees)
        if step.selector is not None and own is not step.selector:
            seen, chosen = self._chosen(seen, chosen, step.selector.tree, 1)
        if deletes:
            listed = {_DELETED: Sql("TRUE")}
            self._put(seen, chosen, listed)
        else:
            self._assign(seen, chosen, {each.column: each.value.tree for each in step.assigned})

    def _chosen(self, seen: BulkTable, among: Sql, condition: Expression, number: int) -> tuple[BulkTable, Sql]:
        """The rows for which a condition is true, of those for which another one is."""
        named = ("", f"chosen {number}")
        found = self.tables.with_values(seen, {named: condition}, among)
        return found, Sql(f"({quoted(stored_name(named))} IS TRUE)")

    def _joined(
        self, step: ChangingStepBase, join: Join, seen: BulkTable, chosen: Sql, trees: Iterable[Expression]
    ) -> BulkTable:
        """Rows with the columns of the row that each of them finds in a dataset."""
        trace = self.single.trace
        lookup = JoinLookup.of(join, self.single.dataset(join.dataset).rows, trace.today)
        types = {column.name: column.type for column in join.dataset.columns}
        wanted = sorted({name for tree in trees for owner, name in columns_of(tree) if owner == join.alias})
        names = sorted(pair for pair in columns_of(join.on.tree) if pair[0] != join.alias)

        def find(row: Row) -> list[Value]:
            found = lookup.joined(row, step).tables[join.alias]
            return [found[name] for name in wanted]

        columns = {(join.alias, name): types[name] for name in wanted}
        return self.tables.looked_up(seen, names, chosen, columns, find)

    def _assign(self, seen: BulkTable, chosen: Sql, values: Mapping[str, Expression]) -> None:
        """Give columns of some rows the values of expressions."""
        named = {("", f"value {number}"): tree for number, tree in enumerate(values.values())}
        found = self.tables.with_values(seen, named, chosen)
        listed = {column: found.column(name) for column, name in zip(values, named, strict=True)}
        self._put(found, chosen, listed)

    def _put(self, seen: BulkTable, chosen: Sql, values: Mapping[str, Sql]) -> None:
        """Keep rows with those of their columns that may differ, some of which get other values."""
        table, known = self.table, self._known().columns
        names = list(dict.fromkeys([*(name for _, name in known), *values]))
        listed = [Sql(ORDINAL), Sql(THERE)]
        for name in names:
            stored = Sql(quoted(stored_name((table, name))))
            value = values.get(name)
            listed.append(
                stored
                if value is None
                else "CASE WHEN " + chosen + " THEN " + value + " ELSE " + stored + " END AS " + stored
            )
        made = self.tables.make("SELECT " + joined(", ", listed) + f" FROM {seen.name}")
        self.rows = BulkTable(made, {(table, name): seen.columns[table, name] for name in names})

    # Summaries

    def _sum_up(self, step: CreatingStepBase, known: CreatingStepBase, *, everything: bool) -> None:
        groups = BulkGroups(self.tables, step, self.at, frozenset(self.differing))
        seen = None if self.rows is None else self._seen([*groups.columns, _DELETED])
        found = groups.summaries(seen, self.single.summaries(known), everything=everything)
        self.evaluated += found.evaluated
        self._take_summaries(step, known, found)

    def _take_summaries(self, step: CreatingStepBase, known: CreatingStepBase, found: Summaries) -> None:
        """Take in summaries with their new values."""
        trace, table = self.single.trace, self.table
        types = dict(trace.run.columns(known.seq))
        filled = [each.column for each in step.filled]
        is_new = [ordinal is None for ordinal, _ in found.rows]
        names = dict.fromkeys([*self.differing, *filled])
        if any(is_new):
            self.has_new = True
            names |= dict.fromkeys([*types])
        if self.rows is None and not found.rows:
            return
        if self.rows is not None:
            is_new_column = {column.name for column in known.adds}.issuperset
            before = self.at if is_new_column(set(names) - set(self.differing)) else known.seq
            self.rows = self._seen(names, before)  # columns that come with the step are NULL in rows from before it
        listed = list(names)
        made = self.tables.make(Sql("FROM given"), (), {"given": self._given(found, listed, types)})
        columns = {(table, name): types[name] for name in listed}
        stored = "".join(f", {quoted(stored_name(named))}" for named in columns)
        sql = f"SELECT {ORDINAL}, {THERE}{stored} FROM {made}"
        if self.rows is not None:
            sql += f" UNION ALL SELECT {ORDINAL}, {THERE}{stored} FROM {self.rows.name}"
        self.rows = BulkTable(self.tables.make(Sql(sql)), columns)

    def _given(self, found: Summaries, names: Sequence[str], types: Mapping[str, Type]) -> "pa.Table":
        """Summaries as a table."""
        cells = [{**self.single.system_cells, **(values or {})} for _, values in found.rows]
        columns: list[tuple[str, pa.DataType, list[Any]]] = [
            (ORDINAL, arrow_type(INTEGER), [self.single.number(ordinal) for ordinal, _ in found.rows]),
            (THERE, arrow_type(BOOLEAN), [values is not None for _, values in found.rows]),
        ]
        for name in names:
            stored = stored_name((self.table, name))
            columns.append((stored, arrow_type(types[name]), [each.get(name) for each in cells]))
        return table_of(columns)


def in_sql(rows: RowSet, condition: Expression, trace: RunTrace) -> Sql:
    """A condition on rows of the run as SQL. Raises NotInBulk if DuckDB does not certainly judge like the evaluator."""
    if not {name for _, name in columns_of(condition)} <= rows.types.keys():
        raise NotInBulk("a column that the run does not have")

    def column(each: ColumnValue) -> Sql:
        return Sql(quoted(each.column))

    found = rows.in_sql(condition, trace.today) or exact_value(condition, column, trace.today)
    if found is None:
        raise NotInBulk("a condition that is left to the evaluator")
    return "coalesce(" + found + ", FALSE)"


def _columns_set(step: ChangingStepBase) -> list[str]:
    """The columns in which a step leaves its traces."""
    return [_DELETED] if step.traced_as == "delete" else [each.column for each in step.assigned]


def _filled(step: CreatingStepBase) -> set[str]:
    return {each.column for each in step.filled}
