"""What a value was in earlier runs for the same period.

That is the value before each restatement, and when and by which run it was changed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from clew.change.points import points_of
from clew.change.row_kinds import kinds_of
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import ROW_NOT_FOUND
from clew.explain.row_conditions import all_of, equals, is_not_deleted
from clew.lang.typed import ColumnValue, Value
from clew.trace.json_values import json_value
from clew.trace.reader import RunTrace
from clew.trace.results import shown


@dataclass(frozen=True, slots=True)
class RowAsked:
    """A column of a row of a run, after a step."""

    trace: RunTrace
    row: str
    column: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class FoundValue:
    """What a run has in the place of a value."""

    is_there: bool
    """Whether it has the row."""
    value: Value = None


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A value, and the run that stated it first."""

    run_id: str
    since: datetime
    """When that run completed."""
    found: FoundValue

    @property
    def told(self) -> str:
        """The value in words."""
        return shown(self.found.value) if self.found.is_there else "no such row"

    def to_json(self) -> dict[str, object]:
        """The form of `clew explain --restated --json`."""
        return {
            "run_id": self.run_id,
            "since": self.since.isoformat(),
            "is_there": self.found.is_there,
            "value": json_value(self.found.value),
        }


@dataclass(frozen=True, slots=True)
class Restatements:
    """How a value came to be what it is from run to run, oldest first; the last one is what it is now."""

    column: str
    key: Mapping[str, Value]
    stated: tuple[StatedValue, ...]
    notes: tuple[str, ...] = ()
    """Runs that could not be asked, and why."""

    @property
    def is_restated(self) -> bool:
        """Whether an earlier run had another value."""
        return len(self.stated) > 1

    def to_lines(self) -> tuple[str, ...]:
        """Sentences, the newest restatement first."""
        if not self.is_restated:
            return ("not restated: no earlier run that could be asked had another value", *self.notes)
        pairs = list(zip(self.stated, self.stated[1:], strict=False))
        told = tuple(
            f"restated at {after.since:%Y-%m-%d %H:%M} UTC by run {after.run_id[:8]}: {before.told} -> {after.told}; "
            f"before, as of {before.since:%Y-%m-%d %H:%M} UTC, by run {before.run_id[:8]}"
            for before, after in reversed(pairs)
        )
        return (*told, *self.notes)

    def to_json(self) -> dict[str, object]:
        """The form of `clew explain --restated --json`."""
        return {
            "is_restated": self.is_restated,
            "key": {name: json_value(value) for name, value in self.key.items()},
            "stated": [each.to_json() for each in self.stated],
            "notes": list(self.notes),
        }


def value_asked(asked: RowAsked) -> tuple[FoundValue, dict[str, Value]]:
    """The value as the run has it, and all cells of its row. UserError RowNotFound where there is no such row."""
    trace, at = asked.trace, asked.trace.run.checked_step(asked.at if asked.at is not None else asked.trace.run.last)
    ordinal = trace.row_ids.ordinal(asked.row)
    names = [name for name, _ in trace.run.columns(at)]
    cells = None if ordinal is None else next((found for _, found in trace.working(at).values([ordinal], names)), None)
    if cells is None or asked.column not in cells:
        problem = f"the run has no row {asked.row} with a column {asked.column} after step {at}"
        raise UserError(ROW_NOT_FOUND.anywhere(problem=problem))
    return FoundValue(not cells["_deleted"], cells[asked.column]), dict(cells)


def key_asked(asked: RowAsked, other: RunTrace) -> tuple[str, ...] | None:
    """By which columns the row is found in another run; None if rows like it have no key."""
    ordinal = asked.trace.row_ids.ordinal(asked.row)
    assert ordinal is not None  # noqa: S101 - `value_asked` has found it
    at = asked.at if asked.at is not None else asked.trace.run.last
    kind = kinds_of(asked.trace, other, points_of(asked.trace, other, None, at)).of(0, ordinal)
    return kind.key if kind.has_key else None


def value_in(asked: RowAsked, cells: Mapping[str, Value], key: Sequence[str], other: RunTrace) -> FoundValue:
    """What another run has after the same step in the row with the same key.

    UserError if the run has no such step, or if several of its rows have the key.
    """
    at = asked.at if asked.at is not None else asked.trace.run.last
    points = points_of(asked.trace, other, None, at)
    kinds = kinds_of(asked.trace, other, points)
    ordinal = asked.trace.row_ids.ordinal(asked.row)
    assert ordinal is not None  # noqa: S101 - `value_asked` has found it
    mine, types = kinds.of(0, ordinal), dict(other.run.columns(points[1].seq))
    if asked.column not in types or any(name not in types for name in key):
        return FoundValue(is_there=False)
    table = other.plan.input.table
    same = [equals(ColumnValue(table, name, types[name]), cells[name]) for name in key]
    rows = other.working(points[1].seq).matching(all_of([is_not_deleted(table), *same]), [asked.column], other.see)
    found = [values[asked.column] for number, values in rows if kinds.of(1, number) == mine]
    if len(found) > 1:
        raise UserError(ROW_NOT_FOUND.anywhere(problem=f"{len(found)} of its rows have the key of this one"))
    return FoundValue(is_there=True, value=found[0]) if found else FoundValue(is_there=False)


def restatements(
    column: str, key: Mapping[str, Value], states: Sequence[StatedValue], notes: Sequence[str]
) -> Restatements:
    """The values in the order of time, without those that repeat the one before, from the first that has the row."""
    stated = list[StatedValue]()
    for each in sorted(states, key=lambda state: state.since):
        is_first = not stated and not each.found.is_there
        if not is_first and (not stated or stated[-1].found != each.found):
            stated.append(each)
    return Restatements(column, key, tuple(stated), tuple(notes))
