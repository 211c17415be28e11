"""A store that fails while Spark runs on it: a run succeeds in the end, or fails with one message, and nothing is half.

One process with one Spark runs everything. Storage, data and outputs lie behind a proxy, which lets things go wrong.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from clew.storage.object_store import ObjectStorage
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.s3_driver import Driver, s3_driver
from tests.engine.spark_jars import s3_jars
from tests.storage.moved_to_s3 import settings_on_s3
from tests.storage.s3_proxy import EXPIRED, SLOW_DOWN, Answer, Asked, Fault, Proxy, s3_proxy
from tests.storage.s3_server import KEYS, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 60_000
"""Enough that Spark writes and reads the files, and not the driver."""
ORDERS = "id,currency,amount,_period\n" + "".join(
    f"{order},{'EUR' if order % 2 else 'USD'},{order}.25,2026-01\n" for order in range(ROWS)
)
IN_A_HURRY = {
    "spark.driver.memory": "1g",
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "3",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
    "spark.hadoop.fs.s3a.connection.timeout": "2s",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "2s",
    "spark.hadoop.fs.s3a.connection.request.timeout": "3s",
}
"""So that a store which stays away is given up soon."""
STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "assign": "doubled",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    },
    {
        "seq": 20,
        "name": "Totals",
        "type": "aggregate",
        "arguments": {
            "group_by": ["currency"],
            "aggregations": [{"column": "total", "expression": "SUM(amount)"}],
        },
    },
    {
        "seq": 30,
        "name": "Out",
        "type": "output",
        "arguments": {
            "destination": {"datasource_id": "reports", "path": "out", "format": "parquet"},
            "register_as_dataset": "kept",
        },
    },
]


@dataclass
class Site:
    """A workspace on S3, and the process that runs its project."""

    shop: Shop
    root: ObjectStorage
    proxy: Proxy
    driver: Driver
    published: dict[str, str] = field(default_factory=dict)

    def run(self, fault: Callable[[Asked], Fault] = lambda _: None, **more: Any) -> dict[str, Any]:
        if isinstance(fault, From):
            fault.earlier = frozenset(self.root.folders("managed/runs"))
        with self.proxy.failing(fault):
            found = self.driver.run(self.shop.root, **more)
        assert not any(part in json.dumps(found) for part in KEYS.split(":"))
        return found

    def output(self) -> dict[str, str]:
        """The files of the output with their versions, as far as a marker says that they belong together."""
        files = {file.name: file.version for file in self.root.files("reports/out")}
        return files if "_SUCCESS" in files else {}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[Site]:
    jars = s3_jars()
    folder = tmp_path_factory.mktemp("site")
    with s3_proxy(s3.endpoint) as proxy, s3_driver(folder) as driver:
        root = s3.storage()
        shop = make_shop(folder / "shop").project("p", *STEPS)
        environment = {
            **settings_on_s3(root, proxy.endpoint),
            "storage_root": f"{root.address}/managed",
            "retry": {"max_attempts": 1},
            "spark": {"master": "local[2]", "config": IN_A_HURRY, "jars": jars},
        }
        places = {"data": f"{root.address}/data", "reports": f"{root.address}/reports"}
        shop.write({"clew.yaml": {"name": "shop", "environments": {"dev": environment}}})
        for name, address in places.items():
            shop.write({f"datasources/{name}.yaml": {"id": name, "type": "files", "options": {"root": address}}})
        root.write_new("data/orders.csv", ORDERS.encode())
        found = Site(shop, root, proxy, driver)
        first = found.run()
        assert first["status"] == "COMPLETED", first
        found.published = found.output()
        assert found.published
        yield found


class From:
    """Something goes wrong from a certain request of the run on. Spark may still be busy with the run before."""

    earlier: frozenset[str] = frozenset()
    """Runs that were there before."""

    def __init__(self, start: str, fault: Fault, method: str = "PUT") -> None:
        self.start, self.fault, self.method, self.has_begun = start, fault, method, False

    def is_start(self, asked: Asked) -> bool:
        is_late = any(run_id in asked.path for run_id in self.earlier)
        return asked.method == self.method and self.start in asked.path and not is_late

    def __call__(self, asked: Asked) -> Fault:
        self.has_begun = self.has_begun or self.is_start(asked)
        return self.fault if self.has_begun else None


class NowAndThen:
    """Something goes wrong with every so many requests of a kind."""

    def __init__(self, every: int, fault: Fault, *methods: str) -> None:
        self.every, self.fault, self.methods, self.count = every, fault, methods, 0

    def __call__(self, asked: Asked) -> Fault:
        if asked.method not in self.methods:
            return None
        self.count += 1
        return self.fault if self.count % self.every == 0 else None


def test_a_run_gets_over_a_store_that_fails_now_and_then(site: Site) -> None:
    fault = NowAndThen(4, SLOW_DOWN, "GET", "PUT", "HEAD", "POST")
    run = site.run(fault)
    assert run["status"] == "COMPLETED", run["error"]
    assert fault.count > fault.every
    site.published = site.output()
    assert site.published


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        (From("/input/", EXPIRED), "StorageUnavailable", "have expired"),
        (From("/created/", EXPIRED), "StorageUnavailable", "have expired"),
        (From("/changes/", Answer(404, "NoSuchBucket")), "StorageUnavailable", "does not exist"),
    ],
    ids=["expired while loading", "expired in a step", "bucket lost"],
)
def test_a_run_on_a_store_that_stays_away_fails_with_one_message(site: Site, fault: From, code: str, says: str) -> None:
    run = site.run(fault)
    assert fault.has_begun
    assert (run["status"], run["error"]["code"]) == ("FAILED", code), run["error"]
    assert says in run["error"]["message"], run["error"]
    assert site.output() == site.published, "the output of the run before is still there, as a whole"
