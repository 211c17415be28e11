"""Expected changes against the trace."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.app.scenarios.matching import Mismatch, Row, same_value
from clew.model import ExpectedTrace, Scenario
from clew.trace.reader import RunTrace
from clew.trace.records import Diff, State, StepRecord

LOADING = 0
_ALL = 1_000_000
"""More rows than a scenario has."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What a step did to one row."""

    change_type: str
    before: State
    after: State
    diff: Mapping[str, Diff]

    def is_of(self, wanted: Row) -> bool:
        """Whether the row has these values, as it is after the step or as it was before it."""
        return _has(self.after, wanted) or _has(self.before, wanted)


def trace_mismatches(scenario: Scenario, trace: RunTrace) -> list[Mismatch]:
    """What the trace lacks of the changes that a scenario expects."""
    known = {LOADING, *(step.seq for step in trace.plan.steps)}
    found = list[Mismatch]()
    changes = dict[int, list[_Change]]()
    for expected in scenario.expected_trace:
        seq = expected.operation_seq
        if seq not in known:
            found.append(Mismatch("trace", f"step {seq}", message=f"the project has no operation with seq {seq}"))
            continue
        if seq not in changes:
            changes[seq] = _loaded(trace) if seq == LOADING else _changes(trace, seq)
        found += _compare(expected, changes[seq])
    return found


def _loaded(trace: RunTrace) -> list[_Change]:
    return [
        _Change("created", {}, row.state, _new(row.state)) for row in trace.search(None, at=LOADING, limit=_ALL).rows
    ]


def _changes(trace: RunTrace, seq: int) -> list[_Change]:
    records = trace.step_rows(seq, limit=_ALL).records
    if not records:
        return []
    states = {row.row_id: row.state for row in trace.search(None, at=seq, limit=_ALL).rows}
    return [_change(record, states[record.row_id]) for record in records]


def _change(record: StepRecord, after: State) -> _Change:
    match record.change_type:
        case "created":
            return _Change("created", {}, after, _new(after))
        case "deleted":
            return _Change("deleted", after, after, {"_deleted": Diff(old=False, new=True)})
        case "updated":
            old, new = record.before or {}, record.after or {}
            diff = {name: Diff(old.get(name), value) for name, value in new.items()}
            return _Change("updated", {**after, **old}, after, diff)


def _new(state: State) -> dict[str, Diff]:
    return {name: Diff(None, value) for name, value in state.items()}


def _compare(expected: ExpectedTrace, changes: list[_Change]) -> list[Mismatch]:
    """Nothing, or the reason why no row has the expected change: no such row, another kind of change, other values."""
    where = f"trace of step {expected.operation_seq}"
    rows = [change for change in changes if change.is_of(expected.row_match)]
    if not rows:
        touched = f"it touched {len(changes)} others" if changes else "it touched none"
        message = f"no row was {expected.change_type} that has these values; {touched}"
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
                name: _arrow(expected.expected_diff[name].old, expected.expected_diff[name].new) for name in columns
            },
            actual={
                name: _arrow(diffs[name].old, diffs[name].new) if name in diffs else "unchanged" for name in columns
            },
            columns=columns,
        )
    ]


def _wrong_columns(expected: ExpectedTrace, change: _Change) -> tuple[str, ...]:
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


def _has(state: State, wanted: Row) -> bool:
    return bool(state) and all(name in state and same_value(value, state[name]) for name, value in wanted.items())
