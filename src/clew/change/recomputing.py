"""A plan at work on rows in Python: what a run would have given for other rows, other steps or another day.

The expressions are those of the plan and the evaluator is that of explanations, so that the result for the rows and
steps of a run is what the run has stored.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date

from clew import budgets
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.lang.conversion import to_text
from clew.lang.evaluation import Evaluator, Row, evaluator, group_evaluator
from clew.lang.typed import Apply, Expression, Value, columns_of
from clew.lang.types import BOOLEAN, Kind
from clew.lang.window_values import with_windows
from clew.plan.datasets import DatasetUse
from clew.plan.keeping import staying
from clew.plan.operations import Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase, Join, PlannedExpression, StepBase
from clew.trace.prefilter import conjuncts

Cells = dict[str, Value]
"""The values of a row, system columns among them."""

OWN_PERIOD = "\x00own period"
"""In place of the period of the run in rows, so that another period can be put there."""

_ROWS_PER_CHECK = 64


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the rows of a run."""

    table: str
    """The name of the working dataset in expressions."""
    steps: tuple[Step, ...]
    columns: tuple[str, ...]
    """All data columns that any of the steps may set."""
    rows: Sequence[Mapping[str, Value]]
    """The working dataset as loaded."""
    datasets: Mapping[str, Sequence[Mapping[str, Value]]]
    """The rows of the datasets that steps read beside it, by the key of the dataset."""
    period: str
    today: date


@dataclass(slots=True)
class Recomputation:
    """The working dataset of a recipe, step by step."""

    recipe: Recipe
    rows: list[Cells] = field(default_factory=list)

    def run(self) -> list[Cells]:
        """The rows after the last step, deleted ones among them. Raises UserError where the run would have failed."""
        self.load()
        return self.go_on()

    def go_on(self) -> list[Cells]:
        """The rows after the steps, which begin with the rows that are there."""
        for step in self.recipe.steps:
            self.take(step)
        return self.rows

    def load(self) -> None:
        """Begin with the rows as loaded."""
        empty: Cells = dict.fromkeys(self.recipe.columns)
        self.rows = [self._dated({**empty, **row}) for row in self.recipe.rows]

    def take(self, step: Step) -> None:
        """Do one step. Rows keep their places, and new ones come last."""
        budgets.check()
        if isinstance(step, ChangingStepBase):
            self._change(step)
        elif isinstance(step, CreatingStepBase):
            self._create(self._created(step))

    def _change(self, step: ChangingStepBase) -> None:
        if step.traced_as == "delete":
            for row in self._deleted(step):
                row["_deleted"] = True
            return
        values = [(each.column, evaluator(each.value.tree)) for each in step.assigned]
        lookups = [JoinLookup.of(join, self._dataset(join.dataset), self.recipe.today) for join in step.lookups]
        own, joined = _by_what_they_read(step.selector, self.recipe.table)
        chosen = None if joined is None else evaluator(joined.tree)
        table, today = self.recipe.table, self.recipe.today
        selected = [(number, Row({table: row}, today)) for number, row in enumerate(self._selected(own))]
        widen = with_windows(step.window_calls, table, selected)
        found = list[tuple[Cells, Cells]]()
        for number, own_row in selected:
            seen = widen(number, own_row)
            for lookup in lookups:
                seen = lookup.joined(seen, step)
            if chosen is None or chosen(seen) is True:
                found.append((own_row.tables[table], {column: value(seen) for column, value in values}))  # type: ignore[arg-type]
        for cells, new in found:
            cells.update(new)

    def _deleted(self, step: ChangingStepBase) -> list[Cells]:
        """The rows that a step deletes. The order of the rows stands for that of their ordinals."""
        selected = self._selected(step.selector)
        if step.keeps is None:
            return selected
        stays = staying(step.keeps, enumerate(selected))
        return [row for number, row in enumerate(selected) if stays(row) != number]

    def _created(self, step: CreatingStepBase) -> list[Cells]:
        """The values that new rows are filled with."""
        table, today = self.recipe.table, self.recipe.today
        if step.made_from is None:
            rows = self._selected(step.condition)
        else:
            table = step.made_from.table
            rows = self._dataset(step.made_from)
            condition = evaluator(step.condition.tree) if step.condition is not None else None
            rows = [row for row in rows if condition is None or condition(Row({table: row}, today)) is True]
        if step.keys is not None:
            return self._groups(step, rows, table)
        values = [(each.column, evaluator(each.value.tree)) for each in step.filled]
        return [{column: value(Row({table: row}, today)) for column, value in values} for row in rows]

    def _groups(self, step: CreatingStepBase, rows: Iterable[Cells], table: str) -> list[Cells]:
        groups = defaultdict[tuple[Value, ...], list[Row]](list)
        keys = step.keys or ()
        for row in rows:
            groups[tuple(row[key] for key in keys)].append(Row({table: row}, self.recipe.today))
        filled = [(each.column, group_evaluator(each.value.tree)) for each in step.filled]
        having = group_evaluator(step.having.tree) if step.having is not None else None
        return [
            {**dict(zip(keys, key, strict=True)), **{column: value(group) for column, value in filled}}
            for key, group in groups.items()
            if having is None or having(group) is True
        ]

    def _create(self, created: Iterable[Cells]) -> None:
        empty: Cells = dict.fromkeys(self.recipe.columns)
        system: Cells = {"_period": self.recipe.period, "_labels": "", "_deleted": False, "_row_id": None}
        self.rows += [{**empty, **system, **values} for values in created]

    def _selected(self, selector: PlannedExpression | None) -> list[Cells]:
        """The live rows for which a selector is true."""
        live = [row for row in self.rows if not row["_deleted"]]
        if selector is None:
            return live
        condition, found = evaluator(selector.tree), list[Cells]()
        for number, row in enumerate(live):
            if number % _ROWS_PER_CHECK == 0:
                budgets.check()
            if condition(Row({self.recipe.table: row}, self.recipe.today)) is True:
                found.append(row)
        return found

    def _dataset(self, use: DatasetUse) -> list[Cells]:
        return [self._dated(dict(row)) for row in self.recipe.datasets[use.key]]

    def _dated(self, row: Cells) -> Cells:
        if row.get("_period") == OWN_PERIOD:
            row["_period"] = self.recipe.period
        return row


def steps_for_single_rows(steps: Sequence[Step]) -> int:
    """How many steps there are before the first one that looks at several rows, or makes any."""
    for number, step in enumerate(steps):
        compares = isinstance(step, ChangingStepBase) and (step.keeps is not None or bool(step.window_calls))
        if compares or isinstance(step, CreatingStepBase):
            return number
    return len(steps)


def _by_what_they_read(
    selector: PlannedExpression | None, table: str
) -> tuple[PlannedExpression | None, PlannedExpression | None]:
    """What of a selector is decided before rows are joined, and the whole of it where it reads joined datasets."""
    if selector is None or all(owner == table for owner, _ in columns_of(selector.tree)):
        return selector, None
    own = [each for each in conjuncts(selector.tree) if all(owner == table for owner, _ in columns_of(each))]
    tree = own[0] if len(own) == 1 else Apply("AND", tuple(own), BOOLEAN)
    return (PlannedExpression(selector.text, tree) if own else None), selector


def before_joins(selector: PlannedExpression | None, table: str) -> PlannedExpression | None:
    """What a selector says about the working dataset alone."""
    return _by_what_they_read(selector, table)[0]


@dataclass(frozen=True, slots=True)
class JoinLookup:
    """The rows of a joined dataset by the values that its condition compares for equality."""

    join: Join
    on: Evaluator
    keys: tuple[Evaluator, ...]
    rows: Mapping[tuple[Value, ...], Sequence[Cells]]
    nothing: Cells

    @classmethod
    def of(cls, join: Join, rows: Sequence[Cells], today: date) -> "JoinLookup":
        """The rows of a dataset, to be looked up."""
        pairs = [pair for each in conjuncts(join.on.tree) if (pair := equality(each, join.alias)) is not None]
        theirs = [evaluator(inside) for inside, _ in pairs]
        found = defaultdict[tuple[Value, ...], list[Cells]](list)
        for row in rows:
            found[tuple(value(Row({join.alias: row}, today)) for value in theirs)].append(row)
        nothing: Cells = dict.fromkeys(column.name for column in join.dataset.columns)
        return cls(join, evaluator(join.on.tree), tuple(evaluator(mine) for _, mine in pairs), found, nothing)

    def matches(self, seen: Row) -> bool:
        """Whether a row finds any."""
        return bool(self._candidates(seen, tuple(value(seen) for value in self.keys)))

    def found(self, seen: Row) -> list[Cells]:
        """The rows that a row finds."""
        together = self._candidates(seen, tuple(value(seen) for value in self.keys))
        return [dict(each.tables[self.join.alias]) for each in together]

    def _candidates(self, seen: Row, key: tuple[Value, ...]) -> list[Row]:
        return [
            together
            for cells in self.rows.get(key, ())
            if self.on(together := Row({**seen.tables, self.join.alias: cells}, seen.today)) is True
        ]

    def joined(self, seen: Row, step: StepBase) -> Row:
        """A row with the one that it finds under the alias; with NULLs if it finds none."""
        key = tuple(value(seen) for value in self.keys)
        candidates = self._candidates(seen, key)
        if len(candidates) > 1:
            shown = ", ".join("NULL" if value is None else to_text(value) for value in key)
            problem = f'step {step.seq} "{step.name}": {len(candidates)} rows of {self.join.dataset.name} match {shown}'
            raise UserError(JOIN_NOT_UNIQUE.anywhere(problem=problem))
        return candidates[0] if candidates else Row({**seen.tables, self.join.alias: self.nothing}, seen.today)


def equality(condition: Expression, alias: str) -> tuple[Expression, Expression] | None:
    """The two sides of an equality, that of the joined dataset first; None for other conditions.

    Doubles are left to the condition itself, since NaN equals NaN there.
    """
    if not isinstance(condition, Apply) or condition.function != "=":
        return None
    left, right = condition.arguments
    if left.type.kind is Kind.DOUBLE:
        return None
    tables = [{table for table, _ in columns_of(side)} for side in (left, right)]
    if tables[0] == {alias} and alias not in tables[1]:
        return left, right
    return (right, left) if tables[1] == {alias} and alias not in tables[0] else None


def trees_of(step: Step) -> list[Expression]:
    """Every expression of a step."""
    planned = [step.selector, *(join.on for join in step.lookups)]
    if isinstance(step, ChangingStepBase):
        planned += [each.value for each in step.assigned]
        others = [tree for window in step.window_calls for tree in window.values]
        return [*others, *(each.tree for each in planned if each is not None)]
    if isinstance(step, CreatingStepBase):
        planned += [step.condition, *(each.value for each in step.filled), step.having]
    return [each.tree for each in planned if each is not None]
