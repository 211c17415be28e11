"""What an edited project would have made of a run: the same as a run of the edited project."""

import copy
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from clew.change.impact import PlanImpact, failing, impact_of
from clew.diagnostics import UserError
from clew.plan import Plan
from clew.trace.reader import RunTrace
from tests.change.random_pairs import Data, all_clear
from tests.change.test_change_what_if import OUTPUT, PROJECT, answered, written_rows
from tests.tiers import examples
from tests.trace.random_projects import compiled, interpreted, projects, tables
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import TODAY, Style, Writer

COLUMNS = ["k", "amount", "currency", "_labels"]


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], Data]:
    """A project and the same one edited: operations dropped, moved, taken from another project, or rewritten."""
    project = draw(projects(most_steps=5))
    project["operations"].append(copy.deepcopy(OUTPUT))
    other = copy.deepcopy(project)
    body = other["operations"][:-1]
    kind = draw(st.sampled_from(["drop", "move", "replace", "add", "selector", "columns"]))
    more = draw(projects(most_steps=3))["operations"]
    place = draw(st.integers(0, max(0, len(body) - 1)))
    if kind == "drop" and body:
        del body[place]
    elif kind == "move" and body:
        body.insert(draw(st.integers(0, len(body) - 1)), body.pop(place))
    elif kind == "replace" and body:
        body[place : place + 1] = more
    elif kind == "add":
        body[place:place] = more
    elif kind == "selector":
        other["operations"][-1]["selector"] = draw(st.sampled_from(["flag", "amount IS NULL", "TRUE"]))
    elif kind == "columns":
        other["operations"][-1]["arguments"]["include_deleted"] = True
    for number, operation in enumerate(body):
        operation["seq"] = number + 1
        if operation.get("name", "").startswith("step"):
            operation["name"] += f" of {kind}" if operation in more else ""
    other["operations"][:-1] = body
    last = str(len(body)) if body else "load"
    if draw(st.booleans()):
        other["checks"] = [
            {"name": "small", "at": last, "expression": "amount < 50", "where": 'currency <> "x"'},
            {"name": "one", "at": last, "unique": ["currency", "flag"]},
            {"name": "much", "at": last, "total": "SUM(amount) > 10"},
            {"name": "ties", "at": last, "total": {"expression": "COUNT_ALL()", "equals": "COUNT(k)", "tolerance": 1}},
            {"name": "loaded", "at": "load", "expression": "k >= 0"},
        ]
    return project, other, draw(tables())


def tried(trace: RunTrace, plan: Plan, limit: int = 10) -> PlanImpact:
    return impact_of(trace, plan, (all_clear(),), limit=limit)


def without_work(found: PlanImpact | None) -> list[object]:
    """Outputs without how much had to be evaluated for them."""
    outputs = () if found is None else found.outputs
    return [
        replace(each, difference=None if each.difference is None else replace(each.difference, evaluated=0)).to_json()
        for each in outputs
    ]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(edits(), STYLES)
def test_it_is_what_a_run_of_the_edited_project_gives(
    tmp_path_factory: pytest.TempPathFactory, case: Any, style: Style
) -> None:
    project, edited, data = case
    folder: Path = tmp_path_factory.mktemp("impact")
    plan, other = compiled(folder / "a", project), compiled(folder / "b", edited)
    assume(plan is not None and other is not None)
    assert plan is not None
    assert other is not None
    read = {use.dataset_id for use in plan.datasets_read}
    assume({use.dataset_id for use in other.datasets_read} <= read)
    recorded = interpreted(plan, data, TODAY)
    writer = Writer(folder / "storage", recorded, style)
    trace = writer.write()
    expected = written_rows(other, data)
    found = answered(lambda: tried(trace, other, limit=10_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.change.impact.MOST_SINGLE", 0)
        at_once = answered(lambda: tried(trace, other, limit=10_000))
    trace.close()
    assert without_work(at_once) == without_work(found)
    assert (expected is None) == (found is None)
    if expected is None or found is None:
        return
    [output] = found.outputs
    assert output.difference is not None
    rows = Counter(tuple(row.values()) for row in recorded.outputs["1000"])
    states = dict(zip((trace.row_ids.row_id(each) for each in writer.ordinals), recorded.states[1000], strict=True))
    for row in output.difference.rows:
        old = states[row.row_a] if row.row_a is not None else {}
        if row.change != "only_in_b":
            rows[tuple(old[name] for name in COLUMNS)] -= 1
        if row.change != "only_in_a":
            rows[tuple(row.columns[name].new if name in row.columns else old[name] for name in COLUMNS)] += 1
    assert {row: count for row, count in rows.items() if count} == dict(expected)
    assert output.difference.rows_after == sum(expected.values())
    by_seq = interpreted(other, data, TODAY).states
    for check in found.checks:
        living = [row for row in by_seq[check.at] if not row["_deleted"]]
        assert (check.passes, check.failed_rows) == by_hand(check.name, living), check.name
    assert len(found.checks) == len(other.checks)


def by_hand(check: str, rows: list[dict[str, Any]]) -> tuple[bool, int | None]:
    """Whether a check passes, and how many rows fail."""
    amounts = [row["amount"] for row in rows if row["amount"] is not None]
    if check == "much":
        return bool(amounts) and sum(amounts) > 10, None
    if check == "ties":
        return sum(row["k"] is None for row in rows) <= 1, None
    if check == "one":
        keys = Counter((row["currency"], row["flag"]) for row in rows)
        failed = sum(count for key, count in keys.items() if count > 1 and None not in key)
    elif check == "small":
        tested = [row for row in rows if row["currency"] is not None and row["currency"] != "x"]
        failed = sum(row["amount"] is not None and row["amount"] >= 50 for row in tested)
    else:
        failed = sum(row["k"] is not None and row["k"] < 0 for row in rows)
    return failed == 0, failed


@pytest.fixture
def trace(tmp_path: Path) -> RunTrace:
    plan = compiled(tmp_path / "w", PROJECT)
    assert plan is not None
    rows = [
        {"k": number, "amount": number, "currency": ("EUR", "USD")[number % 2], "_period": "2026-01"}
        for number in range(6)
    ]
    dim = [{"code": code, "rate": rate, "label": code} for code, rate in (("EUR", 2), ("USD", 1))]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    return Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write()


def edited_plan(folder: Path, change: Any) -> Plan:
    project = copy.deepcopy(PROJECT)
    change(project["operations"])
    plan = compiled(folder / "edited", project)
    assert plan is not None
    return plan


def test_a_project_that_was_not_edited_changes_nothing(trace: RunTrace, tmp_path: Path) -> None:
    found = tried(trace, edited_plan(tmp_path, lambda _: None))
    assert found.is_same
    assert (found.reused, [each.fate for each in found.steps]) == (2, ["same", "same"])
    assert [each.difference.evaluated for each in found.outputs if each.difference] == [0]
    assert failing(found, "ABS(delta) > 0 OR rows_changed > 0") == ()


def test_a_step_that_differs_is_named_with_the_totals_that_move(trace: RunTrace, tmp_path: Path) -> None:
    def add(operations: list[Any]) -> None:
        operations.insert(
            1,
            {
                "seq": 2,
                "name": "Waive",
                "type": "update",
                "selector": "k = 4",
                "arguments": {"assignments": [{"column": "amount", "expression": "0"}]},
            },
        )

    found = tried(trace, edited_plan(tmp_path, add))
    assert [(each.name, each.fate) for each in found.steps] == [
        ("Convert", "same"),
        ("Waive", "added"),
        ("out", "same"),
    ]
    assert found.reused == 1
    [output] = found.outputs
    assert [(each.name, str(each.difference)) for each in output.moved] == [("amount", "-8.00")]
    assert failing(found, "delta < -5") == ("1000 out: amount -8.00",)
    assert failing(found, "delta < -8") == ()
    assert failing(found, 'column = "amount" AND rows_changed = 1') == ("1000 out: amount -8.00",)
    told = found.to_markdown()
    assert 'operation 2 "Waive" added' in told
    assert "| amount | 21.00 | 13.00 | -8.00 |" in told


def test_outputs_that_only_one_of_both_writes_are_said_so(trace: RunTrace, tmp_path: Path) -> None:
    def rename(operations: list[Any]) -> None:
        operations[-1] = {**operations[-1], "name": "elsewhere", "seq": 2000}
        operations.append({**copy.deepcopy(PROJECT["operations"][-1]), "name": "out", "seq": 3000})
        operations[-1]["arguments"] = {**operations[-1]["arguments"], "columns": ["k", "currency"]}
        operations[-1]["arguments"]["destination"] = {"location": {"format": "parquet", "path": "other"}}

    found = tried(trace, edited_plan(tmp_path, rename))
    assert [(each.name, each.fate) for each in found.outputs] == [("elsewhere", "added"), ("out", "changed")]
    assert found.outputs[0].difference is None
    assert found.outputs[1].columns_removed == ("amount", "_labels")
    assert not found.is_same


def test_a_project_that_reads_what_the_run_did_not_is_refused(trace: RunTrace, tmp_path: Path) -> None:
    def append(operations: list[Any]) -> None:
        operations.insert(
            1,
            {
                "seq": 2,
                "name": "More",
                "type": "append",
                "arguments": {"source": {"dataset_id": "extra"}},
            },
        )

    project = copy.deepcopy(PROJECT)
    append(project["operations"])
    plan = compiled(tmp_path / "edited", project)
    if plan is None:
        pytest.fail("the project with an append does not compile")
    with pytest.raises(UserError) as refused:
        tried(trace, plan)
    assert [each.code for each in refused.value.diagnostics] == ["NotRecomputable"]


@pytest.mark.parametrize("condition", ["delta +", "nothing > 1", "delta + 1"])
def test_a_condition_that_is_none_is_refused(trace: RunTrace, tmp_path: Path, condition: str) -> None:
    found = tried(trace, edited_plan(tmp_path, lambda _: None))
    with pytest.raises(UserError):
        failing(found, condition)
