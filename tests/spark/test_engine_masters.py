"""The same project on a local Spark, on a standalone cluster and through Spark Connect gives the same rows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_workspaces import SHOP, Shop, make_shop
from spark_servers import connect_server, standalone_cluster

pytestmark = pytest.mark.usefixtures("spark")

DRIVE = """
import json, sys, clew
run = clew.open(sys.argv[1]).run("p", period="2026-01")
print(json.dumps(run.to_json()))
"""
RATES = {"alias": "rates", "dataset_id": "rates", "on": "rates.currency = orders.currency"}
STEPS: list[dict[str, Any]] = [
    {
        "type": "update",
        "arguments": {
            "joins": [RATES],
            "assignments": [{"column": "converted", "expression": "ROUND(amount * rates.rate, 2)"}],
        },
    },
    {"type": "delete", "selector": "MOD(id, 5) = 0"},
    {
        "type": "aggregate",
        "arguments": {
            "group_by": ["currency"],
            "aggregations": [{"column": "total", "expression": "SUM(converted)"}],
        },
    },
    {
        "type": "update",
        "selector": "total > 100",
        "arguments": {"assignments": [{"column": "big", "expression": "TRUE"}]},
    },
    {
        "type": "output",
        "arguments": {
            "destination": {"datasource_id": "reports", "path": "out"},
            "columns": ["id", "currency", "converted", "total", "big"],
            "register_as_dataset": "kept",
        },
    },
]
ROWS = "id,currency,amount,_period\n" + "".join(
    f"{index},{'EUR' if index % 3 else 'USD'},{index}.25,2026-01\n" for index in range(1, 1501)
)


def shop_at(root: Path, master: str, config: dict[str, str]) -> Shop:
    spark = {"master": master, "config": config}
    settings = {**SHOP["clew.yaml"], "environments": {"dev": {"mode": "dev", "spark": spark}}}
    shop = make_shop(root).write({"clew.yaml": settings, "data/orders.csv": ROWS})
    operations = [{"seq": 10 * number, "name": f"step {number}", **step} for number, step in enumerate(STEPS, 1)]
    return shop.project("p", *operations)


def rows_of(shop: Shop) -> list[str]:
    return sorted(map(str, shop.read("reports/out")))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[Any]]:
    shop = shop_at(tmp_path_factory.mktemp("local"), "local[2]", {})
    view = shop.run("p")
    assert view.failure is None
    return rows_of(shop), counts_of(view.to_json())


def counts_of(run: dict[str, Any]) -> list[Any]:
    return [(step["rows_updated"], step["rows_created"], step["rows_deleted"]) for step in run["steps"]]


def driven(shop: Shop) -> dict[str, Any]:
    """In a process of its own, since a process has one Spark."""
    done = subprocess.run([sys.executable, "-c", DRIVE, shop.root], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    run: dict[str, Any] = json.loads(done.stdout)
    assert run["status"] == "COMPLETED", run["error"]
    return run


def test_on_a_standalone_cluster(expected: tuple[list[str], list[Any]], tmp_path: Path) -> None:
    with standalone_cluster(tmp_path / "cluster") as master:
        config = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.memory": "700m"}
        shop = shop_at(tmp_path / "shop", master, {**config, "spark.driver.host": "127.0.0.1"})
        run = driven(shop)
    assert (rows_of(shop), counts_of(run)) == expected


def test_through_spark_connect(expected: tuple[list[str], list[Any]], tmp_path: Path) -> None:
    with connect_server(tmp_path / "server") as address:
        shop = shop_at(tmp_path / "shop", address, {})
        run = driven(shop)
    assert (rows_of(shop), counts_of(run)) == expected
