"""Scenarios without Spark: what they give, when they refuse, and that they do what an independent interpreter does."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import clew
from clew.definitions import PeriodTree, load_workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.scenarios import NOT_QUICK
from clew.lang.typed import Value
from clew.plan import Plan
from clew.sample import write_sample
from clew.scenarios.both import differences
from clew.scenarios.judging import Outcome
from clew.scenarios.matching import ScenarioChange, changed_row, created_row
from clew.scenarios.prepared_scenarios import PreparedScenario
from clew.scenarios.quick import quick_outcome
from tests.cli.cli_workspaces import write_workspace
from tests.cli.conftest import Clew
from tests.plan.plan_interpreter import JoinNotUnique
from tests.tiers import examples
from tests.trace.random_projects import PERIOD, compiled, interpreted, projects, tables
from tests.trace.recorded_interpretation import Recorded

TODAY = date(2026, 1, 31)
Data = dict[str, list[dict[str, Any]]]


def prepared(plan: Plan, folder: Path) -> PreparedScenario:
    periods = load_workspace(folder).workspace.periods
    assert isinstance(periods, PeriodTree)
    period = periods.period(PERIOD)
    assert period is not None
    return PreparedScenario(plan, period, periods, TODAY, {})


def as_read(plan: Plan, data: Data) -> Mapping[str, Sequence[Mapping[str, Value]]]:
    """The tables as runs read them: every column, with NULL where a table says nothing."""
    return {
        use.key: [{column.name: row.get(column.name) for column in use.columns} for row in data[use.dataset_id]]
        for use in plan.datasets_read
    }


def told(recorded: Recorded, plan: Plan) -> Outcome:
    """What the interpreter has done, in the words of scenarios."""
    changes = dict[int, list[ScenarioChange]]()
    seqs = sorted(recorded.states)
    changes[0] = [created_row(row) for row in recorded.states[0]]
    for last, seq in pairwise(seqs):
        before, after = recorded.states[last], recorded.states[seq]
        new = {column.name: None for column in plan.columns_after(seq)}
        pairs = zip(before, after, strict=False)
        changed = [changed_row({**new, **old}, row) for old, row in pairs if not old["_deleted"]]
        changes[seq] = [each for each in changed if each] + [created_row(row) for row in after[len(before) :]]
    outputs = {step.seq: (step.columns, recorded.outputs[str(step.seq)]) for step in plan.outputs}
    return Outcome(plan, outputs, lambda seq: changes.get(seq, ()))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(project=projects(), data=tables(), repeated=st.booleans())
def test_random_projects_do_what_the_interpreter_does(project: dict[str, Any], data: Data, repeated: bool) -> None:
    if repeated and data["dim"]:
        data["dim"].append({**data["dim"][0]})
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder), project)
        if plan is None:
            reject()  # the random project makes no sense
        scenario = prepared(plan, Path(folder))
        try:
            expected = told(interpreted(plan, data, TODAY), plan)
        except JoinNotUnique:
            with pytest.raises(UserError) as caught:
                quick_outcome(scenario, as_read(plan, data))
            assert caught.value.code == "JoinNotUnique"
            return
        assert list(differences(expected, quick_outcome(scenario, as_read(plan, data)))) == []


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quick") / "ledger"
    write_sample(folder)
    return folder


def test_all_scenarios_of_the_sample_pass_without_spark(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_environment: object) -> None:
        raise AssertionError("quick needs no Spark")

    monkeypatch.setattr("clew.engine.session.session_of", refuse)
    report = clew.open(sample).test(on="quick")
    assert (report.count("pass"), report.is_ok) == (8, True)
    assert report.spark_seconds == 0


def test_a_wrong_expectation_fails_and_says_what_is_different(clew: Clew, sample: Path, tmp_path: Path) -> None:
    text = (sample / "scenarios/reclassify-travel.yaml").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace('new: "5290"', 'new: "5291"'), encoding="utf-8")
    answer = clew("test", "--quick", wrong, cwd=sample)
    assert answer.code == 1
    assert "- account_code  5210 -> 5291\n    + account_code  5210 -> 5290" in answer.out


SCENARIO = """
name: one
period: "2026"
periods: [{identifier: "2026", level: year, start_date: 2026-01-01, end_date: 2026-12-31}]
today: 2026-02-03
datasets: [{id: sales, rows: [{shop: a, amount: 2.00, _period: "2026"}, {shop: a, amount: 0.00, _period: "2026"}]}]
project:
  id: inline
  input_dataset: sales
  CHECKS
  operations:
    - {seq: 1, name: Set, type: update, arguments: {assignments: [{column: x, expression: 'EXPRESSION'}]}}
    - {seq: 2, name: Write, type: output, arguments: {destination: {location: {path: out}}, columns: [shop, x]}}
EXPECTED
"""


def one(clew: Clew, folder: Path, expression: str, expected: str, checks: str = "") -> dict[str, Any]:
    text = SCENARIO.replace("EXPRESSION", expression).replace("EXPECTED", expected).replace("CHECKS", checks)
    write_workspace(folder, {"scenarios/one.yaml": text})
    [result] = clew("test", "--quick", "--json").json["scenarios"]
    assert isinstance(result, dict)
    return result


def test_today_is_the_day_that_the_scenario_names(clew: Clew, tmp_path: Path) -> None:
    expected = "expected_output: {rows: [{shop: a, x: 2026-02-03}, {shop: a, x: 2026-02-03}]}"
    assert one(clew, tmp_path, "TODAY()", expected)["status"] == "pass"


def test_what_only_a_run_on_spark_makes_up_is_refused_and_not_called_passed(clew: Clew, tmp_path: Path) -> None:
    result = one(clew, tmp_path, "_row_id", "expected_output: {rows: [], match: subset}")
    assert (result["status"], result["error"]["code"]) == ("error", "NotQuick")
    assert 'step 1 "Set" reads _row_id' in result["error"]["message"]


def test_an_error_of_a_step_has_its_place(clew: Clew, tmp_path: Path) -> None:
    failing = one(clew, tmp_path, "TO_INTEGER(shop)", "expected_output: {rows: [], match: subset}")
    assert (failing["status"], failing["error"]["line"]) == ("error", 12)
    code = failing["error"]["code"]
    assert one(clew, tmp_path, "TO_INTEGER(shop)", f"expected_error: {{code: {code}}}")["status"] == "pass"


@pytest.mark.parametrize(
    "check",
    ["unique: [shop]", "range: {column: amount, min: 1}", "expression: amount > 0", "total: SUM(amount) > 5"],
)
def test_a_check_that_stops_runs_stops_quick_scenarios(clew: Clew, tmp_path: Path, check: str) -> None:
    checks = f"checks: [{{{check}, name: c}}]"
    stopped = one(clew, tmp_path, "amount", "expected_error: {code: CheckFailed}", checks)
    assert stopped["status"] == "pass", stopped
    assert one(clew, tmp_path, "amount", "expected_error: {code: CheckFailed}")["status"] == "fail"


def test_comparing_is_for_quick(clew: Clew, tmp_path: Path) -> None:
    write_workspace(tmp_path, {})
    answer = clew("test", "--compare")
    assert "add --quick" in answer.err


def test_differences_name_rows_changes_and_errors() -> None:
    row = {"id": 1, "_deleted": False}
    with tempfile.TemporaryDirectory() as folder:
        operation = {"seq": 3, "name": "s", "type": "update"}
        operation["arguments"] = {"assignments": [{"column": "k", "expression": "k + 1"}]}
        project = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main"}
        plan = compiled(Path(folder), {**project, "operations": [operation]})
    assert plan is not None
    spark = Outcome(plan, {}, lambda seq: [created_row(row)] if seq == 0 else [])
    quick = replace(spark, changes=lambda _seq: [])
    assert [each.message for each in differences(spark, quick)] == ["only Spark has this row"]
    assert [each.message for each in differences(quick, spark)] == ["only quick has this row"]
    assert list(differences(spark, spark)) == []
    failed = UserError(NOT_QUICK.anywhere(reason="x"))
    assert [each.message for each in differences(failed, spark)] == ["Spark: NotQuick; quick: completes"]
