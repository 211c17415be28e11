"""The same project on a local Spark, on a standalone cluster and through Spark Connect gives the same rows.

A sample of the rows at a breakpoint is among them: the run id alone decides which they are.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_servers import connect_server, standalone_cluster

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

RUN_ID = "5f0c9d0e-7a44-4b52-9c1b-3a1d8a2f6e10"
SAMPLE = {"breakpoint": "cleaned", "mode": "sample_view", "sample": {"rows": 60}}
DRIVE = """
import json, sys, clew, clew.runs.submission
root, run_id, sample = sys.argv[1:]
clew.runs.submission.uuid4 = lambda: run_id
run = clew.open(root).run("p", period="2026-01", captures=json.loads(sample))
print(json.dumps(run.to_json()))
"""
INTERRUPT = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
from clew.engine.blame import SPARK_ERRORS
from clew.engine.spark_work import SparkWork, for_another_thread
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
def endless():
    return spark.range(20).toDF("n").crossJoin(spark.range(10**15)).count()
def elsewhere():
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(for_another_thread(spark, endless)).result()
for do in (endless, elsewhere):
    work = SparkWork(spark, "endless")
    with work.here():
        threading.Thread(target=work.interrupt).start()
        try:
            do()
        except SPARK_ERRORS:
            print("interrupted", flush=True)
"""
"""Work that ends only if a thread interrupts what it and another one do."""
RATES = {"alias": "rates", "dataset_id": "rates", "on": "rates.currency = orders.currency"}
STEPS: list[dict[str, Any]] = [
    {
        "type": "update",
        "arguments": {
            "joins": [RATES],
            "assignments": [{"column": "converted", "expression": "ROUND(amount * rates.rate, 2)"}],
        },
    },
    {"type": "delete", "selector": "MOD(id, 5) = 0", "assign": "cleaned"},
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


@dataclass(frozen=True)
class Results:
    """What a run gave."""

    output: list[str]
    counts: list[Any]
    sample: list[Any]


def results_of(shop: Shop, run: dict[str, Any]) -> Results:
    assert run["status"] == "COMPLETED", run["error"]
    counts = [(step["rows_updated"], step["rows_created"], step["rows_deleted"]) for step in run["steps"]]
    [capture] = clew.open(shop.root).get_run(RUN_ID).captures
    return Results(sorted(map(str, shop.read("reports/out"))), counts, capture.to_arrow().to_pylist())


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Results:
    shop = shop_at(tmp_path_factory.mktemp("local"), "local[2]", {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.runs.submission.uuid4", lambda: RUN_ID)
        run = clew.open(shop.root).run("p", period="2026-01", captures=SAMPLE)
    results = results_of(shop, run.to_json())
    assert len(results.sample) == 60
    return results


def driven(shop: Shop) -> Results:
    """In a separate process, since a process has one Spark."""
    command = [sys.executable, "-c", DRIVE, str(shop.root), RUN_ID, json.dumps(SAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return results_of(shop, json.loads(done.stdout))


def test_on_a_standalone_cluster(expected: Results, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path / "cluster") as master:
        config = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.memory": "700m"}
        shop = shop_at(tmp_path / "shop", master, {**config, "spark.driver.host": "127.0.0.1"})
        assert driven(shop) == expected


def test_through_spark_connect(expected: Results, tmp_path: Path) -> None:
    with connect_server(tmp_path / "server") as address:
        shop = shop_at(tmp_path / "shop", address, {})
        assert driven(shop) == expected
        command = [sys.executable, "-c", INTERRUPT, address]
        stopped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert stopped.stdout.split() == ["interrupted", "interrupted"], stopped.stderr[-3000:]
