"""On S3: a process that is frozen past its lease, overtaken, and thawed publishes nothing and harms nothing.

One process is frozen before its last write of each kind, in one run after the other. Another one finishes the run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.run_view import RunReader
from clew.definitions import capture_wishes_of_data
from clew.definitions.storage_addresses import RemoteAddress
from clew.storage.inventory import expanded_links
from clew.storage.object_store import ObjectStorage
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.s3_driver import Driver, s3_driver
from tests.engine.spark_jars import s3_jars
from tests.engine.test_engine_zombies import MANY, STEPS, output
from tests.engine.zombie import Zombie, zombie_process
from tests.storage.moved_to_s3 import settings_on_s3
from tests.storage.s3_server import KEYS, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLACES = (
    *("input", "changes", "created", "registration", "capture", "links"),
    *("stored output", "stored marker", "stored append", "stored file", "stored job", "stored plan"),
)
"""Every place where something is written: each in a run of a project that has its number."""
PROJECTS = {place: "p" if place == "stored plan" else f"p{number}" for number, place in enumerate(PLACES)}


def shop_on_s3(folder: Path, root: ObjectStorage, endpoint: str, jars: list[str]) -> Shop:
    environment = {
        **settings_on_s3(root, endpoint),
        "spark": {"master": "local[2]", "config": {"spark.driver.memory": "1g"}, "jars": jars},
        "sinks": {"log": {"type": "training_log", "path": f"s3://{root.place.store}/sent"}},
        "tracelink": {"links_up_to_rows": 0},
    }
    reports = {"id": "reports", "type": "files", "options": {"root": f"s3://{root.place.store}/reports"}}
    files = {
        "clew.yaml": {"name": "shop", "environments": {"dev": environment}},
        "datasources/reports.yaml": reports,
        "data/orders.csv": MANY,
    }
    shop = make_shop(folder).write(files)
    for name in PROJECTS.values():
        steps = [*STEPS[:2], output(30, f"{name}/all", register_as_dataset=f"kept-{name}")]
        one_file = output(50, f"{name}/list.csv", format="csv")
        shop.project(name, *steps, output(40, f"{name}/log", mode="append"), one_file)
    return shop


@dataclass(frozen=True)
class Site:
    """A workspace on S3, one that is frozen and one that goes on."""

    shop: Shop
    bucket: ObjectStorage
    driver: Driver
    zombie: Zombie

    def overtaken(self, place: str) -> tuple[str, dict[str, Any]]:
        """Freeze a run at a place, let the other finish it, look, and let the first one go on.

        Returns the run, and what there was before the first one woke up.
        """
        run_id = "none" if place == "stored plan" else self.submitted(PROJECTS[place])
        if place == "links":
            self.finished(self.driver.run(self.shop.root, drive=run_id))
        with self.zombie.frozen_before(self.shop.root, run_id, place):
            if place == "links":
                assert self.driver.run(self.shop.root, expand=run_id) == {"links": [1200]}
            elif place == "stored plan":
                run_id = self.finished(self.driver.run(self.shop.root))
            else:
                self.finished(self.driver.run(self.shop.root, drive=run_id))
            return run_id, self.everything(place, run_id)

    @staticmethod
    def finished(run: dict[str, Any]) -> str:
        assert run["status"] == "COMPLETED", run
        return str(run["run_id"])

    def submitted(self, project: str) -> str:
        with self.shop.starter() as starter:
            wishes = capture_wishes_of_data(["doubled"], "captures")
            return starter.submit(project, "2026-01", captures=wishes).run_id

    def everything(self, place: str, run_id: str) -> dict[str, Any]:
        """All that can be asked about a run, and every object that users see of it."""
        run, name = clew.open(self.shop.root).get_run(run_id), PROJECTS[place]
        with self.shop.starter() as starter:
            view = RunReader(starter.state, starter.environment).view(run_id)
            trace = open_trace(view, starter.environment)
            trace.verify()
            events = [(event.event_type, event.step_id) for event in starter.state.stores.reader.events(run_id)]
            versions = [version.files for version in starter.state.datasets.versions(f"kept-{name}")]
            total = trace.search('currency = "EUR" AND total > 0').rows[0].row_id
            rows = [[str(record) for record in trace.step_rows(seq, limit=5_000).records] for seq in (10, 20)]
            trace.close()
            links = expanded_links(starter.environment.storage_root, run_id, 20)
            records = starter.state.captures.of_run(run_id)
        sent = {each.path for record in records if record.outcome.job for each in record.outcome.job.emissions}
        return {
            "status": view.snapshot.status.value,
            "events": events,
            "versions": versions,
            "rows": rows,
            "total": str(run.explain(total, "total").to_json()),
            "captured": [each.to_arrow().to_pylist() for each in run.captures if each.status == "ready"],
            "links": [] if links is None else [(file.path, file.rows, file.sha256) for file in links.files],
            "files": self.digests(f"reports/{name}"),
            "sent": {path: self.bucket.sha256(path.removeprefix(f"{self.bucket.address}/")) for path in sent},
            "plan": self.bucket.sha256(f"clew/plans/{view.plan.digest}.json") if view.plan is not None else None,
        }

    def digests(self, folder: str) -> dict[str, str]:
        return {file.key: self.bucket.sha256(file.key) for file in self.bucket.files(folder) if "/." not in file.key}


@contextmanager
def site(folder: Path, s3: S3Server) -> Iterator[Site]:
    root = s3.storage()
    bucket = ObjectStorage(RemoteAddress(root.place.scheme, root.place.store, ""), root.access)
    shop = shop_on_s3(folder / "shop", root, s3.endpoint, s3_jars())
    with s3_driver(folder) as driver, zombie_process(folder) as zombie:
        yield Site(shop, bucket, driver, zombie)


def test_a_process_that_was_overtaken_changes_nothing_in_the_store_when_it_wakes_up(
    tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    with site(tmp_path, s3) as at:
        found = {place: at.overtaken(place) for place in PLACES}
        for place, (run_id, before) in found.items():
            assert at.everything(place, run_id) == before, place
    for place, (_, seen) in found.items():
        done = [step for kind, step in seen["events"] if kind == "StepCompleted"]
        assert sorted(done) == ["10", "20", "30", "40", "50", "load"], place
        assert [len(rows) for rows in seen["captured"]] == ([] if place == "stored plan" else [1200]), place
        assert [rows for _, rows, _ in seen["links"]] == ([1200] if place == "links" else []), place
        name = PROJECTS[place]
        ends = (f"reports/{name}/all/_SUCCESS", f"reports/{name}/log/_SUCCESS", f"reports/{name}/list.csv")
        assert all(each in seen["files"] for each in ends), place
        # What the frozen attempt at a job had begun to send stays on record.
        assert (len(seen["versions"]), len(seen["sent"])) == (1, 2 if place == "stored job" else 1), place
