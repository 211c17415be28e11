"""Compares expected rows with actual rows, and expected changes with the trace."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from clew.deferred import dataclass
from clew.definitions import ExpectedOutput, ExpectedTrace, Match, Scenario
from clew.plan import Plan
from clew.trace.reader import RunTrace
from clew.trace.records import Diff, RowValues, StepRecord

ScenarioRow = Mapping[str, object]

_SYSTEM = frozenset({"_row_id", "_period", "_labels", "_deleted", "_trace_id"})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which an output is not what was expected."""

    kind: str
    """missing row, extra row, value mismatch, missing column, extra column, order, trace or error."""
    where: str
    expected: ScenarioRow | None = None
    actual: ScenarioRow | None = None
    columns: tuple[str, ...] = ()
    message: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `test --json`."""
        return {
            "kind": self.kind,
            "where": self.where,
            "expected": _plain(self.expected),
            "actual": _plain(self.actual),
            "columns": list(self.columns),
            "message": self.message,
        }


def compare(
    where: str, expected: ExpectedOutput, actual: Sequence[ScenarioRow], columns: Sequence[str]
) -> list[Mismatch]:
    """What is different. Values compare by what they are, not by how they are written: 15000.00 is 15000.

    System columns count only where an expected row names them.
    """
    problems = _column_problems(where, expected, columns)
    if problems:
        return problems
    if expected.ordered:
        return _in_order(where, expected, actual)
    return _in_any_order(where, expected, actual)


def _column_problems(where: str, expected: ExpectedOutput, columns: Sequence[str]) -> list[Mismatch]:
    named = dict.fromkeys(name for row in expected.rows for name in row)
    missing = tuple(name for name in named if name not in columns)
    found = []
    if missing:
        found.append(Mismatch("missing column", where, columns=missing))
    if expected.match is Match.EXACT and expected.rows:
        extra = tuple(name for name in columns if name not in named and name not in _SYSTEM)
        if extra:
            found.append(Mismatch("extra column", where, columns=extra))
    return found


def _in_order(where: str, expected: ExpectedOutput, actual: Sequence[ScenarioRow]) -> list[Mismatch]:
    found = list[Mismatch]()
    for index, row in enumerate(expected.rows):
        if index >= len(actual):
            found.append(Mismatch("missing row", where, expected=row))
        else:
            different = _differing(row, actual[index], expected.match)
            if different:
                found.append(Mismatch("value mismatch", f"{where}, row {index + 1}", row, actual[index], different))
    if expected.match is Match.EXACT:
        found += [Mismatch("extra row", where, actual=row) for row in actual[len(expected.rows) :]]
    return found


def _in_any_order(where: str, expected: ExpectedOutput, actual: Sequence[ScenarioRow]) -> list[Mismatch]:
    """Equal rows are paired first; what is left over is paired with the nearest, to show the columns that differ."""
    left: list[ScenarioRow] = list(actual)
    unmatched = list[ScenarioRow]()
    for row in expected.rows:
        match = next((index for index, other in enumerate(left) if not _differing(row, other, expected.match)), None)
        if match is None:
            unmatched.append(row)
        else:
            left.pop(match)
    found = list[Mismatch]()
    for missing in unmatched:
        differing = [_differing(missing, other, expected.match) for other in left]
        near = min(range(len(left)), key=lambda index: len(differing[index]), default=None)
        if near is not None and 2 * len(differing[near]) <= len(missing):
            found.append(Mismatch("value mismatch", where, missing, left.pop(near), differing[near]))
        else:
            found.append(Mismatch("missing row", where, expected=missing))
    if expected.match is Match.EXACT:
        found += [Mismatch("extra row", where, actual=row) for row in left]
    return found


def _differing(expected: ScenarioRow, actual: ScenarioRow, match: Match) -> tuple[str, ...]:
    """The columns whose values differ. A column that an exact row leaves out is expected to be NULL."""
    names = dict.fromkeys(expected)
    if match is Match.EXACT:
        names |= dict.fromkeys(name for name in actual if name not in _SYSTEM)
    return tuple(name for name in names if not same_value(expected.get(name), actual.get(name)))


def same_value(expected: object, actual: object) -> bool:
    """Whether two values are the same by type: numbers by value, dates by day, strings exactly."""
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(actual, float):
        if math.isnan(actual):
            return isinstance(expected, int | float | Decimal) and math.isnan(expected)
        return isinstance(expected, int | float | Decimal) and Decimal(repr(actual)) == Decimal(str(expected))
    if isinstance(actual, int | Decimal):
        return isinstance(expected, int | Decimal | float) and Decimal(str(expected)) == Decimal(actual)
    if isinstance(actual, datetime):
        return _moment(expected) == actual
    if isinstance(actual, date):
        return str(expected) == actual.isoformat()
    return expected == actual or (isinstance(expected, date) and expected.isoformat() == actual)


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - timestamps of rows have no zone
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _plain(row: ScenarioRow | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        name: value if value is None or isinstance(value, bool | int | float | str) else str(value)
        for name, value in row.items()
    }


LOADING = 0
_ALL = 1_000_000
"""More rows than a scenario has."""


@dataclass(frozen=True, slots=True)
class ScenarioChange:
    """What a step did to one row."""

    change_type: str
    before: RowValues
    after: RowValues
    diff: Mapping[str, Diff]

    def is_of(self, wanted: ScenarioRow) -> bool:
        """Whether the row has these values, as it is after the step or as it was before it."""
        return _has(self.after, wanted) or _has(self.before, wanted)


Changes = Callable[[int], Sequence[ScenarioChange]]
"""What a step did, by its seq; 0 is loading."""


def trace_mismatches(scenario: Scenario, plan: Plan, changes: Changes) -> list[Mismatch]:
    """What a trace lacks of the changes that a scenario expects."""
    known = {LOADING, *(step.seq for step in plan.steps)}
    found = list[Mismatch]()
    read = dict[int, Sequence[ScenarioChange]]()
    for expected in scenario.expected_trace:
        seq = expected.operation_seq
        if seq not in known:
            found.append(Mismatch("trace", f"step {seq}", message=f"the project has no operation with seq {seq}"))
            continue
        if seq not in read:
            read[seq] = changes(seq)
        found += _compare(expected, read[seq])
    return found


def changes_in(trace: RunTrace, seq: int) -> list[ScenarioChange]:
    """What a step did, according to a trace."""
    return _loaded(trace) if seq == LOADING else _changes(trace, seq)


def created_row(state: RowValues) -> ScenarioChange:
    """A row that is new."""
    return ScenarioChange("created", {}, state, _new(state))


def changed_row(before: RowValues, after: RowValues) -> ScenarioChange | None:
    """What has become of a row; None where nothing has."""
    if after["_deleted"] and not before["_deleted"]:
        return _deleted_row(after)
    diff = {name: Diff(before.get(name), value) for name, value in after.items() if _differs(before.get(name), value)}
    return ScenarioChange("updated", before, after, diff) if diff else None


def _deleted_row(after: RowValues) -> ScenarioChange:
    return ScenarioChange("deleted", after, after, {"_deleted": Diff(old=False, new=True)})


def _differs(old: object, new: object) -> bool:
    both_nan = isinstance(old, float) and isinstance(new, float) and math.isnan(old) and math.isnan(new)
    return not both_nan and (old is None or new is None or old != new) and old is not new


def _loaded(trace: RunTrace) -> list[ScenarioChange]:
    return [created_row(row.state) for row in trace.search(None, at=LOADING, limit=_ALL).rows]


def _changes(trace: RunTrace, seq: int) -> list[ScenarioChange]:
    records = trace.step_rows(seq, limit=_ALL).records
    if not records:
        return []
    states = {row.row_id: row.state for row in trace.search(None, at=seq, limit=_ALL).rows}
    return [_change(record, states[record.row_id]) for record in records]


def _change(record: StepRecord, after: RowValues) -> ScenarioChange:
    match record.change_type:
        case "created":
            return created_row(after)
        case "deleted":
            return _deleted_row(after)
        case "updated":
            old, new = record.before or {}, record.after or {}
            diff = {name: Diff(old.get(name), value) for name, value in new.items()}
            return ScenarioChange("updated", {**after, **old}, after, diff)


def _new(state: RowValues) -> dict[str, Diff]:
    return {name: Diff(None, value) for name, value in state.items()}


def _compare(expected: ExpectedTrace, changes: Sequence[ScenarioChange]) -> list[Mismatch]:
    """Nothing, or the reason why no row has the expected change: no such row, another kind of change, other values."""
    where = f"trace of step {expected.operation_seq}"
    rows = [change for change in changes if change.is_of(expected.row_match)]
    if not rows:
        touched = f"it touched {len(changes)} others" if changes else "it touched none"
        message = f"no row with these values was {expected.change_type}; {touched}"
        return [Mismatch("trace", where, expected=expected.row_match, message=message)]
    kinds = {change.change_type for change in rows}
    same_kind = [change for change in rows if change.change_type == expected.change_type]
    if not same_kind:
        message = f"the row was {' and '.join(sorted(kinds))}, not {expected.change_type}"
        return [Mismatch("trace", where, expected=expected.row_match, message=message)]
    wrong = [_wrong_columns(expected, change) for change in same_kind]
    fewest = min(range(len(wrong)), key=lambda index: len(wrong[index]))
    if not wrong[fewest]:
        return []
    columns = wrong[fewest]
    diffs = same_kind[fewest].diff
    return [
        Mismatch(
            "trace",
            where,
            expected={
                name: _arrow(diff.old, diff.new) if (diff := expected.expected_diff.get(name)) else "unchanged"
                for name in columns
            },
            actual={
                name: _arrow(diffs[name].old, diffs[name].new) if name in diffs else "unchanged" for name in columns
            },
            columns=columns,
        )
    ]


def _wrong_columns(expected: ExpectedTrace, change: ScenarioChange) -> tuple[str, ...]:
    """The columns whose changes differ; in an exact diff also those that changed and are not in it."""
    by_default = Match.SUBSET if change.change_type == "created" else Match.EXACT
    is_exact = bool(expected.expected_diff) and (expected.match or by_default) is Match.EXACT
    unexpected = (name for name in change.diff if is_exact and name not in expected.expected_diff)
    return (*unexpected, *_different(expected, change))


def _different(expected: ExpectedTrace, change: ScenarioChange) -> tuple[str, ...]:
    return tuple(
        name
        for name, diff in expected.expected_diff.items()
        if name not in change.diff
        or not same_value(diff.old, change.diff[name].old)
        or not same_value(diff.new, change.diff[name].new)
    )


def _arrow(old: object, new: object) -> str:
    return f"{_shown(old)} -> {_shown(new)}"


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value)


def _has(state: RowValues, wanted: ScenarioRow) -> bool:
    return bool(state) and all(name in state and same_value(value, state[name]) for name, value in wanted.items())
