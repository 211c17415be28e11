"""On S3: a process that is frozen past its lease, overtaken, and thawed publishes nothing and harms nothing.

One process is frozen before its last write of each kind, in one run after the other. Another one finishes the run.
"""

from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.run_view import RunReader
from clew.definitions import capture_wishes_of_data
from clew.storage.object_store import ObjectStorage
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.s3_driver import s3_driver
from tests.engine.spark_jars import s3_jars
from tests.engine.test_engine_zombies import MANY, SINK, STEPS, output
from tests.engine.zombie import zombie_process
from tests.storage.moved_to_s3 import settings_on_s3
from tests.storage.s3_server import KEYS, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLACES = ("changes", "created", "stored output", "registration", "capture")


def shop_on_s3(folder: Path, root: ObjectStorage, endpoint: str, jars: list[str]) -> Shop:
    environment = {
        **settings_on_s3(root, endpoint),
        "spark": {"master": "local[2]", "config": {"spark.driver.memory": "1g"}, "jars": jars},
        "sinks": SINK,
    }
    reports = {"id": "reports", "type": "files", "options": {"root": f"s3://{root.place.store}/reports"}}
    files = {
        "clew.yaml": {"name": "shop", "environments": {"dev": environment}},
        "datasources/reports.yaml": reports,
        "data/orders.csv": MANY,
    }
    shop = make_shop(folder).write(files)
    for number, _ in enumerate(PLACES):
        steps = [*STEPS[:2], output(30, f"{number}/all", register_as_dataset=f"kept{number}")]
        shop.project(f"p{number}", *steps, output(40, f"{number}/log", mode="append"))
    return shop


def everything(shop: Shop, run_id: str, number: int, bucket: ObjectStorage) -> dict[str, Any]:
    """All that can be asked about a run, and every object that users see of it."""
    run = clew.open(shop.root).get_run(run_id)
    with shop.starter() as starter:
        view = RunReader(starter.state, starter.environment).view(run_id)
        trace = open_trace(view, starter.environment)
        trace.verify()
        events = [(event.event_type, event.step_id) for event in starter.state.stores.reader.events(run_id)]
        versions = [version.files for version in starter.state.datasets.versions(f"kept{number}")]
        total = trace.search('currency = "EUR" AND total > 0').rows[0].row_id
        rows = [[str(record) for record in trace.step_rows(seq, limit=5_000).records] for seq in (10, 20)]
        trace.close()
    files = {file.key: bucket.sha256(file.key) for file in bucket.files(f"reports/{number}") if "/." not in file.key}
    return {
        "status": view.snapshot.status.value,
        "events": events,
        "versions": versions,
        "rows": rows,
        "total": str(run.explain(total, "total").to_json()),
        "captured": [each.to_arrow().to_pylist() for each in run.captures if each.status == "ready"],
        "files": files,
    }


def test_a_process_that_was_overtaken_changes_nothing_in_the_store_when_it_wakes_up(
    tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    root = s3.storage()
    bucket = ObjectStorage(root.place.__class__(root.place.scheme, root.place.store, ""), root.access)
    shop = shop_on_s3(tmp_path / "shop", root, s3.endpoint, s3_jars())
    with shop.starter() as starter:
        wishes = capture_wishes_of_data(["doubled"], "captures")
        runs = [starter.submit(f"p{number}", "2026-01", captures=wishes).run_id for number, _ in enumerate(PLACES)]
    before = list[dict[str, Any]]()
    with s3_driver(tmp_path) as driver, zombie_process(tmp_path) as zombie:
        for number, run_id in enumerate(runs):
            with zombie.frozen_before(shop.root, run_id, PLACES[number]):
                found = driver.run(shop.root, drive=run_id)
                assert found["status"] == "COMPLETED", (PLACES[number], found)
                before.append(everything(shop, run_id, number, bucket))
    for number, (run_id, seen) in enumerate(zip(runs, before, strict=True)):
        assert everything(shop, run_id, number, bucket) == seen, PLACES[number]
        done = [step for kind, step in seen["events"] if kind == "StepCompleted"]
        assert sorted(done) == ["10", "20", "30", "40", "load"], PLACES[number]
        assert [len(rows) for rows in seen["captured"]] == [1200], PLACES[number]
        assert (len(seen["versions"]), f"reports/{number}/all/_SUCCESS" in seen["files"]) == (1, True)
