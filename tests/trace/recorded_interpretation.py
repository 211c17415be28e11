"""A plan interpreted over typed rows, with the working dataset kept as it stood after every step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from clew.lang.evaluation import evaluator
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AppendStep, Step
from tests.plan.plan_interpreter import Cells, Interpretation, _grouped


@dataclass(slots=True)
class Recorded(Interpretation):
    """Rows keep their places: the row at an index is the same row in every state."""

    states: dict[int, list[Cells]] = field(default_factory=dict)
    source_lines: dict[int, list[int]] = field(default_factory=dict)
    """For raw appends, by seq: where in its dataset each new row stands."""
    groups: dict[int, list[Cells]] = field(default_factory=dict)
    """For appends that sum up, by seq: the keys of each new row as its group had them."""

    def run(self) -> "Recorded":
        self.rows = [
            {**row, "_period": row.get("_period") or self.period, "_labels": "", "_deleted": False}
            for row in self._load(self.plan.input)
        ]
        self._remember(0)
        for step in self.plan.steps:
            self._take(step)
            self._remember(step.seq)
        return self

    def _remember(self, seq: int) -> None:
        columns = [*(column.name for column in self.plan.columns_after(seq)), "_period", "_labels", "_deleted"]
        self.states[seq] = [{name: row[name] for name in columns} for row in self.rows]

    def _append(self, step: AppendStep) -> None:
        if step.group_by is None:
            condition = evaluator(step.source_selector.tree) if step.source_selector else lambda _row: True
            rows = self._load(step.source)
            self.source_lines[step.seq] = [
                line for line, row in enumerate(rows) if condition(self._seen(row, {}, step.source.table)) is True
            ]
        else:
            chosen = self._matching(step.source_selector, self._load(step.source), step.source.table)
            self.groups[step.seq] = [keys for keys, _ in _grouped(chosen, step.group_by)]
        Interpretation._append(self, step)

    def _load(self, use: DatasetUse) -> list[Cells]:
        return [{column.name: row.get(column.name) for column in use.columns} for row in self.loaded(use)]

    def loaded(self, use: DatasetUse) -> Sequence[Cells]:
        """The rows of a dataset that count for the period."""
        return [cast("Cells", dict(row)) for row in self.data[use.dataset_id] if self._counts(use, row)]

    def before(self, step: Step) -> list[Cells]:
        """The working dataset as a step found it."""
        return self.states[max((seq for seq in self.states if seq < step.seq), default=0)]
