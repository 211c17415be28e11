"""The rows of other datasets that an update saw through its joins."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.explain.conditions import with_values
from clew.explain.pinned import DatasetRow, dataset_rows
from clew.explain.tree import JoinedRow
from clew.lang.conversion import to_text
from clew.lang.evaluation import Row
from clew.lang.typed import Value
from clew.plan.row_names import name_of, names_of_dataset
from clew.plan.steps import Join, UpdateStep
from clew.trace.reader import RunTrace

_ENOUGH_TO_TELL = 2


@dataclass(frozen=True, slots=True)
class Match:
    """What a join found for a row."""

    told: JoinedRow
    row: DatasetRow | None
    """None where nothing matched."""


def joined(trace: RunTrace, step: UpdateStep, seen: Row) -> tuple[Row, dict[str, Match]]:
    """What the expressions of an update saw, and what its joins found, by alias."""
    matches = dict[str, Match]()
    for join in step.joins:
        condition = with_values(join.on.tree, join.alias, seen)
        found = list(dataset_rows(trace, join.dataset, condition, join.alias, limit=_ENOUGH_TO_TELL))
        empty: Mapping[str, Value] = dict.fromkeys(column.name for column in join.dataset.columns)
        seen = Row({**seen.tables, join.alias: found[0].cells if found else empty}, trace.today)
        matches[join.alias] = Match(_told(join, found), found[0] if found else None)
    return seen, matches


def _told(join: Join, found: list[DatasetRow]) -> JoinedRow:
    name = join.dataset.name
    if not found:
        return JoinedRow(join.alias, name, join.on.text, None, matches=0)
    label = name_of(found[0].cells, names_of_dataset(join.dataset)) or None
    since = found[0].cells.get("_period_from")
    if label is not None and since is not None:
        label += f" from {to_text(since)}"
    return JoinedRow(join.alias, name, join.on.text, found[0].cells, label, found[0].source, len(found))
