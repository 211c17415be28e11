"""What a plan means, in the plainest Python: rows are dictionaries, steps are loops. For small data only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from clew.lang.arithmetic import fit
from clew.lang.evaluation import Row, evaluator, group_evaluator
from clew.lang.typed import OVER, Apply, Value, columns_of
from clew.lang.types import Kind, Type
from clew.lang.windowing import WindowCall
from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep
from clew.plan.steps import Assignment, PlannedExpression

Cells = dict[str, Value]
Data = Mapping[str, Sequence[Mapping[str, object]]]


class JoinNotUnique(Exception):
    """More than one row of a joined dataset matches a row."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a step did to a row."""

    seq: int
    change_type: str
    before: Cells | None
    after: Cells


@dataclass(slots=True)
class Interpretation:
    """A plan at work on rows of a period."""

    plan: Plan
    data: Data
    period: str
    first_day: date
    rows: list[Cells] = field(init=False)
    outputs: dict[str, list[Cells]] = field(default_factory=dict)
    """By the name of the operation, and by its seq."""
    changes: list[Change] = field(default_factory=list)
    kept: dict[int, dict[int, int]] = field(default_factory=dict)
    """For each step that lets one of several rows stay: the place of that row, by those of the deleted ones."""

    def run(self) -> "Interpretation":
        """Load the input and take all steps."""
        self.rows = [{**row, "_deleted": False, "_labels": ""} for row in self._load(self.plan.input)]
        for step in self.plan.steps:
            self._take(step)
        return self

    def _take(self, step: Step) -> None:
        for row in self.rows:
            row.update({column.name: None for column in step.adds})
        match step:
            case UpdateStep():
                self._update(step)
            case DeleteStep():
                self._delete(step)
            case AggregateStep():
                groups = [group for group in _grouped(self._selected(step), step.group_by) if self._has(step, group[1])]
                self._create(step, [self._summary(step.aggregations, *group) for group in groups])
            case AppendStep():
                self._append(step)
            case OutputStep():
                rows = self.rows if step.include_deleted else [row for row in self.rows if not row["_deleted"]]
                kept = self._matching(step.selector, rows)
                written = [{column: row[column] for column in step.columns} for row in kept]
                self.outputs[step.name] = self.outputs[str(step.seq)] = written

    def _delete(self, step: DeleteStep) -> None:
        selected = self._selected(step)
        if step.keeping is None:
            for row in selected:
                self._change(step, row, {"_deleted": True}, "deleted")
            return
        rule, numbers = step.keeping, {id(row): number for number, row in enumerate(self.rows)}
        self.kept[step.seq] = {}
        for _, members in _grouped(selected, rule.keys):
            group = members
            for key in reversed(rule.order):  # sorting is stable, so the last key comes first
                group.sort(key=lambda row, column=key.column: _sortable(row[column]))  # type: ignore[misc]
                if key.descending:
                    group = [row for rows in reversed(_runs(group, key.column)) for row in rows]
            stays = group[0 if rule.which == "first" else -1]
            for row in group:
                if row is not stays:
                    self._change(step, row, {"_deleted": True}, "deleted")
                    self.kept[step.seq][numbers[id(row)]] = numbers[id(stays)]

    def _update(self, step: UpdateStep) -> None:
        values = [(each.column, evaluator(each.value.tree)) for each in step.assignments]
        joined = {join.alias: self._load(join.dataset) for join in step.joins}
        conditions = {join.alias: evaluator(join.on.tree) for join in step.joins}
        nothing = {join.alias: dict.fromkeys(column.name for column in join.dataset.columns) for join in step.joins}
        selector = step.selector.tree if step.selector is not None else None
        reads_joined = selector is not None and any(table in joined for table, _ in columns_of(selector))
        chosen = evaluator(selector) if selector is not None and reads_joined else None
        selected = self._selected(step) if chosen is None else [row for row in self.rows if not row["_deleted"]]
        windows = [_of_windows(step.windows, selected, place, self._seen) for place in range(len(selected))]
        for row, looked_at in zip(selected, windows, strict=True):
            tables: dict[str, Cells] = {OVER: looked_at}
            for alias, candidates in joined.items():
                found = [
                    other
                    for other in candidates
                    if conditions[alias](self._seen(row, {**tables, alias: other})) is True
                ]
                if len(found) > 1:
                    raise JoinNotUnique(step.name)
                tables[alias] = found[0] if found else nothing[alias]
            seen = self._seen(row, tables)
            if chosen is None or chosen(seen) is True:
                self._change(step, row, {column: value(seen) for column, value in values}, "updated")

    def _append(self, step: AppendStep) -> None:
        table = step.source.table
        rows = self._matching(step.source_selector, self._load(step.source), table)
        if step.group_by is None:
            values = [(each.column, evaluator(each.value.tree)) for each in step.columns]
            created = [{column: value(self._seen(row, {}, table)) for column, value in values} for row in rows]
        else:
            created = [self._summary(step.columns, *group, table) for group in _grouped(rows, step.group_by)]
        self._create(step, created)

    def _has(self, step: AggregateStep, group: Sequence[Cells]) -> bool:
        if step.having is None:
            return True
        return group_evaluator(step.having.tree)([self._seen(row, {}) for row in group]) is True

    def _summary(
        self, columns: Sequence[Assignment], keys: Cells, group: Sequence[Cells], table: str | None = None
    ) -> Cells:
        seen = [self._seen(row, {}, table) for row in group]
        return {**keys, **{each.column: group_evaluator(each.value.tree)(seen) for each in columns}}

    def _selected(self, step: Step) -> list[Cells]:
        return self._matching(step.selector, [row for row in self.rows if not row["_deleted"]])

    def _matching(self, selector: PlannedExpression | None, rows: list[Cells], table: str | None = None) -> list[Cells]:
        if selector is None:
            return rows
        condition = evaluator(selector.tree)
        return [row for row in rows if condition(self._seen(row, {}, table)) is True]

    def _seen(self, row: Cells, joined: Mapping[str, Cells], table: str | None = None) -> Row:
        return Row({table or self.plan.input.table: row, **joined}, self.first_day)

    def _change(self, step: Step, row: Cells, values: Cells, change_type: str) -> None:
        before = dict(row)
        row.update(values)
        if row != before:
            self.changes.append(Change(step.seq, change_type, before, dict(row)))

    def _create(self, step: Step, created: Sequence[Cells]) -> None:
        empty: Cells = dict.fromkeys(column.name for column in self.plan.columns_after(step.seq))
        for values in created:
            row = {**empty, "_period": self.period, "_deleted": False, "_labels": "", **values}
            self.rows.append(row)
            self.changes.append(Change(step.seq, "created", None, dict(row)))

    def _load(self, use: DatasetUse) -> list[Cells]:
        rows = [
            {column.name: typed(row.get(column.name), column.type) for column in use.columns}
            for row in self.data[use.dataset_id]
            if self._counts(use, row)
        ]
        assert all(row[column.name] is not None for row in rows for column in use.columns if not column.nullable)
        return rows

    def _counts(self, use: DatasetUse, row: Mapping[str, object]) -> bool:
        if use.temporal_mode == "period":
            return row["_period"] == self.period
        if use.temporal_mode == "bitemporal" and not use.all_days:
            begin, end = (_as_date(row[name]) for name in ("_period_from", "_period_to"))
            assert begin is not None
            return begin <= self.first_day and (end is None or self.first_day < end)
        return True


def typed(value: object, target: Type) -> Value:
    """A value of a file as a column has it; an empty text is NULL."""
    if value is None or value == "":
        return None
    convert: Mapping[Kind, Callable[[str], Value]] = {
        Kind.STRING: str,
        Kind.INTEGER: int,
        Kind.DECIMAL: lambda text: fit(Decimal(text), target),
        Kind.DATE: date.fromisoformat,
    }
    return convert[target.kind](str(value))


def _as_date(value: object) -> date | None:
    return None if value in {None, ""} else date.fromisoformat(str(value))


def _grouped(rows: Sequence[Cells], keys: Sequence[str]) -> Iterator[tuple[Cells, list[Cells]]]:
    groups = dict[tuple[Value, ...], list[Cells]]()
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for values, group in groups.items():
        yield dict(zip(keys, values, strict=True)), group


def _of_windows(windows: Sequence[WindowCall], rows: list[Cells], place: int, see: Callable[..., Row]) -> Cells:
    """What calls with OVER give for one of the selected rows, each worked out by itself."""
    found: Cells = {}
    for window in windows:
        [group] = [
            members for _, members in _grouped(rows, window.keys) if any(member is rows[place] for member in members)
        ]
        members = list(group)
        for column, descending in reversed(window.order):  # sorting is stable, so the last key comes first
            members.sort(key=lambda row, column=column: _sortable(row[column]))  # type: ignore[misc]
            if descending:
                members = [row for run in reversed(_runs(members, column)) for row in run]
        own = next(number for number, row in enumerate(members) if row is rows[place])
        before = [row for row in members[:own] if not _equal(row, rows[place], window)]
        equals = [row for row in members if _equal(row, rows[place], window)]
        match window.function:
            case "ROW_NUMBER":
                found[window.column] = own + 1
            case "RANK":
                found[window.column] = len(before) + 1
            case "DENSE_RANK":
                kinds = {tuple(_sortable(row[column]) for column, _ in window.order) for row in before}
                found[window.column] = len(kinds) + 1
            case "LAG" | "LEAD":
                away = getattr(window.arguments[1], "value", 1) if len(window.arguments) > 1 else 1
                there = own - away if window.function == "LAG" else own + away
                is_there = 0 <= there < len(members)
                value = evaluator(window.arguments[0])
                found[window.column] = value(see(members[there], {})) if is_there else None
            case _:
                framed = members
                if window.is_counted:
                    numbers = range(len(members))
                    framed = [
                        members[number]
                        for number in numbers
                        if (window.first is None or number >= own + window.first)
                        and (window.last is None or number <= own + window.last)
                    ]
                elif window.order:
                    framed = before + equals
                found[window.column] = _aggregated(window, [see(row, {}) for row in framed])
    return found


def _equal(row: Cells, other: Cells, window: WindowCall) -> bool:
    return all(_sortable(row[column]) == _sortable(other[column]) for column, _ in window.order)


def _aggregated(window: WindowCall, rows: list[Row]) -> Value:
    if not rows:
        return 0 if window.function.startswith("COUNT") else None
    return group_evaluator(Apply(window.function, window.arguments, window.type))(rows)


def _sortable(value: Value) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (2, 0) if value != value else (1, value)  # noqa: PLR0124 - NaN comes last


def _runs(rows: Sequence[Cells], column: str) -> list[list[Cells]]:
    """Sorted rows in lists of those that are equal in a column."""
    runs = list[list[Cells]]()
    for row in rows:
        if runs and _sortable(runs[-1][0][column]) == _sortable(row[column]):
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs
