"""Rows are called what people call them in every project that they pass, and values are followed through all."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import clew
from clew.cli.main import run as command
from clew.explain.tree import Appended, Explanation, Loaded, Summarised, Updated
from clew.plan import plan_from_json, plan_to_json
from tests.trace.interpreted_shop import Ran, output, ran_shop, setting, step

TOTAL = 'currency = "EUR" AND total > 0'
SUMS = (
    step(10, "Sum up", "aggregate", group_by=["currency"], aggregations=setting(total="SUM(usd)")),
    step(
        20, "All of it", "aggregate", "total IS NOT NULL", group_by=["_period"], aggregations=setting(n="COUNT(total)")
    ),
    output(30, "Publish", "sums/{period}", columns=["_period", "currency", "total", "n"], register_as_dataset="sums"),
)
SUM_OF_CURRENCY = {"alias": "s", "dataset_id": "sums", "on": "s.currency = orders.currency AND NOT ISNULL(s.total)"}
SHARES = (
    step(10, "Share", "update", joins=[SUM_OF_CURRENCY], assignments=setting(share="ROUND(usd / s.total, 4)")),
    step(20, "Add columns", "update", assignments=setting(total="usd", n="0")),
    step(30, "Append sums", "append", source={"dataset_id": "sums"}, source_selector="n IS NULL AND total > 0"),
    step(
        *(40, "Append all", "append"),
        source={"dataset_id": "sums"},
        source_selector="n IS NULL AND total > 0",
        aggregation={"group_by": ["_period"], "aggregations": setting(usd="SUM(total)")},
    ),
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture(scope="module")
def sums(ran: Ran) -> str:
    """A run that registers sums of what the shop has closed."""
    return completed(ran.shop.project("sums", *SUMS, dataset="closed").run("sums"))


@pytest.fixture(scope="module")
def shares(ran: Ran, sums: str) -> str:
    """A run that joins and appends those sums."""
    assert sums
    return completed(ran.shop.project("shares", *SHARES, dataset="closed").run("shares"))


def completed(view: Any) -> str:
    assert view.snapshot.status.value == "COMPLETED", view.failure
    return str(view.record.run_id)


@pytest.fixture
def answer(ran: Ran, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(ran.shop.root)

    def call(*arguments: str) -> str:
        assert command(list(arguments)) == 0
        return capsys.readouterr().out

    return call


def the_row(ran: Ran, run_id: str, where: str) -> str:
    [row] = clew.open(ran.shop.root).get_run(run_id).trace(where=where).rows
    return row.row_id


def cause(ran: Ran, run_id: str, where: str, column: str) -> Any:
    run = clew.open(ran.shop.root).get_run(run_id)
    return run.explain(the_row(ran, run_id, where), column).cause


@pytest.mark.slow
def test_rows_of_a_registered_dataset_keep_the_natural_key_they_came_with(ran: Ran, answer: Callable[..., str]) -> None:
    text = answer("explain", ran.report, "--where", TOTAL, "total")
    assert "6.60  50.0 %  106  loaded, closed v" in text
    assert f"in close, 2026-01, run {ran.january[:8]}, row 106: usd = 6.60" in text
    assert answer("trace", ran.report, "--where", "id = 104").splitlines()[0].endswith("  104")


@pytest.mark.slow
def test_summary_rows_go_by_the_keys_of_their_group_in_the_run_that_made_them(
    ran: Ran, sums: str, answer: Callable[..., str]
) -> None:
    step_rows = answer("trace", sums, "--step", "10")
    assert [line.split()[1] for line in step_rows.splitlines()[2:-1]] == ["EUR", "USD"]
    found = cause(ran, sums, "n = 2", "n")
    assert isinstance(found, Summarised)
    assert sorted(each.label for each in found.parents.contributors) == ["EUR", "USD"]


@pytest.mark.slow
def test_and_in_the_projects_behind_it(ran: Ran, shares: str) -> None:
    plan = clew.open(ran.shop.root).plan("shares")
    assert plan.input.row_names == (("id",),)
    [sums] = {step.source.row_names for step in plan.steps if step.type == "append"}
    assert set(sums) == {("currency",), ("_period",)}
    found = cause(ran, shares, "id = 104", "share")
    assert isinstance(found, Updated)
    assert [join.label for join in found.joins] == ["EUR"]


@pytest.mark.slow
def test_a_value_of_a_joined_dataset_is_followed_into_the_run_that_registered_it(
    ran: Ran, sums: str, shares: str, answer: Callable[..., str]
) -> None:
    found = cause(ran, shares, "id = 104", "share")
    total = next(each for each in found.inputs if each.name == "s.total")
    assert total.upstream is not None
    assert (total.upstream.run_id, total.upstream.project, total.upstream.label) == (sums, "sums", "EUR")
    assert isinstance(total.upstream.cause, Summarised)
    [largest, *_] = total.upstream.cause.parents.contributors
    behind = largest.inputs[0].explanation
    assert isinstance(behind, Explanation)
    assert isinstance(behind.cause, Loaded)
    text = answer("explain", shares, "--where", "id = 104", "share")
    assert f"in sums, 2026-01, run {sums[:8]}, row EUR: total = 13.20" in text


@pytest.mark.slow
def test_appended_rows_are_followed_too_as_they_were_and_summed_up(ran: Ran, sums: str, shares: str) -> None:
    found = cause(ran, shares, 'id IS NULL AND currency = "EUR"', "total")
    assert isinstance(found, Appended)
    assert found.upstream is not None
    assert (found.upstream.run_id, found.upstream.label) == (sums, "EUR")
    grouped = cause(ran, shares, "id IS NULL AND currency IS NULL", "usd")
    assert isinstance(grouped, Summarised)
    names = {each.label: each.inputs[0].upstream for each in grouped.parents.contributors}
    assert {name: upstream.run_id for name, upstream in names.items() if upstream} == {"EUR": sums, "USD": sums}


def test_a_key_that_an_output_leaves_out_names_nobody(ran: Ran) -> None:
    publish = output(20, "Publish", "nameless/{period}", columns=["usd", "total"], register_as_dataset="nameless")
    ran.shop.project("nameless", SUMS[0], publish, dataset="closed")
    ran.shop.project("on-nameless", output(10, "Out", "out"), dataset="nameless")
    assert clew.open(ran.shop.root).plan("on-nameless").input.row_names == ()


def test_plans_that_were_kept_before_rows_had_names_can_be_read(ran: Ran) -> None:
    plan = clew.open(ran.shop.root).plan("report")
    data = json.loads(json.dumps(plan_to_json(plan)))
    del data["input"]["row_names"]
    old = plan_from_json(data)
    assert old.input.row_names == ()
    assert old.digest == plan.digest


@pytest.mark.parametrize("columns", [40, 60])
def test_an_explanation_fits_the_terminal_and_keeps_its_tree(
    ran: Ran, answer: Callable[..., str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    asked = ("explain", ran.report, "--where", TOTAL, "total")
    whole = answer(*asked)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = answer(*asked).splitlines()
    assert max(map(len, lines)) <= columns < max(map(len, whole.splitlines()))
    assert all(line[0] in "|' " for line in lines[1:])
    unwrapped = " ".join(line.lstrip("|' ") for line in lines).replace("- ", "")
    assert " ".join(unwrapped.split()) == " ".join(
        " ".join(line.lstrip("|' ") for line in whole.splitlines()).replace("- ", "").split()
    )
