"""The adjustments that a run has read: what is in force for its period, who approved it, and what it changed."""

from collections.abc import Iterator, Mapping
from datetime import date

from clew.deferred import dataclass
from clew.definitions.adjustment_columns import (
    ABOUT,
    ACTION,
    ADJUSTED_BY,
    ADJUSTMENT,
    APPROVED_BY,
    MADE_BY,
    OLD,
    REASON,
)
from clew.definitions.dataset import PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN
from clew.explain.pinned import dataset_rows
from clew.lang.typed import Value
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.trace.json_values import json_value
from clew.trace.reader import RunTrace
from clew.trace.records import Source

_PAGE = 1000

APPLIED, NOT_APPROVED, NOT_APPLIED = "applied", "not approved", "not applied"


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A manual correction that is in force for the period of a run."""

    dataset: str
    name: str
    action: str
    status: str
    """applied; not approved, by no one or by who made it; or not applied, since its action is neither change
    nor add, or no row has its key and its old values."""
    values: Mapping[str, Value]
    """What it gives: the key of the row, and new values."""
    old: Mapping[str, Value]
    """The values that the row must have had, where it names them."""
    reason: Value
    made_by: Value
    approved_by: Value
    valid_from: Value
    valid_to: Value
    source: Source
    row_ids: tuple[str, ...]
    """The rows of the run that it changed or added."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew adjustments --json`."""
        return {
            "dataset": self.dataset,
            "adjustment": self.name,
            "action": self.action,
            "status": self.status,
            "values": {name: json_value(value) for name, value in self.values.items()},
            "old": {name: json_value(value) for name, value in self.old.items()},
            "reason": json_value(self.reason),
            "made_by": json_value(self.made_by),
            "approved_by": json_value(self.approved_by),
            "valid_from": _day(self.valid_from),
            "valid_to": _day(self.valid_to),
            "file": self.source.file,
            "line": self.source.line,
            "row_ids": list(self.row_ids),
        }


def _day(value: Value) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, date) else str(value)


def adjustments_read(plan: Plan) -> tuple[DatasetUse, ...]:
    """The datasets of adjustments that a plan applies, each once."""
    found = {
        each.use.key: each.use
        for step in plan.steps
        if ADJUSTED_BY in step.columns_set
        for each in step.datasets
        if ABOUT.keys() <= {column.name for column in each.use.columns}
    }
    return tuple(found.values())


def adjustments_of(trace: RunTrace, use: DatasetUse) -> Iterator[Adjustment]:
    """The adjustments of a dataset that a run has read, in the order of the dataset."""
    rows = _adjusted_rows(trace)
    for row in dataset_rows(trace, use, None, use.table):
        cells = row.cells
        name, action = str(cells[ADJUSTMENT]), str(cells[ACTION])
        yield Adjustment(
            dataset=use.dataset_id,
            name=name,
            action=action,
            status=_status(cells, name in rows),
            values={key: value for key, value in cells.items() if _is_given(key) and value is not None},
            old={key: value for key, value in cells.items() if key.startswith(OLD) and value is not None},
            reason=cells[REASON],
            made_by=cells[MADE_BY],
            approved_by=cells[APPROVED_BY],
            valid_from=cells.get(PERIOD_FROM_COLUMN),
            valid_to=cells.get(PERIOD_TO_COLUMN),
            source=row.source,
            row_ids=tuple(rows.get(name, ())),
        )


def _is_given(column: str) -> bool:
    return column not in {*ABOUT, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN} and not column.startswith(OLD)


def _status(cells: Mapping[str, Value], is_applied: bool) -> str:
    if is_applied:
        return APPLIED
    approved = cells[APPROVED_BY]
    is_approved = approved is not None and cells[MADE_BY] is not None and approved != cells[MADE_BY]
    return NOT_APPLIED if is_approved else NOT_APPROVED


def _adjusted_rows(trace: RunTrace) -> dict[str, list[str]]:
    """The ids of the rows at the end of a run that name an adjustment, by its name."""
    found = dict[str, list[str]]()
    last = trace.run.checked_step(None)
    if ADJUSTED_BY not in dict(trace.run.columns(last)):
        return found
    after = None
    while True:
        page = trace.search(f"{ADJUSTED_BY} IS NOT NULL", last, _PAGE, after)
        for row in page.rows:
            found.setdefault(str(row.state[ADJUSTED_BY]), []).append(row.row_id)
        if not page.has_more:
            return found
        after = page.rows[-1].row_id
