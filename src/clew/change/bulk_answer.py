"""What differs from a run at a point, where the rows that a supposition reaches were evaluated at once."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Mapping, Sequence
from contextlib import closing
from decimal import Decimal, localcontext
from typing import Any

from clew.change.bulk_cone import BulkCone
from clew.change.bulk_tables import THERE, BulkTable, BulkTables, NotInBulk, rows_of_trace, stored_name
from clew.change.comparison import Amount
from clew.change.cone import Cone
from clew.change.points import conditions_at
from clew.change.reached_rows import Differences, DifferencesAsked, ReachedRow
from clew.change.step_edits import StepEdit
from clew.change.suppositions import Suppositions
from clew.deferred import dataclass
from clew.diagnostics import EngineBug
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, columns_of
from clew.lang.types import Kind, Type
from clew.plan.operations import Step
from clew.storage.parts import ORDINAL
from clew.trace.json_values import values_of
from clew.trace.reader import RunTrace
from clew.trace.sql import Sql, joined, quoted

_MOST_DIGITS_ADDED = 28
_MOST_DIGITS = 37
"""A difference of numbers with more may not fit a decimal of DuckDB."""
_WAS, _NOW = "was", "now"


def differences_at_once(
    trace: RunTrace, supposed: Suppositions, entries: Sequence[Step | StepEdit], asked: DifferencesAsked
) -> Differences | None:
    """What differs at a point after some steps; None where rows have to be evaluated one by one."""
    with closing(BulkTables(trace)) as tables:
        try:
            cone = BulkCone(tables, Cone(trace, supposed))
            cone.load()
            for entry in entries:
                cone.take(entry)
            return _Answer(cone, asked).differences()
        except (NotInBulk, EngineBug):  # a value that does not fit, which the evaluator reports in its own words
            return None


@dataclass(frozen=True, slots=True)
class _Answer:
    cone: BulkCone
    asked: DifferencesAsked

    def differences(self) -> Differences:
        at = self.asked.at
        outputs = at.old.output, at.new.output
        if (outputs[0] is None) != (outputs[1] is None):
            raise NotInBulk("an output in place of none")
        if outputs[0] is not None and outputs[1] is not None:
            trees = [each.selector.tree if each.selector else None for each in outputs if each is not None]
            if trees[0] != trees[1] or at.old.includes_deleted != at.new.includes_deleted:
                raise NotInBulk("an output of other rows")
        if self.cone.rows is None:
            return Differences(
                0, 0, 0, self.cone.evaluated, {}, dict.fromkeys(self.asked.summed, Decimal(0)), (), False
            )
        return self._compared(self.cone.rows)

    @property
    def _trace(self) -> RunTrace:
        return self.cone.single.trace

    def _compared(self, rows: BulkTable) -> Differences:
        table, tables = self.cone.table, self.cone.tables
        seen, judged = self._judged(rows)
        was, now = judged
        differing = [name for name in self.asked.columns if (table, name) in rows.columns]
        flags = [
            Sql(f"({was} AND {now} AND {self._column(_WAS, name)} IS DISTINCT FROM {self._column(_NOW, name)}) AS d{n}")
            for n, name in enumerate(differing)
        ]
        listed = joined(", ", [Sql(f"*, {was} AS had, {now} AS has"), *flags])
        anything = " OR ".join(["had <> has", *(f"d{n}" for n in range(len(differing)))])
        name = tables.make(Sql("SELECT * FROM (SELECT ") + listed + f" FROM {seen.name}) WHERE {anything}")
        tables.keep_only(name)
        counts = tables.ask(
            Sql(
                "SELECT count(*) FILTER (WHERE had AND NOT has) AS gone"
                ", count(*) FILTER (WHERE has AND NOT had) AS new"
                ", count(*) FILTER (WHERE had AND has) AS changed"
                + "".join(f", count(*) FILTER (WHERE d{n}) AS d{n}" for n in range(len(differing)))
                + f" FROM {name}"
            )
        )
        found = {each: int(counts[each][0].as_py()) for each in counts.column_names}
        has_others = bool(found["gone"] or found["new"])
        shown, has_more = self._page(name)
        return Differences(
            changed=found["changed"],
            gone=found["gone"],
            new=found["new"],
            evaluated=self.cone.evaluated,
            by_column={each: found[f"d{n}"] for n, each in enumerate(differing)},
            moved=self._moved(BulkTable(name, seen.columns), has_others=has_others),
            rows=shown,
            has_more=has_more,
        )

    def _judged(self, rows: BulkTable) -> tuple[BulkTable, tuple[str, str]]:
        """Rows as they were beside rows as they would be, and whether they count: two conditions on columns."""
        trace, table, seq = self._trace, self.cone.table, self.asked.at.old.seq
        conditions = conditions_at(trace, self.asked.at.old, self.asked.question.where)
        read = [name for tree in conditions for _, name in columns_of(tree)]
        sort = [self.asked.question.sort] if self.asked.question.sort is not None else []
        names = [*(each for _, each in rows.columns), *read, *sort, "_deleted"]
        types = trace.working(seq).types
        names = [name for name in dict.fromkeys(names) if name in types]
        stored, files = rows_of_trace(trace, seq, names, Sql("TRUE"), among=rows.name)
        columns = dict[tuple[str, str], Type]()
        listed = [Sql(f"c.{ORDINAL}"), Sql(f"(t.{ORDINAL} IS NOT NULL) AS was_there"), Sql(f"c.{THERE} AS now_there")]
        for name in names:
            old = f"t.{quoted(stored_name((table, name)))}"
            new = f"c.{quoted(stored_name((table, name)))}" if (table, name) in rows.columns else old
            for side, value in ((_WAS, old), (_NOW, new)):
                columns[side, name] = types[name]
                listed.append(Sql(f"{value} AS {self._column(side, name)}"))
        sql = "SELECT " + joined(", ", listed) + f" FROM {rows.name} AS c LEFT JOIN (" + stored
        seen = BulkTable(self.cone.tables.make(sql + f") AS t ON t.{ORDINAL} = c.{ORDINAL}", files), columns)
        judged = list[str]()
        for side in (_WAS, _NOW):
            is_alive = (
                "TRUE"
                if self.asked.at.old.includes_deleted
                else f"NOT coalesce({self._column(side, '_deleted')}, FALSE)"
            )
            chosen = f"({side}_there AND {is_alive})"
            for number, tree in enumerate(conditions):
                named = ("", f"{side} {number}")
                seen = self.cone.tables.with_values(seen, {named: _of_side(tree, table, side)}, Sql(chosen))
                chosen = f"({quoted(stored_name(named))} IS TRUE)"
            judged.append(chosen)
        return seen, (judged[0], judged[1])

    @staticmethod
    def _column(side: str, name: str) -> str:
        return quoted(stored_name((side, name)))

    def _moved(self, rows: BulkTable, *, has_others: bool) -> dict[str, Amount]:
        """By how much the totals of columns move."""
        found, table = dict[str, Amount](), rows.name
        others = [name for name in self.asked.summed if (_WAS, name) not in rows.columns]
        if has_others and others:
            table = self._with_columns(table, others)
        types = self._trace.working(self.asked.at.old.seq).types
        for name in self.asked.summed:
            type_ = types[name]
            if not has_others and (self.cone.table, name) not in self._known_columns:
                found[name] = Decimal(0)
                continue
            if type_.kind is Kind.DECIMAL and type_.precision > _MOST_DIGITS_ADDED:
                raise NotInBulk("sums that may not fit")
            new, old = (
                f"sum({self._column(side, name)}) FILTER (WHERE {flag})"
                for side, flag in ((_NOW, "has"), (_WAS, "had"))
            )
            if type_.kind is Kind.DOUBLE:
                difference: Any = self._value(f"SELECT coalesce({new}, 0) - coalesce({old}, 0) FROM {table}")
                found[name] = float(difference)
                continue
            sums = [self._value(f"SELECT CAST({each} AS VARCHAR) FROM {table}") for each in (new, old)]
            with localcontext(prec=100):
                found[name] = Decimal(sums[0] or 0) - Decimal(sums[1] or 0)
        return found

    def _with_columns(self, table: str, names: Sequence[str]) -> str:
        """Rows with columns that are the same on both sides."""
        stored, files = rows_of_trace(self._trace, self.asked.at.old.seq, names, Sql("TRUE"), among=table)
        columns = [(quoted(stored_name((self.cone.table, name))), name) for name in names]
        listed = "".join(f", t.{own} AS {self._column(side, name)}" for own, name in columns for side in (_WAS, _NOW))
        sql = f"SELECT n.*{listed} FROM {table} AS n LEFT JOIN (" + stored + f") AS t ON t.{ORDINAL} = n.{ORDINAL}"
        return self.cone.tables.make(sql, files)

    @property
    def _known_columns(self) -> Mapping[tuple[str, str], Type]:
        return {} if self.cone.rows is None else self.cone.rows.columns

    def _value(self, sql: str) -> Any:  # noqa: ANN401 - whatever the query gives
        return self.cone.tables.ask(Sql(sql)).column(0)[0].as_py()

    def _page(self, table: str) -> tuple[tuple[ReachedRow, ...], bool]:
        limit = "" if self.asked.question.limit is None else f" LIMIT {int(self.asked.question.limit) + 1}"
        size = "" if self.asked.question.sort is None else self._size(self.asked.question.sort) + " DESC, "
        order = f" ORDER BY {size}{ORDINAL} < 0, abs({ORDINAL}){limit} OFFSET {int(self.asked.question.offset)}"
        columns = [name for _, name in self._known_columns]
        listed = "".join(f", {self._column(_NOW, name)} AS n{index}" for index, name in enumerate(columns))
        found = self.cone.tables.ask(Sql(f"SELECT {ORDINAL} AS o, had, has{listed} FROM {table}{order}"))
        has_more = self.asked.question.limit is not None and found.num_rows > self.asked.question.limit
        found = found if self.asked.question.limit is None else found.slice(0, self.asked.question.limit)
        working = self._trace.working(self.asked.at.old.seq)
        ordinals = found["o"].to_pylist()
        stored = dict(working.values(sorted(each for each in ordinals if each >= 0), list(working.types)))
        values = [values_of(found[f"n{index}"], working.types[name]) for index, name in enumerate(columns)]
        flags = list(zip(found["had"].to_pylist(), found["has"].to_pylist(), strict=True))
        rows = list[ReachedRow]()
        for place, (ordinal, (had, has)) in enumerate(zip(ordinals, flags, strict=True)):
            old = stored.get(ordinal)
            now = {name: column[place] for name, column in zip(columns, values, strict=True)}
            new = {**(dict.fromkeys(working.types) if old is None else old), **now}
            rows.append(ReachedRow(ordinal, old if had else None, new if has else None))
        return tuple(rows), has_more

    def _size(self, name: str) -> str:
        """How much a column differs; a row that is on one side only counts with all of its value."""
        type_ = self._trace.working(self.asked.at.old.seq).types[name]
        whole = 19 if type_.kind is Kind.INTEGER else type_.precision - type_.scale
        is_exact = type_.kind is not Kind.DOUBLE and whole + type_.scale < _MOST_DIGITS
        number = f"DECIMAL(38, {type_.scale})" if is_exact else "DOUBLE"
        old, new = (
            f"coalesce(CASE WHEN {flag} THEN CAST({self._column(side, name)} AS {number}) END, 0)"
            for side, flag in ((_WAS, "had"), (_NOW, "has"))
        )
        return f"abs({new} - {old})"


def _of_side(tree: Expression, table: str, side: str) -> Expression:
    """A condition on one of both sides."""
    match tree:
        case ColumnValue(owner, column, type_):
            return ColumnValue(side, column, type_) if owner == table else tree
        case Apply(function, arguments, type_):
            return Apply(function, tuple(_of_side(each, table, side) for each in arguments), type_)
        case Convert(operand, type_):
            return Convert(_of_side(operand, table, side), type_)
        case Constant():
            return tree
