"""Questions about two runs, and about a run that was not made: commands and Python, in a shop without Spark."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from tests.trace.interpreted_shop import CLOSE, RATE, Ran, interpreted_shop, output, ran_shop, setting, step


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def asked(ran: Ran, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command answers: its exit code and its document."""

    def ask(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = command([*arguments, "--json", "-w", str(ran.shop.root)])
        return code, json.loads(capsys.readouterr().out)

    return ask


def test_two_months_have_no_order_in_common(ran: Ran, asked: Any) -> None:
    code, found = asked("compare", ran.january, ran.february)
    assert code == 0
    assert (found["rows_a"], found["rows_b"], found["changed"], found["same"]) == (6, 6, 0, 0)
    assert (found["only_in_a"], found["only_in_b"]) == (6, 6)
    assert found["at_a"] == {"seq": 30, "name": "Publish", "output": True}
    assert {"column": "_period", "because": "the runs are for different periods"} in found["not_compared"]
    [usd] = [column for column in found["columns"] if column["name"] == "usd"]
    assert (usd["total_a"], usd["total_b"], usd["difference"]) == ("28.20", "28.20", "0.00")
    assert {row["change"] for row in found["rows"]} == {"only_in_a", "only_in_b"}


def test_two_months_matched_by_another_key(ran: Ran, asked: Any) -> None:
    _, found = asked("compare", ran.january, ran.february, "--key", "amount", "--key", "currency", "--sort", "usd")
    assert (found["changed"], found["only_in_a"], found["only_in_b"]) == (6, 0, 0)
    assert found["rows"][0]["columns"] == {"id": {"old": 102, "new": 202}}
    assert [each["columns"] for each in found["matching"]] == [["amount", "currency"]]


def test_python_gives_tables_and_the_same_document(ran: Ran, asked: Any) -> None:
    with Workspace(ran.shop.root) as workspace:
        found = workspace.get_run(ran.january).compare(workspace.get_run(ran.february), limit=20)
        assert found.to_json() == asked("compare", ran.january, ran.february)[1]
        table = found.to_arrow()
        assert table["change"].to_pylist() == ["only_in_a"] * 6 + ["only_in_b"] * 6
        assert table["old.usd"].to_pylist()[:6] == [row.columns["usd"].old for row in found.rows[:6]]
        assert len(found.to_pandas()) == 12
        assert "only in the first" in found._repr_html_()


def test_all_rows_that_differ_go_into_a_file(ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", ran.january, ran.february, "-w", str(ran.shop.root), "--limit", "1"]
    assert command([*arguments, "--to", str(tmp_path / "d.csv")]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "d.csv").read_text(encoding="utf-8"))))
    assert [row["key.id"] for row in rows[:2]] == ["102", "103"]
    assert len(rows) == 12
    assert command([*arguments, "--to", str(tmp_path / "d.parquet")]) == 0
    assert pq.read_table(tmp_path / "d.parquet").num_rows == 12
    assert command([*arguments, "--to", str(tmp_path / "d.xlsx")]) == 0
    lines = list(load_workbook(tmp_path / "d.xlsx").worksheets[0].iter_rows(values_only=True))
    assert [line[lines[0].index("key.id")] for line in lines[1:3]] == [102, 103]
    assert len(lines) == 13
    assert command([*arguments, "--to", str(tmp_path / "d.txt")]) == 2
    assert "must end with .csv, .xlsx or .parquet" in capsys.readouterr().err
    assert command([*arguments, "--to", str(tmp_path / "nowhere" / "d.csv")]) != 0


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["JANUARY", "REPORT"], "DifferentProjects", 2),
        (["JANUARY", "FAILED"], "StepOutOfRange", 3),
        (["JANUARY", "nowhere"], "RunNotFound", 3),
        (["JANUARY", "FEBRUARY", "--output", "20"], "NotAnOutput", 2),
        (["JANUARY", "FEBRUARY", "--at", "30", "--output", "30"], "WrongUsage", 2),
        (["JANUARY", "FEBRUARY", "--where", "nothing > 1"], "UnknownColumn", 1),
        (["JANUARY", "FEBRUARY", "--sort", "currency"], "InvalidComparison", 2),
        (["JANUARY", "FEBRUARY", "--key", "nothing"], "DifferentKeys", 2),
    ],
)
def test_wrong_questions_have_a_code_and_no_traceback(
    ran: Ran, asked: Any, arguments: list[str], code: str, exit_code: int
) -> None:
    names = {"JANUARY": ran.january, "FEBRUARY": ran.february, "REPORT": ran.report, "FAILED": ran.failed}
    found, document = asked("compare", *(names.get(each, each) for each in arguments))
    assert (document["error"]["code"], found) == (code, exit_code)


def test_both_runs_get_a_record_of_the_read(ran: Ran, asked: Any) -> None:
    asked("compare", ran.january, ran.february, "--where", "usd > 3")
    _, audit = asked("audit", "--limit", "2")
    assert {each["subject_id"] for each in audit["records"]} == {ran.january, ran.february}
    assert all("where usd > 3; returned" in each["detail"] for each in audit["records"])


def test_a_draft_is_compared_with_the_version_that_followed(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path, patch)
        shop.project("close", *CLOSE, status="draft")
        before = shop.run("close").record.run_id
        changed = json.loads(json.dumps(CLOSE).replace("amount * r.rate", "amount * r.rate + 1"))
        shop.project("close", *changed)
        after = shop.run("close").record.run_id
        with Workspace(shop.root) as workspace:
            found = workspace.get_run(before).compare(after, sort="usd")
    assert (found.counts.changed, found.counts.only_in_a, found.counts.only_in_b) == (6, 0, 0)
    assert [str(each.difference) for each in found.columns if each.name == "usd"] == ["6.00"]
    assert all(row.columns.keys() == {"usd"} for row in found.rows)


ASKED: dict[str, Callable[[Run, str], object]] = {
    "compare": lambda run, other: run.compare(other),
    "why changed": lambda run, other: run.why_changed(other, "usd"),
    "what if": lambda run, _: run.what_if(sets=["orders: amount = 1"]),
    "sensitivity": lambda run, _: run.sensitivity("usd"),
    "impact": lambda run, _: run.impact(),
    "rerun": lambda run, _: run.rerun(),
}


@pytest.fixture(scope="module")
def half_removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str, Run]]:
    """A workspace, a run that is there, the id of one that was removed, and that one as it was held before."""
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path_factory.mktemp("removed"), patch)
        first, second = (shop.run("close", period).record.run_id for period in ("2026-01", "2026-02"))
        with Workspace(shop.root) as workspace:
            removed = workspace.get_run(second)
            removed.remove(force=True, reason="test")
            yield shop.root, first, second, removed


@pytest.mark.parametrize("question", ASKED)
def test_a_run_that_was_removed_is_refused(half_removed: tuple[Path, str, str, Run], question: str) -> None:
    root, first, second, removed = half_removed
    with Workspace(root) as workspace:
        with pytest.raises(UserError) as refused:
            ASKED[question](removed, first)
        assert [each.code for each in refused.value.diagnostics] == ["RunNotFound"]
        if question in {"compare", "why changed"}:
            with pytest.raises(UserError) as refused:
                ASKED[question](workspace.get_run(first), second)
            assert [each.code for each in refused.value.diagnostics] == ["RunNotFound"]


@pytest.mark.parametrize("question", ["compare", "why changed", "what if", "impact"])
def test_a_trace_that_is_gone_from_the_storage_is_refused(tmp_path: Path, question: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path, patch)
        first, second = (shop.run("close", period).record.run_id for period in ("2026-01", "2026-02"))
        shutil.rmtree(shop.storage / "runs" / first / "changes")
        with Workspace(shop.root) as workspace, pytest.raises(UserError) as refused:
            ASKED[question](workspace.get_run(first), second)
    assert {each.code for each in refused.value.diagnostics} == {"DamagedTrace"}


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path, patch)
        first, second = (shop.run("close", period).record.run_id for period in ("2026-01", "2026-02"))
        [part] = (shop.storage / "runs" / second).glob("changes/*/part-00000.parquet")
        part.write_bytes(part.read_bytes()[:-8])
        with Workspace(shop.root) as workspace, pytest.raises(UserError) as refused:
            workspace.get_run(first).compare(second)
    assert [each.code for each in refused.value.diagnostics] == ["DamagedTrace"]


def test_the_difference_of_two_months_is_rows_that_came_and_went(ran: Ran, asked: Any) -> None:
    code, found = asked("why-changed", ran.january, ran.february, "usd", "--where", 'currency = "EUR"')
    assert code == 0
    assert (found["value_a"], found["value_b"], found["difference"]) == ("13.20", "13.20", "0.00")
    assert {cause["title"]: cause["amount"] for cause in found["causes"]} == {
        "3 rows of orders added": "13.20",
        "3 rows of orders removed": "-13.20",
    }
    assert found["without_effect"] == ["period 2026-01 -> 2026-02"]
    with Workspace(ran.shop.root) as workspace:
        bridge = workspace.get_run(ran.january).why_changed(ran.february, "usd", where='currency = "EUR"')
    assert bridge.to_json() == found
    assert "3 rows of orders added +13.20" in bridge.to_text()


def test_a_changed_operation_is_named_with_both_expressions(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path, patch)
        shop.project("close", *CLOSE, status="draft")
        before = shop.run("close").record.run_id
        shop.project("close", *json.loads(json.dumps(CLOSE).replace("amount * r.rate", "amount * r.rate + 1")))
        after = shop.run("close").record.run_id
        with Workspace(shop.root) as workspace:
            [cause] = workspace.get_run(before).why_changed(after, "usd").causes
    assert (cause.kind, str(cause.amount), cause.alone) == ("code", "6.00", cause.amount)
    assert cause.title == (
        'operation 10 "Convert" changed: usd: ROUND(amount * r.rate, 2) -> ROUND(amount * r.rate + 1, 2)'
    )


GIVEN = (
    step(10, "Scale", "update", assignments=setting(usd='amount * IF(PERIOD_ID() = "2026-02", 2, param.factor)')),
    output(30, "Publish", "given/{period}", columns=["id", "usd"]),
)


@pytest.fixture(scope="module")
def given(ran: Ran) -> list[str]:
    """Runs of a project that reads a parameter and asks for its period: January twice, and February."""
    ran.shop.project("given", *GIVEN, parameters={"factor": {"type": "integer", "default": 3}})
    with pytest.MonkeyPatch.context() as patch:
        interpreted_shop(ran.shop.root, patch)
        workspace = Workspace(ran.shop.root)
        asked = [("2026-01", {}), ("2026-01", {"factor": 5}), ("2026-02", {})]
        return [workspace.run("given", period, parameters=values).id for period, values in asked]


def test_a_parameter_is_a_cause_of_its_own_and_no_change_of_code(ran: Ran, given: list[str], asked: Any) -> None:
    code, found = asked("why-changed", given[0], given[1], "usd")
    assert code == 0
    assert (found["value_a"], found["value_b"]) == ("84.00", "140.00")
    [cause] = found["causes"]
    assert (cause["kind"], cause["title"]) == ("parameter", "parameter factor 3 -> 5")
    assert (cause["amount"], cause["alone"], found["notes"]) == ("56.00", "56.00", [])


def test_what_the_period_is_called_changes_with_the_period(ran: Ran, given: list[str], asked: Any) -> None:
    """All rows are others, with the same amounts: their parts cancel, and the rest is what PERIOD_ID() says."""
    _, found = asked("why-changed", given[0], given[2], "usd")
    assert (found["value_a"], found["value_b"]) == ("84.00", "56.00")
    causes = {cause["kind"]: cause for cause in found["causes"] if cause["kind"] != "input"}
    assert causes.keys() == {"period"}
    assert causes["period"]["title"] == "period 2026-01 -> 2026-02"
    assert causes["period"]["details"] == ["PERIOD_ID() 2026-01 -> 2026-02"]
    assert causes["period"]["alone"] == "-28.00"
    assert sum(Decimal(cause["amount"]) for cause in found["causes"]) == -28
    _, both = asked("why-changed", given[1], given[2], "usd")
    assert {cause["kind"] for cause in both["causes"]} >= {"period", "input"}
    assert sum(Decimal(cause["amount"]) for cause in both["causes"]) == 56 - 140


def test_what_if_answers_alike_through_commands_and_python(ran: Ran, asked: Any) -> None:
    setting = 'rates where currency = "EUR": rate = 2'
    code, found = asked("what-if", ran.january, "--set", setting, "--sort", "usd")
    assert code == 0
    assert (found["changed"], found["gone"], found["new"]) == (3, 0, 0)
    [usd] = [column for column in found["columns"] if column["name"] == "usd"]
    assert (usd["total_a"], usd["total_b"], usd["difference"]) == ("28.20", "39.00", "10.80")
    assert found["rows"][0]["columns"] == {"usd": {"old": "6.60", "new": "12.00"}}
    with Workspace(ran.shop.root) as workspace:
        assert workspace.get_run(ran.january).what_if(sets=[setting], sort="usd").to_json() == found


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["why-changed", "JANUARY", "REPORT", "usd"], "DifferentProjects", 2),
        (["why-changed", "JANUARY", "FEBRUARY", "currency"], "InvalidComparison", 2),
        (["why-changed", "JANUARY", "FEBRUARY", "nothing"], "UnknownColumn", 1),
        (["what-if", "JANUARY"], "InvalidSupposition", 2),
        (["what-if", "JANUARY", "--drop", "orders where id = 999"], "InvalidSupposition", 2),
        (["what-if", "JANUARY", "--set", "orders: amount = currency"], "TypeMismatch", 1),
        (["what-if", "FAILED", "--set", "orders: amount = 1"], "StepOutOfRange", 3),
        (["why-changed", "JANUARY", "FEBRUARY", "usd", "--where", '_row_id = "x"'], "NotRecomputable", 1),
    ],
)
def test_wrong_questions_about_causes_and_suppositions(
    ran: Ran, asked: Any, arguments: list[str], code: str, exit_code: int
) -> None:
    names = {"JANUARY": ran.january, "FEBRUARY": ran.february, "REPORT": ran.report, "FAILED": ran.failed}
    found, document = asked(*(names.get(each, each) for each in arguments))
    assert (document["error"]["code"], found) == (code, exit_code)


def test_causes_and_suppositions_are_on_record(ran: Ran, asked: Any) -> None:
    asked("why-changed", ran.january, ran.february, "usd", "--where", "usd > 3")
    asked("what-if", ran.january, "--set", "orders: amount = 1")
    _, audit = asked("audit", "--limit", "3")
    told = [(each["subject_id"], each["detail"].partition(";")[0]) for each in reversed(audit["records"])]
    assert told == [
        (ran.january, f"why usd changed where usd > 3 in {ran.february}"),
        (ran.february, f"why usd changed where usd > 3 since {ran.january}"),
        (ran.january, "what if: orders: amount = 1"),
    ]


@pytest.fixture
def edited(ran: Ran) -> Iterator[None]:
    """The close with another limit for what is too small, while a test runs."""
    ran.shop.project("close", CLOSE[0], step(20, "Drop small", "delete", "amount < 4"), CLOSE[2])
    yield
    ran.shop.project("close", *CLOSE)


@pytest.mark.usefixtures("edited")
def test_an_edited_project_is_tried_on_a_run_before_it_is_activated(ran: Ran, asked: Any) -> None:
    code, found = asked("plan", "close", "--against", ran.january)
    assert code == 0
    assert [(each["name"], each["fate"]) for each in found["steps"]] == [
        ("Convert", "same"),
        ("Drop small", "changed"),
        ("Publish", "same"),
    ]
    assert found["steps"][1]["told"] == 'operation 20 "Drop small" changed: selector: amount < 2 -> amount < 4'
    assert (found["reused"], found["is_same"], found["failed"]) == (1, False, [])
    [output] = found["outputs"]
    answer = output["difference"]
    assert (answer["changed"], answer["gone"], answer["new"], answer["rows_before"]) == (0, 2, 0, 6)
    with Workspace(ran.shop.root) as workspace:
        assert workspace.get_run(ran.january).impact().to_json() == found


@pytest.mark.usefixtures("edited")
def test_a_condition_on_totals_decides_the_exit_code(ran: Ran, asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = asked("plan", "close", "--against", ran.january, "--fail-if", "rows_gone > 1")
    assert code == 1
    assert [each.split(":")[0] for each in found["failed"]] == ["30 Publish"]
    assert asked("plan", "close", "--against", ran.january, "--fail-if", "ABS(delta) > 1000")[0] == 0
    root = str(ran.shop.root)
    assert command(["plan", "close", "--against", ran.january, "--markdown", "-w", root]) == 0
    told = capsys.readouterr().out
    assert "| usd | 28.20 |" in told
    assert command(["plan", "close", "--against", ran.january, "-w", root]) == 0
    assert "2 would go" in capsys.readouterr().out


def test_checks_that_an_edited_project_would_break_are_named(
    ran: Ran, asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    convert = step(10, "Convert", "update", joins=[RATE], assignments=setting(usd="ROUND(amount * r.rate, 2) + 1"))
    checks = [
        {"name": "no large ones", "at": 10, "expression": "usd <= 7"},
        {"name": "all have a rate", "at": 10, "join_must_match": "r"},
        {"name": "something is left", "at": 20, "total": "COUNT_ALL() > 0"},
        {"name": "one of each", "at": 20, "unique": "currency", "severity": "warn"},
    ]
    ran.shop.project("close", convert, *CLOSE[1:], checks=checks)
    try:
        code, found = asked("plan", "close", "--against", ran.january)
        assert command(["plan", "close", "--against", ran.january, "-w", str(ran.shop.root)]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert command(["plan", "close", "--against", ran.january, "--markdown", "-w", str(ran.shop.root)]) == 0
        markdown = capsys.readouterr().out
    finally:
        ran.shop.project("close", *CLOSE)
    assert (code, found["is_same"]) == (0, False)
    assert {each["name"]: (each["passes"], each["failed_rows"], each["passed"]) for each in found["checks"]} == {
        "no large ones": (False, 2, None),
        "all have a rate": (True, 0, None),
        "something is left": (True, None, None),
        "one of each": (False, 6, None),
    }
    assert 'the check "no large ones" would stop the run' in told
    assert 'the check "one of each" would warn' in markdown


def test_a_parameter_is_tried_on_a_run_and_breakpoints_are_refused(ran: Ran, given: list[str], asked: Any) -> None:
    code, found = asked("plan", "given", "--against", given[0], "--param", "factor=5")
    assert code == 0
    [usd] = [each for each in found["outputs"][0]["difference"]["columns"] if each["name"] == "usd"]
    assert (usd["total_a"], usd["total_b"]) == ("84.00", "140.00")
    assert found["steps"][0]["told"] == 'operation 10 "Scale" changed: parameter factor 3 -> 5'
    assert asked("plan", "given", "--against", given[1])[1]["is_same"]  # the values of the run
    refusals = {"--param=nothing=1": "UnknownParameter", "--param=factor=x": "InvalidParameter"}
    for argument, refused in {**refusals, "--breakpoints": "WrongUsage"}.items():
        assert asked("plan", "given", "--against", given[0], argument)[1]["error"]["code"] == refused


def test_a_project_that_was_not_edited_would_change_nothing(ran: Ran, asked: Any) -> None:
    code, found = asked("plan", "report", "--against", ran.report, "--fail-if", "rows_changed + rows_gone > 0")
    assert (code, found["is_same"], found["reused"]) == (0, True, 3)


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["plan", "close", "--against", "REPORT"], "DifferentProjects", 2),
        (["plan", "close", "--against", "nothing"], "RunNotFound", 3),
        (["plan", "close", "--fail-if", "TRUE"], "WrongUsage", 2),
        (["plan", "close", "--markdown"], "WrongUsage", 2),
        (["plan", "close", "--against", "JANUARY", "--fail-if", "delta +"], "SyntaxError", 1),
        (["what-if", "JANUARY", "--parameter", "rate=2"], "UnknownParameter", 1),
        (["what-if", "JANUARY", "--parameter", "rate"], "WrongUsage", 2),
    ],
)
def test_wrong_questions_about_edited_projects(
    ran: Ran, asked: Any, arguments: list[str], code: str, exit_code: int
) -> None:
    names = {"JANUARY": ran.january, "REPORT": ran.report}
    found, document = asked(*(names.get(each, each) for each in arguments))
    assert (document["error"]["code"], found) == (code, exit_code)


def test_which_rates_a_total_hangs_on_most(ran: Ran, asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = asked("what-if", ran.january, "--sensitivity", "usd")
    assert (code, found["not_tried"]) == (0, 0)
    assert [each["dataset"] for each in found["effects"]] == ["rates"] * len(found["effects"])
    sizes = [abs(float(each["difference"])) for each in found["effects"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes
    with Workspace(ran.shop.root) as workspace:
        assert workspace.get_run(ran.january).sensitivity("usd").to_json() == found
    assert command(["what-if", ran.january, "--sensitivity", "usd", "-w", str(ran.shop.root)]) == 0
    assert "values tried" in capsys.readouterr().out
    assert asked("what-if", ran.january, "--sensitivity", "usd", "--drop", "orders where id = 1")[0] == 2
