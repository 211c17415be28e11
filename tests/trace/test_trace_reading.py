"""The trace of random projects against an interpreter that keeps every state."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.lang.evaluation import Row, evaluator
from clew.plan.operations import DeleteStep, OutputStep, UpdateStep
from clew.trace.reader import RunTrace
from tests.trace.random_projects import compiled, interpreted, projects, tables
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import TODAY, Style, Writer

STYLES = st.builds(
    Style,
    files=st.integers(1, 3),
    row_group=st.sampled_from([1, 2, 5, 100]),
    longest_part=st.integers(1, 4),
    keeps_unchanged=st.booleans(),
    states=st.frozensets(st.integers(0, 3), max_size=2),
    shuffle=st.none() | st.integers(0, 9),
    full_masks=st.booleans(),
)


@contextmanager
def written(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> Iterator[tuple[Recorded, list[str], RunTrace]]:
    """An interpretation, the row ids of its rows by index, and its trace."""
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assume(plan is not None)
        assert plan is not None
        recorded = interpreted(plan, data, TODAY)
        writer = Writer(Path(folder, "storage [1]"), recorded, style)
        trace = writer.write()
        yield recorded, [trace.row_ids.row_id(ordinal) for ordinal in writer.ordinals], trace
        trace.close()


@settings(max_examples=15)
@given(projects(), tables(), STYLES)
def test_the_state_of_every_row_after_every_step_is_what_the_pipeline_held(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with written(project, data, style) as (recorded, row_ids, trace):
        for seq, states in recorded.states.items():
            held = dict(zip(row_ids, states, strict=False))
            assert {row_id: trace.state(row_id, seq).state for row_id in held} == held
            page = trace.search(None, at=seq, limit=1_000)
            assert {row.row_id: row.state for row in page.rows} == held
            for row_id in row_ids[len(states) :]:
                absent = trace.state(row_id, seq)
                assert absent.state is None
                assert absent.diagnostic is not None
                assert absent.diagnostic.code == "RowNotFound"


@settings(max_examples=15)
@given(projects(), tables(), STYLES, st.integers(1, 5))
def test_the_records_of_a_step_are_exactly_the_rows_that_differ(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style, limit: int
) -> None:
    with written(project, data, style) as (recorded, row_ids, trace):
        for step in recorded.plan.steps:
            before, after = recorded.before(step), recorded.states[step.seq]
            expected = dict[str, tuple[str, Any, Any]]()
            for row_id, old, new in zip(row_ids, before, after, strict=False):
                changed = [name for name in new if old.get(name) != new[name]]
                if changed and isinstance(step, DeleteStep):
                    expected[row_id] = ("deleted", {"_deleted": False}, None)
                elif changed:
                    assert isinstance(step, UpdateStep)
                    values = {name: old.get(name) for name in changed}, {name: new[name] for name in changed}
                    expected[row_id] = ("updated", *values)
            for row_id, new in list(zip(row_ids, after, strict=False))[len(before) :]:
                expected[row_id] = ("created", None, new)
            assert records(trace, step.seq, limit) == expected
            if isinstance(step, OutputStep):
                assert expected == {}


def records(trace: RunTrace, seq: int, limit: int) -> dict[str, tuple[str, Any, Any]]:
    found = dict[str, tuple[str, Any, Any]]()
    after = None
    while True:
        page = trace.step_rows(seq, limit, after)
        assert len(page.records) <= limit
        for record in page.records:
            assert record.row_id not in found
            assert record.operation_seq == seq
            found[record.row_id] = (record.change_type, record.before, record.after)
        if not page.has_more:
            return found
        after = page.records[-1].row_id


@settings(max_examples=15)
@given(projects(), tables(), STYLES)
def test_a_history_has_one_entry_for_each_step_that_touched_the_row(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with written(project, data, style) as (recorded, row_ids, trace):
        for index, row_id in enumerate(row_ids):
            history = trace.history(row_id)
            born = next(seq for seq, states in recorded.states.items() if index < len(states))
            expected = [(born, "created", recorded.states[born][index])]
            for step in recorded.plan.steps:
                if step.seq > born:
                    old, new = recorded.before(step)[index], recorded.states[step.seq][index]
                    if any(old.get(name) != value for name, value in new.items()):
                        kind = "deleted" if isinstance(step, DeleteStep) else "updated"
                        expected.append((step.seq, kind, new))
            assert [(entry.operation_seq, entry.change_type, entry.full_state) for entry in history.entries] == expected
            for earlier, entry in zip(history.entries, history.entries[1:], strict=False):
                assert entry.diff
                for name, diff in entry.diff.items():
                    assert diff.old == earlier.full_state.get(name)
                    assert diff.new == entry.full_state[name]
                    assert diff.old != diff.new


@settings(max_examples=15)
@given(projects(), tables(), STYLES)
def test_counts_by_step_and_column_are_those_of_the_records(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with written(project, data, style) as (recorded, _row_ids, trace):
        for step, summary in zip(recorded.plan.steps, trace.counts(), strict=True):
            found = list(records(trace, step.seq, 100).values())
            kinds = [kind for kind, _, _ in found]
            counted = (summary.updated, summary.created, summary.deleted)
            assert counted == (kinds.count("updated"), kinds.count("created"), kinds.count("deleted"))
            assert (summary.operation_seq, summary.step_name, summary.step_type) == (step.seq, step.name, step.type)
            for name, count in (summary.columns or {}).items():
                assert count == sum(name in before for _, before, _ in found if before is not None)


CONDITIONS = [
    'currency = "EUR" AND amount > 1',
    'amount IN (1.5, NULL, 99.99) OR currency = ""',
    "amount <> 1.505",
    "NOT (amount <= 0)",
    "k >= 2.5",
    "2 < k",
    'day < DATE("2026-01-15") AND NOT flag',
    "flag",
    "share >= 0.25",
    'at > DATE("2025-06-01")',
    '_labels = "" AND NOT _deleted',
    "_deleted",
    '_period = "2026-01" AND currency IS NOT NULL',
    'CONTAINS(currency, "E") AND amount IS NOT NULL',
    'STARTSWITH(currency, "") OR ENDSWITH(currency, "+")',
    "currency IN (NULL)",
    "day = TODAY()",
    "amount = k",
    "k = 99999999999999999999",
    "NULL",
    "amount < 0.001",
]


@settings(max_examples=15)
@given(projects(), tables(), STYLES, st.sampled_from(CONDITIONS), st.integers(1, 4))
def test_a_search_gives_exactly_the_rows_for_which_the_condition_is_true(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style, where: str, limit: int
) -> None:
    with written(project, data, style) as (recorded, row_ids, trace):
        for seq, states in recorded.states.items():
            decide = evaluator(trace.condition(where, seq))
            expected = [
                row_id
                for row_id, state in zip(row_ids, states, strict=False)
                if decide(Row({"t": state}, TODAY)) is True
            ]
            found, after = list[str](), None
            while True:
                page = trace.search(where, at=seq, limit=limit, after=after)
                found += [row.row_id for row in page.rows]
                if not page.has_more:
                    break
                after = page.rows[-1].row_id
            assert found == sorted(expected)
