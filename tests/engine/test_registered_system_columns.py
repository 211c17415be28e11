"""What a registered dataset carries besides its data: rows that were deleted stay deleted, labels stay."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")


def output(seq: int, path: str, **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return {
        "seq": seq,
        "name": f"Write {path}",
        "type": "output",
        "arguments": {"destination": destination, **arguments},
    }


def update(seq: int, column: str, expression: str, joins: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    assignments = [{"column": column, "expression": expression}]
    arguments = {"joins": joins or [], "assignments": assignments}
    return {"seq": seq, "name": f"Set {column}", "type": "update", "arguments": arguments, **more}


def total(seq: int) -> dict[str, Any]:
    aggregations = [{"column": "total", "expression": "SUM(amount)"}, {"column": "n", "expression": "COUNT_ALL()"}]
    arguments = {"group_by": ["_period"], "aggregations": aggregations}
    return {"seq": seq, "name": "Total", "type": "aggregate", "arguments": arguments}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """`closed` holds order 1, labelled, and order 2, deleted."""
    shop = make_shop(tmp_path)
    shop.project(
        "close",
        update(10, "_labels", 'CONCAT(_labels, "{checked}")', selector="id = 1"),
        {"seq": 20, "name": "Drop", "type": "delete", "selector": "id = 2"},
        output(30, "closed", include_deleted=True, register_as_dataset="closed"),
    )
    assert shop.run("close").snapshot.status.value == "COMPLETED"
    return shop


def test_deleted_rows_stay_deleted_and_labels_stay_in_the_next_project(shop: Shop) -> None:
    shop.project(
        "report",
        update(10, "amount", "amount * 2"),
        total(20),
        output(30, "visible", columns=["id", "amount", "_labels", "total", "n"]),
        output(40, "all", include_deleted=True, columns=["id", "amount", "_labels", "_deleted", "_row_id"]),
        dataset="closed",
    )
    view = shop.run("report")
    assert [(row["id"], str(row["amount"]), row["_labels"], row["n"]) for row in shop.read("reports/visible")] == [
        (1, "20.00", "{checked}", None),
        (None, "None", "", 1),
    ]
    every = {row["id"]: row for row in shop.read("reports/all") if row["id"] is not None}
    assert {key: (str(row["amount"]), row["_deleted"]) for key, row in every.items()} == {
        1: ("20.00", False),
        2: ("20.00", True),
    }
    run = Workspace(shop.root).get_run(view.record.run_id)
    for row in every.values():
        history = run.trace(row["_row_id"])
        last = history.entries[-1].full_state
        assert (last["_deleted"], last["_labels"], last["amount"]) == (row["_deleted"], row["_labels"], row["amount"])
    assert history.entries[0].full_state["_deleted"] is True
    assert [row.state["id"] for row in run.trace(where="_deleted", at=10).rows] == [2]
    assert [row.state["id"] for row in run.trace(where='_labels = "{checked}"', at=0).rows] == [1]


def test_a_deleted_row_of_a_registered_dataset_is_neither_joined_nor_appended(shop: Shop) -> None:
    join = {"alias": "closed", "dataset_id": "closed", "on": "closed.id = orders.id"}
    shop.project(
        "look",
        update(10, "found", "closed.currency", [join]),
        {"seq": 20, "name": "Add", "type": "append", "arguments": {"source": {"dataset_id": "closed"}}},
        output(30, "looked", columns=["id", "found"]),
    )
    view = shop.run("look")
    found = sorted((row["id"], row["found"]) for row in shop.read("reports/looked") if row["found"] or row["id"] == 2)
    assert found == [(1, "EUR"), (2, None)]
    assert sorted(row["id"] for row in shop.read("reports/looked")) == [1, 1, 2]
    run = Workspace(shop.root).get_run(view.record.run_id)
    row_id = run.row_where("id = 2", at=10)
    assert run.explain(row_id, "found").value is None


def test_explanations_and_why_not_lead_to_the_run_that_deleted_or_labelled_the_row(shop: Shop) -> None:
    shop.project("report", output(10, "report"), dataset="closed")
    view = shop.run("report")
    run = Workspace(shop.root).get_run(view.record.run_id)
    told = run.explain(run.row_where("id = 1", at=0), "_labels").to_text()
    assert 'CONCAT(_labels, "{checked}")' in told
    assert "deleted before it was registered" in run.why_not("id = 2").to_text()


def test_an_output_that_leaves_labels_out_registers_none(shop: Shop) -> None:
    shop.project(
        "slim",
        update(10, "_labels", '"x"'),
        output(20, "slim", columns=["id", "_period"], register_as_dataset="slim"),
    )
    shop.run("slim")
    shop.project("after", output(10, "after", columns=["id", "_labels"]), dataset="slim")
    shop.run("after")
    assert {row["_labels"] for row in shop.read("reports/after")} == {""}
