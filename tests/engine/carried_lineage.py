"""A plan interpreted in plain Python, in which every row carries the source rows that it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.lang.evaluation import evaluator
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AppendStep, OutputStep, Step
from clew.plan.steps import Assignment
from tests.plan.plan_interpreter import Cells, Interpretation
from tests.trace.recorded_interpretation import Recorded

BEHIND = "__behind"
"""In every row: the dataset and line of each source row behind it."""


@dataclass(slots=True)
class Carried(Recorded):
    """Rows of `data` have `BEHIND` already."""

    registered: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What outputs made into datasets, by name."""

    def _load(self, use: DatasetUse) -> list[Cells]:
        columns = [column.name for column in use.columns]
        return [{name: row.get(name) for name in (*columns, BEHIND)} for row in self.loaded(use)]

    def _summary(
        self, columns: Sequence[Assignment], keys: Cells, group: Sequence[Cells], table: str | None = None
    ) -> Cells:
        behind: Any = frozenset().union(*(row[BEHIND] for row in group))  # type: ignore[arg-type]
        return {**Interpretation._summary(self, columns, keys, group, table), BEHIND: behind}

    def _append(self, step: AppendStep) -> None:
        if step.group_by is not None:
            return Interpretation._append(self, step)
        table = step.source.table
        rows = self._matching(step.source_selector, self._load(step.source), table)
        values = [(each.column, evaluator(each.value.tree)) for each in step.columns]
        created = [
            {**{column: value(self._seen(row, {}, table)) for column, value in values}, BEHIND: row[BEHIND]}
            for row in rows
        ]
        return self._create(step, created)

    def _take(self, step: Step) -> None:
        Recorded._take(self, step)
        if isinstance(step, OutputStep) and step.registers is not None:
            kept = self._matching(step.selector, [row for row in self.rows if not row["_deleted"]])
            self.registered[step.registers] = [{name: row[name] for name in (*step.columns, BEHIND)} for row in kept]
