"""Scenarios cut out of runs: they reproduce a row, fail where the project is broken, and keep personal values back."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import clew
from clew.auth.roles import AccessRole
from clew.definitions import Environment, LoadedWorkspace, load_scenarios, load_workspace
from clew.diagnostics import UserError
from clew.lang.typed import Value
from clew.plan import Plan
from clew.privacy.eyes import RunEyes
from clew.privacy.policy import PrivacyPolicy
from clew.scenarios.cutting import CutQuestion, ScenarioCut, cut_scenario
from clew.scenarios.quick import QuickRunner
from clew.scenarios.scenario_results import ScenarioResult
from clew.scenarios.stand_ins import stand_ins
from clew.trace.reader import RunTrace
from tests.cli.conftest import Clew
from tests.plan.plan_interpreter import JoinNotUnique
from tests.tiers import examples
from tests.trace.interpreted_shop import Ran, ran_shop
from tests.trace.random_projects import compiled, interpreted, projects, tables, write_workspace
from tests.trace.trace_writer import TODAY, Writer


def eyes(plan: Plan, role: AccessRole = AccessRole.ADMIN, **settings_: Any) -> RunEyes:
    policy = PrivacyPolicy.of("dev", Environment(**settings_), role, marks={}, salt=lambda: "")
    return RunEyes.of(policy, plan)


def run(loaded: LoadedWorkspace, cut: ScenarioCut) -> ScenarioResult:
    """The text of a scenario, as quick finds it."""
    with tempfile.TemporaryDirectory() as folder:
        found = load_scenarios(loaded, [cut.write(Path(folder, "cut.yaml"))])
    assert found.diagnostics == (), found.diagnostics
    [result] = QuickRunner(found.workspace).run(found.workspace.scenarios)
    return result


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(project=projects(), data=tables(), which=st.integers(0, 1_000))
def test_cut_scenarios_of_random_runs_reproduce(project: dict[str, Any], data: Any, which: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder), project)
        if plan is None:
            reject()  # the random project makes no sense
        try:
            recorded = interpreted(plan, data, TODAY)
        except JoinNotUnique:
            reject()  # the run would have failed
        writer = Writer(Path(folder, "storage"), recorded)
        trace = writer.write()
        if not writer.ordinals:
            reject()  # there is no row to cut out
        try:
            place = which % len(writer.ordinals)
            question = CutQuestion(trace.row_ids.row_id(writer.ordinals[place]), "one of them", with_group=True)
            loaded = load_workspace(Path(folder))
            cut = cut_scenario(trace, eyes(plan), loaded, question)
            result = run(loaded, cut)
            assert result.status == "pass", (result, cut.text)
            assert sum(cut.rows.values()) <= sum(map(len, data.values()))
        finally:
            trace.close()


# Personal values


PATIENTS = {
    "main": {
        "table": "t",
        "mode": "none",
        "key": ["k"],
        "columns": {"k": "integer", "name": "string", "born": "date", "fee": "decimal(12,2)"},
    },
    "dim": {"table": "dim", "mode": "none", "columns": {"who": "string", "rate": "decimal(12,2)"}},
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "main": [
        {"k": 1, "name": "Ann Bell", "born": date(1984, 3, 5), "fee": Decimal("10.00")},
        {"k": 2, "name": "Zoe Oakes", "born": date(1991, 3, 5), "fee": Decimal("20.00")},
    ],
    "dim": [{"who": "Ann Bell", "rate": Decimal("1.50")}, {"who": "Zoe Oakes", "rate": Decimal("2.00")}],
}
JOIN = {"alias": "dim", "dataset_id": "dim", "on": "dim.who = t.name"}


def assigning(seq: int, column: str, expression: str, **more: Any) -> dict[str, Any]:
    arguments = {"assignments": [{"column": column, "expression": expression}], **more}
    return {"seq": seq, "name": f"step {seq}", "type": "update", "arguments": arguments}


def output(*columns: str) -> dict[str, Any]:
    destination = {"location": {"format": "parquet", "path": "out"}}
    arguments = {"destination": destination, "columns": list(columns)}
    return {"seq": 90, "name": "out", "type": "output", "arguments": arguments}


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Any]:
    """Cuts the row of Ann out of a run of a project with these operations."""
    opened = list[RunTrace]()

    def cut(operations: list[dict[str, Any]], role: AccessRole, *, mask: bool = False) -> tuple[Any, ScenarioCut]:
        project = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main"}
        write_workspace(tmp_path, {**project, "operations": operations}, PATIENTS)
        for dataset, personal in (("main", {"name", "born"}), ("dim", {"who"})):
            path = tmp_path / f"datasets/{dataset}.yaml"
            definition = json.loads(path.read_text(encoding="utf-8"))
            for column in definition["main_table"]["columns"]:
                if column["name"] in personal:
                    column["privacy"] = "personal"
            path.write_text(json.dumps(definition), encoding="utf-8")
        loaded = load_workspace(tmp_path)
        plan = clew.open(tmp_path).plan("p")
        recorded = interpreted(plan, ROWS, TODAY)
        writer = Writer(tmp_path / f"storage{len(opened)}", recorded)
        trace = writer.write()
        opened.append(trace)
        question = CutQuestion(trace.row_ids.row_id(writer.ordinals[0]), "k = 1", masks_all=mask)
        return loaded, cut_scenario(trace, eyes(plan, role), loaded, question)

    yield cut
    for trace in opened:
        trace.close()


PRICED = [assigning(10, "price", "fee * dim.rate", joins=[JOIN]), assigning(20, "letters", "LEN(name)")]
PRICED.append(output("k", "price", "letters"))


def test_those_who_may_see_personal_values_get_them_unless_they_mask(clinic: Any) -> None:
    loaded, cut = clinic(PRICED, AccessRole.ADMIN)
    assert "Ann Bell" in cut.text
    assert "Zoe" not in cut.text
    assert run(loaded, cut).status == "pass"
    loaded, cut = clinic(PRICED, AccessRole.ADMIN, mask=True)
    assert cut.masked == ("t.name", "t.born", "dim.who")
    assert not {"Ann", "Bell", "1984-03-05"} & set(cut.text.replace('"', " ").replace(",", " ").split())
    assert run(loaded, cut).status == "pass"
    assert "price: 15.00" in cut.text  # equal stand-ins still find each other
    assert "letters: 8" in cut.text


def test_those_who_may_not_see_personal_values_get_stand_ins(clinic: Any) -> None:
    loaded, cut = clinic(PRICED, AccessRole.OPERATOR)
    assert "Ann" not in cut.text
    assert "1984" not in cut.text
    assert cut.masked == ("t.name", "t.born", "dim.who")
    assert run(loaded, cut).status == "pass"


CHOSEN = [assigning(10, "mark", "1") | {"selector": 'name = "Ann Bell"'}, output("k", "mark")]


def test_stand_ins_that_take_another_way_are_refused_to_those_who_see_and_not_told_to_others(clinic: Any) -> None:
    with pytest.raises(UserError) as caught:
        clinic(CHOSEN, AccessRole.ADMIN, mask=True)
    assert caught.value.code == "CutNotReproduced"
    assert 'step 10 "step 10"' in caught.value.diagnostic.message
    loaded, cut = clinic(CHOSEN, AccessRole.OPERATOR)
    assert "mark: 1" not in cut.text
    assert run(loaded, cut).status == "pass"


VALUES: list[Value] = ["Ann", "Bob", "Eve-1", "Eve-2", 17, 18, -3, Decimal("10.25"), Decimal("99.10"), True]
VALUES += [date(1984, 3, 5), date(1985, 1, 1), datetime.fromisoformat("2026-01-02T03:04"), 1.5, None, "", "Ünal", "李"]


@given(seed=st.integers())
def test_stand_ins_keep_form_equality_and_order(seed: int) -> None:
    stand_in = stand_ins([*VALUES, *VALUES], Random(seed))
    for value in VALUES:
        other = stand_in(value)
        assert type(other) is type(value)
        if isinstance(value, str):
            assert len(str(other)) == len(value)
        if value not in {None, "", True}:
            assert other != value
    for one, two in (("Ann", "Bob"), ("Eve-1", "Eve-2"), (17, 18), (date(1984, 3, 5), date(1985, 1, 1))):
        assert stand_in(one) < stand_in(two)  # type: ignore[operator]
    assert str(stand_in("Eve-1"))[3] == "-"


def test_a_form_that_is_used_up_still_gives_each_value_one_stand_in() -> None:
    digits = [str(number) for number in range(10)]
    stand_in = stand_ins(digits, Random(1))
    assert {stand_in(digit) for digit in digits} == set(digits)
    assert [stand_in(digit) for digit in digits] != digits


# The command


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("cuts")) as ran:
        yield ran


def test_a_cut_scenario_passes_and_fails_when_the_project_is_broken(clew: Clew, ran: Ran) -> None:
    root = ran.shop.root
    answer = clew("test", "cut", ran.january, "--where", "id = 104", "--output", "scenarios/cut.yaml", cwd=root)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "written to scenarios/cut.yaml: 1 row of orders, 1 row of rates\n"
    assert clew("test", "--quick", "scenarios/cut.yaml", cwd=root).code == 0
    project = root / "projects/close.yaml"
    text = project.read_text(encoding="utf-8")
    try:
        for right, wrong in (("amount * r.rate", "amount + r.rate"), ("amount < 2", "amount < 20")):
            assert right in text
            project.write_text(text.replace(right, wrong), encoding="utf-8")
            assert clew("test", "--quick", "scenarios/cut.yaml", cwd=root).code == 1
    finally:
        project.write_text(text, encoding="utf-8")
        (root / "scenarios/cut.yaml").unlink()


def test_a_summary_needs_its_rows(clew: Clew, ran: Ran) -> None:
    asked = ("test", "cut", ran.report, "--where", 'total IS NOT NULL AND currency = "EUR"')
    refused = clew(*asked, cwd=ran.shop.root)
    assert refused.code != 0
    assert "CutNeedsGroup" in refused.err
    answer = clew(*asked, "--group", "--json", cwd=ran.shop.root)
    assert answer.code == 0, answer.err
    assert answer.json["rows"] == {"closed": 3}
    assert "total" in answer.json["scenario"]


def test_a_cut_of_more_rows_than_a_scenario_may_have_is_refused(
    clew: Clew, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.scenarios.cut_rows.MOST_ROWS", 2)
    asked = ("test", "cut", ran.report, "--where", 'total IS NOT NULL AND currency = "EUR"', "--group")
    refused = clew(*asked, cwd=ran.shop.root)
    assert refused.code != 0
    assert "CutTooLarge" in refused.err
    assert "a scenario may have 2" in refused.err


def test_a_cut_is_on_record_as_a_read_of_rows(clew: Clew, ran: Ran) -> None:
    assert clew("test", "cut", ran.january, "--where", "id = 106", cwd=ran.shop.root).code == 0
    records = clew("audit", "--json", cwd=ran.shop.root).out
    assert "scenario of the row where id = 106" in records


@pytest.mark.parametrize("words", [("cut", "x"), ("--group",), ("scenarios", "--where", "id = 1")])
def test_wrong_usage_of_cut_is_told(clew: Clew, ran: Ran, words: tuple[str, ...]) -> None:
    answer = clew("test", *words, cwd=ran.shop.root)
    assert answer.code != 0
    assert "clew test cut RUN --where CONDITION" in answer.err


def test_cuts_of_python_have_their_text(ran: Ran) -> None:
    cut = clew.open(ran.shop.root).get_run(ran.january).cut_scenario("id = 104")
    assert str(cut).startswith(f"# Cut out of run {ran.january[:8]} of close for 2026-01")
    assert replace(cut, text="x").to_json()["scenario"] == "x"
