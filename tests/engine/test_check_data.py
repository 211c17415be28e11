"""Checks of a dataset are decided on its data without a run, and find what a run would find."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from tests.engine.engine_workspaces import SHOP, Shop

pytestmark = pytest.mark.usefixtures("spark")

ROWS = """id,currency,amount,_period
1,EUR,10.00,2026-01
2,USD,-20.00,2026-01
3,GBP,-1.00,2026-01
3,EUR,many,2026-01
4,CHF,-5.00,2026-02
"""
CHECKS: list[dict[str, Any]] = [
    {"name": "known", "in_set": {"column": "currency", "values": ["EUR", "USD"]}, "severity": "quarantine"},
    {"name": "positive", "range": {"column": "amount", "min": 0}},
    {"name": "enough", "total": "COUNT_ALL() >= 3", "severity": "warn"},
    {"name": "priced", "join_must_match": {"alias": "r", "dataset_id": "rates", "on": "r.currency = orders.currency"}},
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Orders of two months, of which one cannot be read, and what must be true of them."""
    orders = {key: value for key, value in SHOP["datasets/orders.yaml"].items() if key != "natural_key"}
    rule = json.loads(json.dumps(SHOP["resolvers/r.yaml"]))
    rule["rules"][0]["strategy"]["bad_rows"] = "quarantine"
    files = {**SHOP, "datasets/orders.yaml": {**orders, "checks": CHECKS}, "resolvers/r.yaml": rule}
    rates = "currency,rate,_period_from,_period_to\nEUR,1.1,2025-01-01,\nUSD,1,2025-01-01,\n"
    shop = Shop(tmp_path_factory.mktemp("check-data")).write(files)
    return shop.write({"data/orders.csv": ROWS, "data/rates.csv": rates})


def test_checks_of_a_dataset_are_decided_on_its_data_without_a_run(
    shop: Shop, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    junit = tmp_path / "results.xml"
    asked = ["check-data", "orders", "--period", "2026-01", "--json", "--junit", str(junit), "-w", str(shop.root)]
    assert command(asked) == 1
    told = json.loads(capsys.readouterr().out)
    assert {name: told[name] for name in ("dataset", "period", "passed", "rows", "quarantined")} == {
        "dataset": "orders",
        "period": "2026-01",
        "passed": False,
        "rows": 3,
        "quarantined": 1,
    }
    found = {each["name"]: (each["outcome"], each["failed_rows"], each["place"]) for each in told["checks"]}
    first = told["checks"][0]["place"].rpartition(" line ")[0]
    assert first.endswith("orders.csv")
    assert found == {
        "orders: known": ("quarantined", 1, f"{first} line 4"),
        "orders: positive": ("failed", 2, f"{first} line 3"),
        "orders: enough": ("passed", None, None),
        "orders: priced": ("failed", 1, f"{first} line 4"),
    }
    assert ElementTree.parse(junit).getroot().get("failures") == "2"
    assert not (shop.root / ".clew" / "storage").exists(), "nothing is kept"


def test_a_dataset_without_checks_is_read_all_the_same(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["check-data", "rates", "-p", "2026-01", "-w", str(shop.root)]) == 0
    shown = capsys.readouterr().out
    assert "rates, period 2026-01: 2 rows" in shown
    assert "declares no checks" in shown


def test_registered_rows_are_checked_where_they_are(shop: Shop) -> None:
    place = {"destination": {"datasource_id": "reports", "path": "closed"}, "register_as_dataset": "closed"}
    write = {"seq": 10, "name": "Write", "type": "output", "arguments": place}
    closed = {
        "id": "closed",
        "main_table": {**SHOP["datasets/targets.yaml"]["main_table"], "name": "closed"},
        "checks": [{"name": "high", "range": {"column": "goal", "min": 2}, "severity": "warn"}],
    }
    data = "currency,goal,_period\nEUR,1,2026-01\nUSD,3,2026-01\n"
    shop.write({"data/targets.csv": data, "datasets/closed.yaml": closed}).project("close", write, dataset="targets")
    workspace = Workspace(shop.root)
    assert workspace.run("close", "2026-01").status == "COMPLETED"
    found = workspace.check_data("closed", "2026-01")
    [outcome] = found.outcomes
    assert outcome.result is not None
    assert (found.rows, outcome.outcome, outcome.result.failed_rows, found.passed) == (2, "warned", 1, True)
    assert found.source.startswith("dataset closed v1")
    again = {"destination": {"datasource_id": "reports", "path": "next"}}
    shop.project("next", {**write, "arguments": again}, dataset="closed")
    [read] = Workspace(shop.root).dry_run("next", "2026-01").datasets
    assert (read.dataset, read.rows, read.source) == ("closed", 2, found.source)
    for file in (shop.root / ".clew" / "storage" / "datasets").rglob("*.parquet"):
        file.unlink()
    for ask in (
        lambda: workspace.check_data("closed", "2026-01"),
        lambda: Workspace(shop.root).dry_run("next", "2026-01"),
    ):
        with pytest.raises(UserError, match='a file of the dataset "closed" is gone'):
            ask()
