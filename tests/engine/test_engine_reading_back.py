"""Summaries that are taken from the written rows of the output behind them, against those that are not."""

import copy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clew.api.run_view import RunView
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

ORDERS = "id,currency,amount,_period\n" + "".join(
    f"{number},{currency},{number}.50,2026-01\n"
    for number, currency in enumerate(["EUR", "USD", "", "EUR", "GBP", "USD", "EUR"], start=1)
)
UPDATE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "selector": "MOD(id, 2) = 1",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
DELETE = {"seq": 20, "name": "Drop", "type": "delete", "selector": "id = 7"}
TOTALS = {
    "seq": 30,
    "name": "Totals",
    "type": "aggregate",
    "selector": "100 / (id - 7) < 0",
    "arguments": {
        "group_by": ["currency"],
        "aggregations": [
            {"column": "total", "expression": "SUM(amount)"},
            {"column": "lines", "expression": "COUNT(id)"},
        ],
    },
}


COLUMNS = ["id", "currency", "amount", "total", "lines"]


def output(mode: str = "overwrite", **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": "closed"}
    arguments = {"destination": destination, "mode": mode, "columns": COLUMNS, **arguments}
    return {"seq": 40, "name": "Publish", "type": "output", "arguments": arguments}


def shop_that_reads_back(root: Path, *operations: Any) -> Shop:
    """Where no step is small enough for links, sums are taken from what is written."""
    workspace = copy.deepcopy(SHOP["clew.yaml"])
    workspace["environments"]["dev"]["tracelink"] = {"links_up_to_rows": 0}
    shop = make_shop(root).write({"clew.yaml": workspace, "data/orders.csv": ORDERS})
    return shop.project("p", *operations)


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(path).to_pylist()]


DETAILS = [
    (1, "EUR", Decimal("3.00"), None, None),
    (2, "USD", Decimal("2.50"), None, None),
    (3, None, Decimal("7.00"), None, None),
    (4, "EUR", Decimal("4.50"), None, None),
    (5, "GBP", Decimal("11.00"), None, None),
    (6, "USD", Decimal("6.50"), None, None),
]
SUMMARIES = [
    (None, None, None, Decimal("7.00"), 1),
    (None, "EUR", None, Decimal("7.50"), 2),
    (None, "GBP", None, Decimal("11.00"), 1),
    (None, "USD", None, Decimal("9.00"), 2),
]


def completed(view: RunView) -> list[tuple[int, int, int]]:
    assert view.snapshot.status.value == "COMPLETED", view.snapshot.error
    counts = [(step.seq, step.counts) for step in view.snapshot.steps if step.seq >= 30]
    return [(seq, count.get("rows_created", 0), count.get("rows_written", 0)) for seq, count in counts]


def test_details_come_first_and_summaries_of_what_was_written_behind_them(tmp_path: Path) -> None:
    shop = shop_that_reads_back(tmp_path, UPDATE, DELETE, TOTALS, output())
    assert completed(shop.run("p")) == [(30, 4, 0), (40, 0, 10)]
    *details, summaries = sorted((tmp_path / "reports/closed").glob("part-*"))
    assert [row for path in details for row in rows_of(path)] == DETAILS
    assert rows_of(summaries) == SUMMARIES
    assert {pq.read_schema(path).field("amount").type for path in (*details, summaries)} == {
        pq.read_schema(summaries).field("amount").type
    }


def test_an_output_that_hides_rows_or_columns_does_not_change_the_sums(tmp_path: Path) -> None:
    hiding = output(columns=["currency", "total", "lines"])
    shop = shop_that_reads_back(tmp_path, UPDATE, DELETE, TOTALS, hiding)
    shop.project("q", UPDATE, DELETE, TOTALS, {**output(), "selector": "id = 1 OR total > 8"})
    shop.run("p")
    summaries = [row for row in rows_of(tmp_path / "reports/closed") if row[1] is not None]
    assert summaries == [(row[1], *row[3:]) for row in SUMMARIES]
    shop.run("q")
    assert rows_of(tmp_path / "reports/closed") == [DETAILS[0], SUMMARIES[2], SUMMARIES[3]]


def test_every_run_adds_its_details_and_summaries_once(tmp_path: Path) -> None:
    shop = shop_that_reads_back(tmp_path, UPDATE, DELETE, TOTALS, output("append"))
    shop.run("p")
    shop.run("p")
    found = sorted(rows_of(tmp_path / "reports/closed"), key=str)
    assert found == sorted([*DETAILS, *SUMMARIES] * 2, key=str)


def test_sums_that_fail_leave_nothing_of_the_rows_that_were_written_before_them(tmp_path: Path) -> None:
    total = {"column": "total", "expression": "SUM(id * 0 + 3000000000000000000)"}
    failing = {**TOTALS, "arguments": {"group_by": [], "aggregations": [total]}}
    shop = shop_that_reads_back(tmp_path, UPDATE, DELETE, failing, output(columns=COLUMNS[:-1]))
    view = shop.run("p")
    assert view.snapshot.error is not None
    assert (view.snapshot.error.code, view.to_json()["last_completed_operation"]) == ("ValueOutOfRange", 20)
    assert shop.published() == set()
