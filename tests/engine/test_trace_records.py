"""Trace records as the specification has them, of runs on Spark, through every door."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command_line
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

FIELDS = ["run_id", "operation_seq", "row_id", "change_type", "before", "after"]


def operation(seq: int, type_: str, arguments: dict[str, Any], selector: str | None = None) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": f"Step {seq}", "type": type_, "arguments": arguments, **chosen}


def setting(column: str, expression: str) -> dict[str, Any]:
    return {"assignments": [{"column": column, "expression": expression}]}


TOTAL = {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]}
WRITE = {"destination": {"datasource_id": "reports", "path": "out"}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path).project(
        "p",
        operation(10, "update", setting("amount", "amount * 2"), 'currency = "EUR"'),
        operation(20, "aggregate", TOTAL),
        operation(30, "delete", {}, "id = 2"),
        operation(40, "output", WRITE),
    )


@pytest.fixture
def run(shop: Shop) -> Run:
    return Workspace(shop.root).get_run(shop.run("p").record.run_id)


def printed(shop: Shop, *arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        command_line([*arguments, "--workspace", str(shop.root)])
    return out.getvalue()


def test_every_record_has_the_six_fields_of_the_specification(shop: Shop, run: Run) -> None:
    found = run.records().to_json()
    records: Any = found["records"]
    assert [list(record) for record in records] == [FIELDS] * len(records)
    assert {record["run_id"] for record in records} == {run.id}
    euro, dollar = (run.row_where(f"id = {number}", at=0) for number in (1, 2))
    updated, first, second, deleted = records
    assert updated == {
        "run_id": run.id,
        "operation_seq": 10,
        "row_id": euro,
        "change_type": "updated",
        "before": {"amount": "10.00"},
        "after": {"amount": "20.00"},
    }
    for created, currency, total in ((first, "EUR", "20.00"), (second, "USD", "20.00")):
        assert (created["operation_seq"], created["change_type"], created["before"]) == (20, "created", None)
        assert created["after"] == {
            "id": None,
            "currency": currency,
            "amount": None,
            "total": total,
            "_period": "2026-01",
            "_labels": "",
            "_deleted": False,
        }
    assert deleted == {
        "run_id": run.id,
        "operation_seq": 30,
        "row_id": dollar,
        "change_type": "deleted",
        "before": {"_deleted": False},
        "after": None,
    }
    assert json.loads(printed(shop, "trace", run.id, "--records", "--json")) == found
    assert [json.loads(line) for line in printed(shop, "trace", run.id, "--records").splitlines()] == records


def test_records_come_in_pages_and_by_step(run: Run) -> None:
    everything = run.records().records
    pages, after = list[Any](), None
    while True:
        page = run.records(limit=1, after=after)
        pages += page.records
        after = page.next
        if after is None:
            break
    assert tuple(pages) == everything
    assert run.records(step=30).records == everything[-1:]
    assert run.records(step=40).records == ()


def test_a_row_is_rebuilt_from_its_records_alone(run: Run) -> None:
    """By the algorithm of the specification: the created record, then every difference in order."""
    for record in (*run.records().records, *run.records(run.row_where("id = 1", at=0)).records):
        own = run.records(record.row_id).records
        assert own[0].change_type == "created"
        assert own[0].after is not None
        state = dict(own[0].after)
        for change in own[1:]:
            state |= change.after or {"_deleted": True}
            told = run.trace(record.row_id, at=change.operation_seq).state
            assert told is not None
            assert {name: value for name, value in told.items() if value is not None} == {
                name: value for name, value in state.items() if value is not None
            }


def test_arrow_has_the_six_fields(run: Run) -> None:
    table = run.records().to_arrow()
    assert table.column_names == FIELDS
    assert table["operation_seq"].to_pylist() == [10, 20, 20, 30]
    assert table["after"].to_pylist()[0] == [("amount", '"20.00"')]
    assert table["after"].to_pylist()[3] is None


def test_states_and_records_say_which_row_they_are_of(run: Run) -> None:
    row_id = run.row_where("id = 1", at=0)
    history: Any = run.trace(row_id).to_json()["history"]
    assert {entry["full_state"]["_row_id"] for entry in history} == {row_id}
    state: Any = run.trace(row_id, at=10).to_json()["row_at_step"]
    assert state["_row_id"] == row_id
    step: Any = run.trace(step=10).to_json()
    assert step["run_id"] == run.id
    assert [(row["run_id"], row["operation_seq"]) for row in step["rows"]] == [(run.id, 10)]


def test_a_step_that_was_not_reached_is_told_from_one_that_does_not_exist(shop: Shop) -> None:
    failing = operation(15, "update", setting("amount", "amount * 9999999999"))
    shop.project("q", operation(10, "update", setting("amount", "amount * 2")), failing, operation(40, "output", WRITE))
    view = shop.run("q")
    assert view.snapshot.status.value == "FAILED"
    run_id = view.record.run_id
    row_id = Workspace(shop.root).get_run(run_id).row_where("id = 1", at=0)
    for question in (["--step", "40"], [row_id, "--at", "40"], ["--at", "40"], ["--records", "--step", "40"]):
        answer = json.loads(printed(shop, "trace", run_id, *question, "--json"))
        assert answer["error"]["code"] == "StepOutOfRange"
        assert "step 40 was not reached" in answer["error"]["message"]
    missing = json.loads(printed(shop, "trace", run_id, "--step", "99", "--json"))
    assert "the run has no step 99" in missing["error"]["message"]


def test_a_data_column_called_row_id_is_not_lost(shop: Shop) -> None:
    shop.project("p", operation(10, "update", setting("row_id", '"mine"')))
    run = Workspace(shop.root).get_run(shop.run("p").record.run_id)
    found = run.trace(where="id = 1")
    rows: Any = found.to_json()["rows"]
    (row,) = rows
    assert row["orders.row_id"] == "mine"
    assert row["row_id"] == row["_row_id"] == run.row_where("id = 1")
    assert found.to_arrow()["orders.row_id"].to_pylist() == ["mine"]
