"""The cone of a supposition: the rows that it reaches, evaluated again; all others are as the run left them.

An edited row of the input reaches itself. One of a joined dataset reaches the rows that looked it up, or would. A row
that differs reaches the summary of its group, before and after, and the rows whose windows it is in. An edited step
reaches the rows that it changed, or would. Rows outside of the cone are as the trace has them after the same step of
the run; columns that only the supposed plan has are NULL in them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count

from clew import budgets
from clew.change.recomputing import Cells, JoinLookup, before_joins
from clew.change.step_edits import StepEdit
from clew.change.suppositions import RowSupposition, Suppositions
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import INVALID_SUPPOSITION
from clew.explain.pinned import dataset_rows
from clew.explain.row_conditions import all_of, equals, is_not_deleted
from clew.lang.evaluation import Row, evaluator, group_evaluator
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, columns_of
from clew.lang.types import Type
from clew.lang.window_values import with_windows
from clew.lang.windowing import WindowCall
from clew.plan.datasets import DatasetUse
from clew.plan.keeping import staying
from clew.plan.operations import Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase, Join, PlannedExpression
from clew.trace.reader import RunTrace

_MOST_GROUPS_ASKED = 20
"""For more groups, all rows are read once instead of those of each group."""
_BYTES_PER_ROW = 1_000

GroupValues = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row of a dataset as it was, and as it is supposed to be; None if it is not there."""

    old: Mapping[str, Value]
    new: Mapping[str, Value] | None


@dataclass(slots=True)
class SupposedDataset:
    """A dataset with what is supposed of it."""

    rows: list[Cells]
    """All rows, as supposed."""
    edited: list[EditedRow]


class TooManyRows(Exception):
    """More rows are in a cone than are to be looked at one by one."""


@dataclass(slots=True)
class Cone:
    """Rows that may differ from what the run has stored, in their supposed state."""

    trace: RunTrace
    supposed: Suppositions
    rows: dict[int, Cells | None] = field(default_factory=dict)
    """By ordinal; None for rows that would not be there. Rows that the run does not have have negative numbers."""
    evaluated: int = 0
    """How many rows were evaluated, each step counted."""
    at: int = 0
    """The step of the run after which rows outside of the cone are as they would be."""
    most: int | None = None
    """TooManyRows is raised when more rows are looked at; None for no limit."""
    looked_at: int = 0
    _datasets: dict[str, SupposedDataset] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(-1, -1))
    _columns: dict[str, None] = field(default_factory=dict)
    """The columns of the supposed plan so far, in addition to those that rows of the trace have."""

    def take(self, entry: Step | StepEdit) -> None:
        """Do a step of the run and of the supposed plan: one that both have, or one that differs."""
        budgets.check()
        old, new = (entry.old, entry.new) if isinstance(entry, StepEdit) else (entry, entry)
        for step in (old, new):
            self._add_columns(step)
        if isinstance(entry, StepEdit):
            self._edit(old, new)
        else:
            self._do(entry)
        if old is not None:
            self.at = old.seq

    def reach(self, condition: Expression | None, *, deleted: bool = False) -> None:
        """Take in the rows of the run for which a condition is true now, deleted ones only on request."""
        trace, rows = self.trace, self.trace.working(self.at)
        alive = None if deleted else is_not_deleted(trace.plan.input.table)
        wanted = None if condition is None else _with_known(condition, trace.plan.input.table, rows.types)
        for ordinal, cells in rows.matching(all_of([alive, wanted]), list(rows.types), trace.see):
            if ordinal not in self.rows:
                self._put(ordinal, self._complete(ordinal, cells))

    def rows_now(self, condition: Expression, columns: Iterable[str]) -> Iterator[Row]:
        """All rows that there would be now, outside of the cone, too, for which a condition is true."""
        trace, rows = self.trace, self.trace.working(self.at)
        table, judge = trace.plan.input.table, evaluator(condition)
        names = [name for name in dict.fromkeys([*columns, "_deleted"]) if name in rows.types]
        for ordinal, cells in rows.matching(_with_known(condition, table, rows.types), names, trace.see):
            if ordinal not in self.rows:
                yield Row({table: self._complete(ordinal, cells)}, trace.today)
        for supposed in self.rows.values():
            if supposed is not None and judge(row := Row({table: supposed}, trace.today)) is True:
                yield row

    def rows_of(self, use: DatasetUse, condition: Expression | None) -> Iterator[Row]:
        """The rows of a dataset for which a condition is true, as supposed."""
        judge = None if condition is None else evaluator(condition)
        for cells in self.dataset(use).rows:
            row = Row({use.table: {**cells, "_deleted": False}}, self.trace.today)
            if judge is None or judge(row) is True:
                yield row

    def _do(self, step: Step) -> None:
        if isinstance(step, ChangingStepBase) and step.traced_as == "delete":
            self._delete(step)
        elif isinstance(step, ChangingStepBase):
            self._update(step)
        elif isinstance(step, CreatingStepBase) and step.made_from is None:
            self._summarize(step, step)
        elif isinstance(step, CreatingStepBase) and step.made_from is not None:
            self._append(step, step.made_from)

    def _edit(self, old: Step | None, new: Step | None) -> None:
        """Do a step in place of another one, or of none, or leave one out."""
        for step in (old, new):
            if isinstance(step, ChangingStepBase):
                own = before_joins(step.selector, self.trace.plan.input.table)
                self.reach(own.tree if own else None)
        if isinstance(new, ChangingStepBase):
            self._do(new)
        is_regrouped = not (
            isinstance(old, CreatingStepBase)
            and isinstance(new, CreatingStepBase)
            and old.keys is not None
            and old.keys == new.keys
        )
        if isinstance(old, CreatingStepBase) and is_regrouped:
            self._uncreate(old)
        if isinstance(new, CreatingStepBase):
            known = old if isinstance(old, CreatingStepBase) and not is_regrouped else None
            if new.made_from is None:
                self._summarize(new, known, everything=True)
            else:
                self._append_all(new, new.made_from, known)

    def _add_columns(self, step: Step | None) -> None:
        adds = () if step is None else step.adds
        added = [column.name for column in adds if column.name not in self._columns]
        self._columns.update(dict.fromkeys(added))
        for cells in self.rows.values():
            if cells is not None:
                cells.update({name: None for name in added if name not in cells})

    def _complete(self, ordinal: int, cells: Mapping[str, Value]) -> Cells:
        """A row of the trace with all columns that it would have by now."""
        return {**self._columns, **cells, "_row_id": self.trace.row_ids.row_id(ordinal)}

    def _put(self, ordinal: int, cells: Cells | None) -> None:
        if ordinal not in self.rows:
            self._count()
            budgets.hold(_BYTES_PER_ROW)
        self.rows[ordinal] = cells

    def _count(self) -> None:
        self.looked_at += 1
        if self.most is not None and self.looked_at > self.most:
            raise TooManyRows

    # What is supposed of datasets

    def load(self) -> None:
        """Take in the rows of the input that are supposed to be different."""
        trace, use = self.trace, self.trace.plan.input
        mine = self.supposed.of_dataset(use)
        if mine:
            names = [name for name, _ in trace.run.columns(0)]
            alive = is_not_deleted(use.table)
            found = set[int]()
            for each in mine:
                reached = 0
                for ordinal, cells in trace.working(0).matching(all_of([alive, each.where]), names, trace.see):
                    reached += 1
                    seen = {**cells, "_row_id": trace.row_ids.row_id(ordinal)}
                    known = self.rows[ordinal] if ordinal in found else seen
                    found.add(ordinal)
                    self._put(ordinal, _supposed(known, each, use.table, trace))
                require_any(reached, each, use)
        for other in trace.plan.datasets_read[1:]:
            if self.supposed.of_dataset(other):
                self.dataset(other)

    def dataset(self, use: DatasetUse) -> SupposedDataset:
        """A dataset with what is supposed of it."""
        if use.key not in self._datasets:
            rows, edited = list[Cells](), list[EditedRow]()
            mine = self.supposed.of_dataset(use)
            tests = [(each, evaluator(each.where) if each.where is not None else None) for each in mine]
            reached = dict.fromkeys(range(len(tests)), 0)
            for row in dataset_rows(self.trace, use, None, use.table):
                old: Cells = dict(row.cells)
                new: Cells | None = dict(old)
                touched = False
                for number, (each, test) in enumerate(tests):
                    if test is None or test(Row({use.table: old}, self.trace.today)) is True:
                        reached[number] += 1
                        new, touched = _supposed(new, each, use.table, self.trace), True
                if touched and new != old:
                    edited.append(EditedRow(old, new))
                if new is not None:
                    rows.append(new)
            for number, each in enumerate(mine):
                require_any(reached[number], each, use)
            self._datasets[use.key] = SupposedDataset(rows, edited)
        return self._datasets[use.key]

    # Updates and deletions

    def _update(self, step: ChangingStepBase) -> None:
        table = self.trace.plan.input.table
        own = before_joins(step.selector, table)
        for join in step.lookups:
            if self.supposed.of_dataset(join.dataset):
                for each in self.dataset(join.dataset).edited:
                    for version in (each.old, each.new):
                        if version is not None:
                            self.reach(all_of([own.tree if own else None, self.looking_up(join, version)]))
        if not self.rows:
            return
        chosen = None if own is step.selector or step.selector is None else evaluator(step.selector.tree)
        lookups = [JoinLookup.of(join, self.dataset(join.dataset).rows, self.trace.today) for join in step.lookups]
        values = [(each.column, evaluator(each.value.tree)) for each in step.assigned]
        around = self._reach_windows(step.window_calls)
        selected = list(self._selected(own, {**self.rows, **around}))
        widen = with_windows(
            step.window_calls,
            table,
            [(_order_of(ordinal), Row({table: cells}, self.trace.today)) for ordinal, cells in selected],
        )
        found = list[tuple[Cells, Cells]]()
        for ordinal, cells in selected:
            if ordinal not in around:
                seen = widen(_order_of(ordinal), Row({table: cells}, self.trace.today))
                for lookup in lookups:
                    seen = lookup.joined(seen, step)
                if chosen is None or chosen(seen) is True:
                    found.append((cells, {column: value(seen) for column, value in values}))
        for cells, new in found:
            cells.update(new)

    def _reach_windows(self, windows: Sequence[WindowCall]) -> dict[int, Cells]:
        """Take in the rows whose windows hold a row of the cone, or held it, and give the other rows of their windows.

        Those are as the run has them: they are looked at, and do not change.
        """
        several = list(dict.fromkeys(window.keys for window in windows))
        affected = [each for keys in several for each in self._around(keys)]
        for ordinal, cells in affected:
            if ordinal not in self.rows:
                self._put(ordinal, cells)
        found = dict[int, Cells]()
        for keys in several if len(several) > 1 else ():
            for ordinal, cells in self._around(keys):
                if ordinal not in found:
                    budgets.hold(_BYTES_PER_ROW)
                found[ordinal] = cells
        return found

    def _delete(self, step: ChangingStepBase) -> None:
        """Mark rows as deleted. Where one of several stays, all rows of their groups have to be seen."""
        if step.keeps is None:
            for _, cells in list(self._selected(step.selector, self.rows)):
                cells["_deleted"] = True
            return
        keeping = step.keeps
        for ordinal, cells in self._around(keeping.keys):
            self._put(ordinal, cells)
        condition = evaluator(step.selector.tree) if step.selector else None
        table = self.trace.plan.input.table
        selected = [
            (ordinal, cells)
            for ordinal, cells in self.rows.items()
            if cells is not None
            and not cells["_deleted"]
            and (condition is None or condition(Row({table: cells}, self.trace.today)) is True)
        ]
        stays = staying(keeping, ((_order_of(ordinal), cells) for ordinal, cells in selected))
        for ordinal, cells in selected:
            self.evaluated += 1
            if stays(cells) != _order_of(ordinal):
                cells["_deleted"] = True

    def _around(self, keys: tuple[str, ...]) -> list[tuple[int, Cells]]:
        """All rows beside the cone that are, or were, in a group with a row of it."""
        rows = self.trace.working(self.at)
        stored = [name for name in keys if name in rows.types]
        own = sorted(each for each in self.rows if each >= 0)
        groups = {tuple(cells.get(name) for name in keys) for _, cells in rows.values(own, stored)}
        groups |= {tuple(cells[name] for name in keys) for cells in self.rows.values() if cells is not None}
        reached = self._rows_of_groups(keys, groups, rows.types) if groups else ()
        return [(ordinal, self._complete(ordinal, cells)) for ordinal, cells in reached if ordinal not in self.rows]

    def looking_up(self, join: Join, cells: Mapping[str, Value]) -> Expression | None:
        """The rows that find a row of a joined dataset; None for all if that depends on other joins."""
        found = _with_row(join.on.tree, join.alias, cells)
        is_own = all(table == self.trace.plan.input.table for table, _ in columns_of(found))
        return found if is_own else None

    def _selected(
        self, selector: PlannedExpression | None, rows: Mapping[int, Cells | None]
    ) -> Iterator[tuple[int, Cells]]:
        """The live ones of rows that a selector matches."""
        condition = evaluator(selector.tree) if selector is not None else None
        for ordinal, cells in rows.items():
            if cells is None or cells["_deleted"]:
                continue
            self.evaluated += 1
            if condition is None or condition(Row({self.trace.plan.input.table: cells}, self.trace.today)) is True:
                yield ordinal, cells

    # Rows that steps create

    def _summarize(self, step: CreatingStepBase, known: CreatingStepBase | None, *, everything: bool = False) -> None:
        """The summaries of groups that hold a row of the cone, or held it; of all groups on request.

        `known` is the step of the run that created the summaries that these take the place of.
        """
        trace, table, keys = self.trace, self.trace.plan.input.table, step.keys or ()
        types = dict(trace.run.columns(self.at))
        condition = evaluator(step.condition.tree) if step.condition else None

        def group_of(cells: Cells) -> GroupValues | None:
            if cells["_deleted"] or (condition is not None and condition(Row({table: cells}, trace.today)) is not True):
                return None
            return tuple(cells[name] for name in keys)

        reached = set[GroupValues | None]()
        for ordinal, stored in trace.working(self.at).values(
            sorted(each for each in self.rows if each >= 0), list(types)
        ):
            now, before = self.rows[ordinal], self._complete(ordinal, stored)
            if now is not None and all(now[name] == value for name, value in before.items()):
                del self.rows[ordinal]  # it has come out as it was
            else:
                reached.add(group_of(before))
        members = defaultdict[GroupValues, list[Cells]](list)
        for cells in self.rows.values():
            group = None if cells is None else group_of(cells)
            if group is not None and cells is not None:
                members[group].append(cells)
        reached |= members.keys()
        groups = {each for each in reached if each is not None}
        if not groups and not everything:
            return
        asked = None if everything else groups
        for ordinal, cells in self._rows_of_groups(keys, asked, types):
            if ordinal not in self.rows:
                seen = self._complete(ordinal, cells)
                group = group_of(seen)
                self._count()
                if group is not None and (everything or group in groups):
                    self.evaluated += 1
                    members[group].append(seen)
        summaries = {} if known is None else self.summaries(known)
        self._replace(step, {*groups, *members, *summaries} if everything else groups, members, table, summaries)

    def _rows_of_groups(
        self, keys: tuple[str, ...], groups: set[GroupValues] | None, types: Mapping[str, Type]
    ) -> Iterator[tuple[int, Cells]]:
        """The rows of the trace that may be in some groups, or in any."""
        rows, table = self.trace.working(self.at), self.trace.plan.input.table
        alive = is_not_deleted(table)
        if groups is None or len(groups) > _MOST_GROUPS_ASKED or not keys or not types.keys() >= set(keys):
            yield from rows.matching(alive, list(types), self.trace.see)
            return
        for group in groups:
            same = [
                equals(ColumnValue(table, name, types[name]), value) for name, value in zip(keys, group, strict=True)
            ]
            yield from rows.matching(all_of([alive, *same]), list(types), self.trace.see)

    def _replace(
        self,
        step: CreatingStepBase,
        groups: Iterable[GroupValues],
        members: Mapping[GroupValues, Sequence[Cells]],
        table: str,
        known: Mapping[GroupValues, int],
    ) -> None:
        """The summaries of groups: with other values, gone, or new. `known` are those that the run has."""
        values = [(each.column, group_evaluator(each.value.tree)) for each in step.filled]
        having = group_evaluator(step.having.tree) if step.having is not None else None
        for group in groups:
            ordinal = known.get(group)
            rows = [Row({table: cells}, self.trace.today) for cells in members.get(group, ())]
            if not rows or (having is not None and having(rows) is not True):
                if ordinal is not None:
                    self._put(ordinal, None)
                continue
            keys = dict(zip(step.keys or (), group, strict=True))
            self._create(ordinal, {**keys, **{column: value(rows) for column, value in values}})

    def _uncreate(self, step: CreatingStepBase) -> None:
        """The rows that a step of the run created are not there."""
        for part in self.trace.run.created:
            if part.seq == step.seq:
                for ordinal, _ in self.trace.created(part).matching(None, (), self.trace.see):
                    self._put(ordinal, None)

    def summaries(self, step: CreatingStepBase) -> dict[GroupValues, int]:
        """The rows that a step created, by the keys of their groups."""
        found = dict[GroupValues, int]()
        for part in self.trace.run.created:
            if part.seq == step.seq:
                columns = [key.column for key in self.trace.group_keys(part)]
                for ordinal, cells in self.trace.created(part).matching(
                    None, list(dict.fromkeys(columns)), self.trace.see
                ):
                    found[tuple(cells[name] for name in columns)] = ordinal
        return found

    def _create(self, ordinal: int | None, values: Cells) -> None:
        empty: Cells = dict.fromkeys([*(name for name, _ in self.trace.run.columns(self.at)), *self._columns])
        row_id = None if ordinal is None else self.trace.row_ids.row_id(ordinal)
        self._put(self.number(ordinal), {**empty, **self.system_cells, "_row_id": row_id, **values})

    def number(self, ordinal: int | None) -> int:
        """The ordinal of a row that a step creates: that of the run, or a negative one."""
        return next(self._numbers) if ordinal is None else ordinal

    @property
    def system_cells(self) -> Cells:
        """What a row that a step creates has in system columns."""
        return {"_period": self.trace.period, "_labels": "", "_deleted": False}

    def _append(self, step: CreatingStepBase, use: DatasetUse) -> None:
        """The rows that edited rows of the source become, or the summaries of their groups."""
        if not self.supposed.of_dataset(use):
            return
        source, counts = self.dataset(use), self._counts(step, use)
        if step.keys is None:
            edited = [each for each in source.edited if counts(each.old) or counts(each.new)]
            self._append_rows(step, use, edited, counts)
            return
        keys = step.keys
        groups = {
            tuple(version[key] for key in keys)
            for each in source.edited
            for version in (each.old, each.new)
            if version is not None and counts(version)
        }
        members = defaultdict[GroupValues, list[Cells]](list)
        for cells in source.rows:
            group = tuple(cells[key] for key in keys)
            if group in groups and counts(cells):
                self.evaluated += 1
                members[group].append(cells)
        self._replace(step, groups, members, use.table, self.summaries(step))

    def _append_all(self, step: CreatingStepBase, use: DatasetUse, known: CreatingStepBase | None) -> None:
        """All rows that a step takes from a dataset, or the summaries of all their groups."""
        source, counts = self.dataset(use), self._counts(step, use)
        taken = [cells for cells in source.rows if counts(cells)]
        self.evaluated += len(taken)
        if step.keys is None:
            for cells in taken:
                self._create(None, self._made(step, use, cells))
            return
        members = defaultdict[GroupValues, list[Cells]](list)
        for cells in taken:
            members[tuple(cells[key] for key in step.keys)].append(cells)
        summaries = {} if known is None else self.summaries(known)
        self._replace(step, {*members, *summaries}, members, use.table, summaries)

    def _counts(self, step: CreatingStepBase, use: DatasetUse) -> Callable[[Mapping[str, Value] | None], bool]:
        """Whether a step takes a row of a dataset."""
        condition = evaluator(step.condition.tree) if step.condition else None

        def counts(cells: Mapping[str, Value] | None) -> bool:
            if cells is None:
                return False
            return condition is None or condition(Row({use.table: cells}, self.trace.today)) is True

        return counts

    def _made(self, step: CreatingStepBase, use: DatasetUse, cells: Mapping[str, Value]) -> Cells:
        """What a row of a dataset becomes."""
        seen = Row({use.table: cells}, self.trace.today)
        return {each.column: evaluator(each.value.tree)(seen) for each in step.filled}

    def _append_rows(
        self,
        step: CreatingStepBase,
        use: DatasetUse,
        edited: Sequence[EditedRow],
        counts: Callable[[Mapping[str, Value] | None], bool],
    ) -> None:
        types = dict(self.trace.run.columns(step.seq))
        taken = set[int]()
        for each in edited:
            ordinal = None
            if counts(each.old):
                self.evaluated += 1
                ordinal = self._created_with(step, use, self._made(step, use, each.old), types, taken)
                taken.add(ordinal)
            if each.new is not None and counts(each.new):
                self.evaluated += 1
                self._create(ordinal, self._made(step, use, each.new))
            elif ordinal is not None:
                self._put(ordinal, None)

    def _created_with(
        self, step: CreatingStepBase, use: DatasetUse, values: Cells, types: Mapping[str, Type], taken: set[int]
    ) -> int:
        """A row that a step created with these values. Rows with the same values are as good as each other."""
        table = self.trace.plan.input.table
        same = all_of(equals(ColumnValue(table, name, types[name]), value) for name, value in values.items())
        for part in self.trace.run.created:
            if part.seq == step.seq:
                for ordinal, _ in self.trace.created(part).matching(same, (), self.trace.see):
                    if ordinal not in taken:
                        return ordinal
        problem = f'a row that step {step.seq} "{step.name}" took from {use.name} is not among those it created'
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint="`clew verify --deep` checks the run"))


def _order_of(ordinal: int) -> int:
    """What puts rows that are equal in an order: rows that there would be, which count down, after those that are."""
    return ordinal if ordinal >= 0 else _AFTER_ALL - ordinal


_AFTER_ALL = 1 << 63


def _supposed(cells: Cells | None, supposed: RowSupposition, table: str, trace: RunTrace) -> Cells | None:
    """A row with what is supposed of it."""
    if cells is None or supposed.column is None or supposed.value is None:
        return None
    value = evaluator(supposed.value)(Row({table: cells}, trace.today))
    return {**cells, supposed.column: value}


def require_any(reached: int, supposed: RowSupposition, use: DatasetUse) -> None:
    """Raise UserError if a supposition is about no row."""
    if not reached:
        problem = f'no row of {use.name}, as the run read it, matches "{supposed.text}"'
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem))


def _with_known(expression: Expression, table: str, known: Mapping[str, Type]) -> Expression:
    """A condition over rows of the trace: columns that only the supposed plan has are NULL in them."""
    match expression:
        case ColumnValue(owner, column, type_):
            is_known = owner != table or column in known or column == "_row_id"
            return expression if is_known else Constant(None, type_)
        case Apply(function, arguments, type_):
            return Apply(function, tuple(_with_known(each, table, known) for each in arguments), type_)
        case Convert(operand, type_):
            return Convert(_with_known(operand, table, known), type_)
        case Constant():
            return expression


def _with_row(expression: Expression, alias: str, cells: Mapping[str, Value]) -> Expression:
    """A condition with the values of a joined row in place."""
    match expression:
        case ColumnValue(table, column, type_):
            return Constant(cells[column], type_) if table == alias else expression
        case Apply(function, arguments, type_):
            return Apply(function, tuple(_with_row(each, alias, cells) for each in arguments), type_)
        case Convert(operand, type_):
            return Convert(_with_row(operand, alias, cells), type_)
        case Constant():
            return expression
