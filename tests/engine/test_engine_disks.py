"""Workers of a cluster with disks to themselves: a run is refused, before its first step or at its first commit.

The workers run in mount namespaces of their own, where an empty file system lies over the folders of managed data and
of outputs; everything else they share. So rows are written and seem to be there, to those who wrote them.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_servers import needs_namespaces, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVE = """
import json, sys, clew
import clew.engine.executor, clew.engine.loading.pinning
if sys.argv[2] == "unprobed":
    clew.engine.executor.require_shared = lambda *_: None
    clew.engine.loading.pinning.unseen_sources = lambda *_: []
run = clew.open(sys.argv[1]).run("p", period="2026-01")
print(json.dumps(run.to_json()))
"""
ROWS = "id,currency,amount,_period\n" + "".join(f"{index},EUR,{index}.25,2026-01\n" for index in range(1, 60_001))
STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    },
    {
        "seq": 20,
        "name": "Write",
        "type": "output",
        "arguments": {"destination": {"datasource_id": "reports", "path": "out"}, "columns": ["id", "amount"]},
    },
]


@dataclass(frozen=True)
class Cluster:
    """A workspace on a cluster whose workers do not see some of its folders."""

    shop: Shop

    def run(self, *options: str) -> dict[str, Any]:
        command = [sys.executable, "-c", DRIVE, str(self.shop.root), *(options or ("probed",))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("disks") / "shop"
    hidden = [root / ".clew", root / "reports"]
    for folder in hidden:
        folder.mkdir(parents=True)
    with standalone_cluster(root.parent / "cluster", hidden=hidden) as master:
        config = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "700m",
            "spark.driver.host": "127.0.0.1",
        }
        settings = {
            "name": "shop",
            "environments": {"dev": {"mode": "dev", "spark": {"master": master, "config": config}}},
        }
        shop = make_shop(root).write({**SHOP, "clew.yaml": settings, "data/orders.csv": ROWS}).project("p", *STEPS)
        yield Cluster(shop)


@needs_namespaces
def test_a_run_whose_storage_is_not_shared_is_refused_before_its_first_step(cluster: Cluster) -> None:
    run = cluster.run()
    assert (run["status"], run["error"]["code"]) == ("FAILED", "StorageNotShared")
    assert str(cluster.shop.root / ".clew/storage") in run["error"]["message"]
    assert cluster.shop.published() == set()


@needs_namespaces
def test_without_the_probe_the_counts_refuse_it(cluster: Cluster) -> None:
    run = cluster.run("unprobed")
    assert (run["status"], run["error"]["code"]) == ("FAILED", "RowsMissing")
    assert "has 0 rows, but Spark wrote 60,000" in run["error"]["message"]
    assert cluster.shop.published() == set()
