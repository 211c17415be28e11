"""What a value was before it was restated: from run to run for the same period, through every door."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from tests.engine.engine_workspaces import Shop
from tests.trace.interpreted_shop import CLOSE, interpreted_shop, output, setting, step

TOTAL = step(25, "Total", "aggregate", group_by=["currency"], aggregations=setting(usd="SUM(usd)"))


@dataclass(frozen=True)
class Restated:
    """A shop whose January was closed three times: as at first, again with the same rates, and with other ones."""

    shop: Shop
    runs: tuple[str, str, str]
    february: str


def with_total(*operations: Any) -> tuple[Any, ...]:
    return (*operations[:2], TOTAL, output(30, "Publish", "closed/{period}", columns=["id", "currency", "usd"]))


@pytest.fixture(scope="module")
def restated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restated]:
    with pytest.MonkeyPatch.context() as patch:
        shop = interpreted_shop(tmp_path_factory.mktemp("restated"), patch).project("close", *with_total(*CLOSE))
        first, second, february = (
            shop.run("close", period).record.run_id for period in ("2026-01", "2026-01", "2026-02")
        )
        shop.project(
            "close", *with_total(*json.loads(json.dumps(CLOSE).replace("amount * r.rate", "amount * r.rate + 1")))
        )
        Workspace(shop.root).projects.activate("close")
        yield Restated(shop, (first, second, shop.run("close").record.run_id), february)


def test_the_value_before_and_the_run_that_changed_it_are_told(restated: Restated) -> None:
    first, second, third = restated.runs
    workspace = Workspace(restated.shop.root)
    run = workspace.get_run(third)
    row = run.row_where("id = 102")
    found = run.restatements(row, "usd")
    assert [each.run_id for each in found.stated] == [first, third]
    before, after = (each.found.value for each in found.stated)
    assert (found.is_restated, dict(found.key), found.notes) == (True, {"id": 102}, ())
    assert str(after) == str(run.explain(row, "usd").value)
    old = workspace.get_run(second)
    assert old.restatements(old.row_where("id = 102"), "usd").to_lines() == (
        "not restated: no earlier run that could be asked had another value",
    )
    [line] = found.to_lines()
    assert f"by run {third[:8]}: {before} -> {after}; before, as of " in line
    assert line.endswith(f"by run {first[:8]}")


def test_a_total_is_found_by_its_group(restated: Restated) -> None:
    first, _, third = restated.runs
    run = Workspace(restated.shop.root).get_run(third)
    found = run.restatements(run.row_where('id IS NULL AND currency = "EUR"'), "usd")
    assert (dict(found.key), [each.run_id for each in found.stated]) == ({"currency": "EUR"}, [first, third])


def test_commands_tell_it_with_the_explanation(restated: Restated, capsys: pytest.CaptureFixture[str]) -> None:
    first, _, third = restated.runs
    asked = ["explain", third, "usd", "--where", "id = 102", "--restated", "-w", str(restated.shop.root)]
    assert command([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["run_id"] for each in document["restated"]["stated"]] == [first, third]
    assert document["column"] == "usd"
    assert command(asked) == 0
    assert f"by run {third[:8]}: " in capsys.readouterr().out
    assert command([*asked, "--html", "x.html"]) == 2
    assert "cannot be combined" in capsys.readouterr().err
    assert command(["audit", "--limit", "2", "--json", "-w", str(restated.shop.root)]) == 0
    records = json.loads(capsys.readouterr().out)["records"]
    assert {each["subject_id"] for each in records} == {first, third}
    assert all("was restated; returned 1 row of usd" in each["detail"] for each in records)


def test_a_row_that_is_not_there_and_other_periods_are_left_out(restated: Restated) -> None:
    run = Workspace(restated.shop.root).get_run(restated.february)
    assert not run.restatements(run.row_where("id = 202"), "usd").is_restated
    with pytest.raises(UserError) as refused:
        run.restatements("no-row", "usd")
    assert refused.value.code == "RowNotFound"


def test_a_run_that_cannot_be_asked_is_named(restated: Restated) -> None:
    """The oldest one has lost its trace."""
    first, _, third = restated.runs
    part = min((restated.shop.storage / "runs" / first / "changes").rglob("part.json"))
    content = part.read_bytes()
    part.unlink()
    try:
        run = Workspace(Path(restated.shop.root)).get_run(third)
        found = run.restatements(run.row_where("id = 102"), "usd")
    finally:
        part.write_bytes(content)
    assert any(note.startswith(f"run {first[:8]} could not be asked") for note in found.notes)
    assert found.is_restated
