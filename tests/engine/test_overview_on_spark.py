"""Where projects stand after real runs: what changes after a run makes its result stale, and only its result."""

import pytest
from pyspark.sql import SparkSession

from clew.api.overview import Cell, Overview
from clew.api.workspace import open_workspace
from tests.engine.engine_workspaces import DATA, Shop, make_shop

pytestmark = pytest.mark.spark

CENTS = {
    "seq": 10,
    "name": "Cents",
    "type": "update",
    "arguments": {"assignments": [{"column": "cents", "expression": "amount * 100"}]},
}
PUBLISH = {
    "seq": 20,
    "name": "Publish",
    "type": "output",
    "arguments": {
        "destination": {"datasource_id": "reports", "path": "close/{period}", "format": "parquet"},
        "columns": ["id", "amount", "_period"],
        "register_as_dataset": "closed",
    },
}
REPORT = {
    "seq": 20,
    "name": "Write",
    "type": "output",
    "arguments": {
        "destination": {"datasource_id": "reports", "path": "report/{period}", "format": "csv"},
        "columns": ["id", "amount"],
    },
}
CONTROLS = {"controls": [{"name": "Amounts", "expression": "amount"}]}


def overview(shop: Shop) -> Overview:
    return open_workspace(shop.root).overview()


def cell(found: Overview, project: str, period: str = "2026-01") -> Cell:
    [line] = [each for each in found.projects if each.project == project]
    return next(each for each in line.cells if each.period == period)


def told(found: Overview, project: str, period: str = "2026-01") -> tuple[str, list[tuple[str, str]]]:
    looked = cell(found, project, period)
    return looked.standing.value, [(each.kind, each.text) for each in looked.reasons]


def test_a_result_is_current_until_what_it_was_made_from_changes(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop = make_shop(tmp_path_factory.mktemp("shop"))
    shop.project("close", CENTS, PUBLISH, **CONTROLS).project("report", {**CENTS, "seq": 10}, REPORT, dataset="closed")
    first = shop.run("close").record.run_id
    shop.run("report")
    found = overview(shop)
    assert told(found, "close") == told(found, "report") == ("current", [])
    result = cell(found, "close").result
    assert result is not None
    assert (result.run_id, result.rows_written, result.ties) == (first, 2, True)
    assert [(each.name, each.seq, each.written) for each in result.controls] == [("Amounts", 20, "30.00")]
    assert cell(found, "close").unchecked == ()

    orders = shop.root / "data" / "orders.csv"
    orders.write_text(DATA["data/orders.csv"], encoding="utf-8")
    assert told(overview(shop), "close") == ("current", []), "the same content, written again"
    orders.write_text(DATA["data/orders.csv"].replace("10.00", "11.00"), encoding="utf-8")
    found = overview(shop)
    assert told(found, "close") == ("stale", [("input", "orders.csv has changed")])
    assert told(found, "report") == ("current", []), "it has read the registered dataset, which is as it was"

    second = shop.run("close").record.run_id
    shop.run("close", "2026-02")
    found = overview(shop)
    assert told(found, "close") == told(found, "close", "2026-02") == ("current", [])
    looked = cell(found, "close")
    assert looked.result is not None
    assert (looked.result.run_id, looked.superseded_runs, looked.tries) == (second, 1, 2)
    assert told(found, "report") == (
        "stale",
        [("input", "version 3 of closed has other rows of 2026-01 than version 1")],
    )
    assert told(found, "report", "2026-02") == ("never", [])
    assert found.periods == ("2026-02", "2026-01")

    shop.run("report")
    assert told(overview(shop), "report") == ("current", [])
    shop.run("close", "2026-02")
    assert told(overview(shop), "report") == ("current", []), "the rows of another month concern it not"

    shop.project("report", {**CENTS, "name": "Pence"}, REPORT, dataset="closed")
    assert told(overview(shop), "report") == (
        "stale",
        [("project", "the project was edited after version 1 was activated")],
    )
    orders.unlink()
    assert told(overview(shop), "close") == ("stale", [("input", "orders.csv is gone")])
