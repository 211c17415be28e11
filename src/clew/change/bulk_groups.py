"""Summaries of groups, for many rows at once: DuckDB adds up, and Python evaluates each group's expressions.

Where rows only have other amounts in the groups that they were in, what is stored moves by the differences, so that no
other row is read.
"""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Mapping, Sequence
from dataclasses import field
from decimal import Decimal, localcontext
from typing import Any

from clew.change.bulk_tables import THERE, BulkTable, BulkTables, NotInBulk, rows_of_trace, stored_name
from clew.deferred import dataclass
from clew.explain.group_totals import COMBINED, aggregate_calls, combined, parts_of
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Apply, ColumnValue, Convert, Expression, Value, columns_of
from clew.lang.types import INTEGER_MAX, INTEGER_MIN, Kind, Type
from clew.plan.steps import CreatingStepBase
from clew.storage.parts import ORDINAL
from clew.trace.exact_sql import exact_value
from clew.trace.json_values import values_of
from clew.trace.sql import Sql, joined, quoted

GroupValues = tuple[Value, ...]
_DELETED = "_deleted"
_MOVED = frozenset({"SUM", "COUNT", "COUNT_ALL"})


@dataclass(frozen=True, slots=True)
class Summaries:
    """Rows that a step would create."""

    rows: tuple[tuple[int | None, dict[str, Value] | None], ...]
    """The ordinal of each, if the run has it, and its values; None if it would not be there."""
    evaluated: int
    """How many rows were looked at."""


@dataclass(slots=True)
class BulkGroups:
    """The groups of a step that sums up rows of the working dataset, as these are after the step before it."""

    tables: BulkTables
    step: CreatingStepBase
    at: int
    differing: frozenset[str]
    """The columns that may not be what the run has."""
    calls: tuple[Apply, ...] = ()
    columns: tuple[str, ...] = ()
    """The columns that decide about groups and their values."""
    _types: Mapping[str, Type] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trees = [each.value.tree for each in self.step.filled]
        trees += [self.step.having.tree] if self.step.having is not None else []
        self.calls = tuple(dict.fromkeys(call for tree in trees for call in aggregate_calls(tree)))
        is_known = all(call.function in COMBINED for call in self.calls)
        if not is_known or any(not _reads_only(tree, self.keys) for tree in trees) or self.step.narrowed_keys:
            raise NotInBulk("an aggregation of another kind")
        condition = [self.step.condition.tree] if self.step.condition is not None else []
        read = [name for tree in (*self.calls, *condition) for _, name in columns_of(tree)]
        self.columns = tuple(dict.fromkeys([*self.keys, *read]))
        self._types = self.tables.trace.working(self.at).types
        if any(self._types[name].kind in {Kind.DOUBLE, Kind.TIMESTAMP} for name in self.keys):
            raise NotInBulk("keys that are not told apart by their values")

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows are grouped."""
        return self.step.keys or ()

    def summaries(self, seen: BulkTable | None, known: Mapping[GroupValues, int], *, everything: bool) -> Summaries:
        """The summaries of the groups that rows of the cone are in, or were in; of all groups on request."""
        if seen is None:
            return self._added_up(None, None, known, set(known))
        rows = f"SELECT * FROM {seen.name} WHERE {THERE}"
        before, files = rows_of_trace(
            self.tables.trace, self.at, [*self.columns, _DELETED], Sql("TRUE"), among=seen.name
        )
        calls = None if everything else self._calls_that_move()
        if calls is not None:
            moved = self._moved(self._members(before, calls, files), self._members(rows, calls), calls, known)
            if moved is not None:
                return moved
        now, was = self._members(rows, self.calls), self._members(before, self.calls, files)
        reached = self.tables.make(
            Sql(f"SELECT DISTINCT {self._listed('k', self.keys)} FROM (FROM {was} UNION ALL FROM {now})")
        )
        groups = set(known) if everything else set(self._groups(self.tables.ask(Sql(f"FROM {reached}"))))
        return self._added_up(seen.name, None if everything else reached, known, groups, now)

    def _members(self, rows: Sql | str, calls: Sequence[Apply], files: Sequence[Any] = ()) -> str:
        """The rows that count: their keys, and what is added up."""
        return self.tables.make(self._counting(rows, calls), files)

    def _counting(self, rows: Sql | str, calls: Sequence[Apply]) -> Sql:
        deleted = quoted(stored_name((self._table, _DELETED)))
        where = Sql(f"NOT coalesce({deleted}, FALSE)")
        if self.step.condition is not None:
            where += " AND coalesce(" + self._sql(self.step.condition.tree) + ", FALSE)"
        keys = [Sql(f"{quoted(stored_name((self._table, name)))} AS k{index}") for index, name in enumerate(self.keys)]
        values = [self._sql(call.arguments[0]) + f" AS a{n}" for n, call in enumerate(calls) if call.arguments]
        return "SELECT " + joined(", ", [Sql(ORDINAL), *keys, *values]) + " FROM (" + rows + ") WHERE " + where

    def _sql(self, tree: Expression) -> Sql:
        def column(each: ColumnValue) -> Sql:
            return Sql(quoted(stored_name((each.table, each.column))))

        found = exact_value(tree, column, self.tables.trace.today)
        if found is None:
            raise NotInBulk("an expression that is left to the evaluator")
        return found

    @property
    def _table(self) -> str:
        return self.tables.trace.plan.input.table

    @staticmethod
    def _listed(prefix: str, names: Sequence[object]) -> str:
        return ", ".join(f"{prefix}{index}" for index in range(len(names))) or "1 AS nothing"

    def _groups(self, table: Any) -> list[GroupValues]:  # noqa: ANN401 - a table of Arrow
        cells = [values_of(table[f"k{index}"], self._types[name]) for index, name in enumerate(self.keys)]
        return list(zip(*cells, strict=True)) if cells else [()] * table.num_rows

    # By differences

    def _calls_that_move(self) -> tuple[Apply, ...] | None:
        """The aggregations that read columns which may differ; None unless what is stored moves by differences."""
        found = list[Apply]()
        for each in self.step.filled:
            if self.differing & {name for _, name in columns_of(each.value.tree)}:
                call = _call(each.value.tree)
                if call is None:
                    return None
                found.append(call)
        return None if self.step.having is not None else tuple(dict.fromkeys(found))

    def _moved(
        self, was: str, now: str, calls: tuple[Apply, ...], known: Mapping[GroupValues, int]
    ) -> Summaries | None:
        """Stored values with the differences added; None unless rows have only other amounts than they had."""
        same = [f"a.k{index} IS NOT DISTINCT FROM b.k{index}" for index in range(len(self.keys))]
        arguments = [number for number, call in enumerate(calls) if call.arguments]
        same += [f"(a.a{number} IS NULL) = (b.a{number} IS NULL)" for number in arguments]
        both = f"{was} AS a FULL JOIN {now} AS b ON a.{ORDINAL} = b.{ORDINAL}"
        stays = " AND ".join([f"a.{ORDINAL} IS NOT NULL", f"b.{ORDINAL} IS NOT NULL", *same])
        if self.tables.number(f"SELECT count(*) FROM {both} WHERE NOT coalesce({stays}, FALSE)"):
            return None
        sums = [number for number, call in enumerate(calls) if call.function == "SUM"]
        total = "".join(
            f", {_sum(f'b.a{number}', calls[number])} - {_sum(f'a.a{number}', calls[number])} AS d{number}"
            for number in sums
        )
        keys = "".join(f"a.k{index}, " for index in range(len(self.keys)))
        found = self.tables.ask(
            Sql(f"SELECT {keys}count(*) AS n{total} FROM {both} GROUP BY {keys.removesuffix(', ') or '()'}")
        )
        groups = self._groups(found)
        deltas = {number: found[f"d{number}"].to_pylist() for number in sums}
        if any(group not in known for group in groups):
            return None
        ordinals = [known[group] for group in groups]
        filled = [each.column for each in self.step.filled]
        stored = dict(self.tables.trace.working(self.step.seq).values(sorted(ordinals), filled))
        moving = {
            each.column: (call, each.value.tree.type) for each in self.step.filled if (call := _call(each.value.tree))
        }
        rows = list[tuple[int | None, dict[str, Value] | None]]()
        for place, (group, ordinal) in enumerate(zip(groups, ordinals, strict=True)):
            values = dict(stored[ordinal])
            for column, (call, type_) in moving.items():
                if call in calls and call.function == "SUM":
                    moved = _plus(values[column], deltas[calls.index(call)][place], type_)
                    if moved is None:
                        return None
                    values[column] = moved[0]
            rows.append((ordinal, {**dict(zip(self.keys, group, strict=True)), **values}))
        return Summaries(tuple(rows), self.tables.number(f"SELECT count(*) FROM {now}"))

    # From all rows

    def _added_up(
        self,
        cone: str | None,
        reached: str | None,
        known: Mapping[GroupValues, int],
        groups: set[GroupValues],
        now: str | None = None,
    ) -> Summaries:
        trace = self.tables.trace
        rows, files = rows_of_trace(trace, self.at, [*self.columns, _DELETED], Sql("TRUE"))
        others = "SELECT * FROM (" + self._counting(rows, self.calls) + ") AS r WHERE TRUE"
        if cone is not None:
            others += f" AND {ORDINAL} NOT IN (SELECT {ORDINAL} FROM {cone})"
        if reached is not None and self.keys:
            same = " AND ".join(f"r.k{n} IS NOT DISTINCT FROM g.k{n}" for n in range(len(self.keys)))
            others += f" AND EXISTS (FROM {reached} AS g WHERE {same})"
        everything = others if now is None else others + f" UNION ALL FROM {now}"
        parts = {
            f"{number}:{name}": sql
            for number, call in enumerate(self.calls)
            for name, sql in parts_of(call, Sql(f"a{number}") if call.arguments else None).items()
        }
        listed = [Sql(f"k{index}") for index in range(len(self.keys))]
        listed += [sql + f" AS {quoted(name)}" for name, sql in parts.items()]
        by = f" GROUP BY {', '.join(f'k{index}' for index in range(len(self.keys)))}" if self.keys else ""
        sql = "SELECT " + joined(", ", [Sql('count(*) AS "rows"'), *listed]) + " FROM (" + everything + ")" + by
        found = self.tables.ask(sql + " HAVING count(*) > 0", files)
        made = dict[GroupValues, dict[str, Value] | None]()
        columns = {name: found[name].to_pylist() for name in parts}
        evaluate = {each.column: evaluator(each.value.tree) for each in self.step.filled}
        having = evaluator(self.step.having.tree) if self.step.having is not None else None
        for place, group in enumerate(self._groups(found)):
            keys = dict(zip(self.keys, group, strict=True))
            values = {
                call: combined(call, {name: columns[f"{n}:{name}"][place] for name in parts_of(call, _nothing(call))})
                for n, call in enumerate(self.calls)
            }
            row = Row({self._table: keys}, trace.today, values)
            is_there = having is None or having(row) is True
            made[group] = {**keys, **{column: each(row) for column, each in evaluate.items()}} if is_there else None
        return Summaries(
            tuple(
                (known.get(group), made.get(group))
                for group in dict.fromkeys([*groups, *made])
                if group in known or made.get(group) is not None
            ),
            sum(found["rows"].to_pylist()),
        )


def _nothing(call: Apply) -> Sql | None:
    return Sql("") if call.arguments else None


def _call(tree: Expression) -> Apply | None:
    """The one sum or count that an expression is, perhaps converted to a type that holds more."""
    inner = tree.operand if isinstance(tree, Convert) else tree
    if not isinstance(inner, Apply) or inner.function not in _MOVED:
        return None
    return inner if (inner.type.kind, inner.type.scale) == (tree.type.kind, tree.type.scale) else None


def _sum(value: str, call: Apply) -> str:
    type_ = call.arguments[0].type
    return f"CAST(coalesce(sum({value}), 0) AS DECIMAL(38, {type_.scale if type_.kind is Kind.DECIMAL else 0}))"


def _plus(value: Value, delta: Decimal, type_: Type) -> tuple[Value] | None:
    """A sum that has moved; None if that does not fit."""
    if value is None:
        return (None,)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    with localcontext(prec=100):
        found = Decimal(value) + delta
        if type_.kind is Kind.INTEGER:
            return (int(found),) if INTEGER_MIN <= found <= INTEGER_MAX else None
        return (found,) if abs(found) < Decimal(10) ** (type_.precision - type_.scale) else None


def _reads_only(tree: Expression, keys: Sequence[str]) -> bool:
    """Whether an aggregation reads nothing but keys outside of its calls."""
    if isinstance(tree, Apply) and tree in set(aggregate_calls(tree)):
        return True
    match tree:
        case ColumnValue(_, column):
            return column in keys
        case Apply(_, arguments):
            return all(_reads_only(each, keys) for each in arguments)
        case Convert(operand):
            return _reads_only(operand, keys)
        case _:
            return True
