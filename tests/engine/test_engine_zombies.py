"""A process that is frozen past its lease, overtaken, and thawed: it publishes nothing and harms nothing.

It is frozen with SIGSTOP just before its last write of each kind. Another process finishes the run. When the first one
wakes up and goes on, every answer about the run stays what it was.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.run_view import RunReader, RunView
from clew.api.state import open_state
from clew.captures.worker import CaptureWorker
from clew.definitions import capture_wishes_of_data
from clew.runs.request import RunFilter
from clew.storage.inventory import expanded_links
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.zombie import Zombie, zombie_process

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

MANY = "id,currency,amount,_period\n" + "".join(
    f"{index},{'EUR' if index % 3 else 'USD'},{index}.25,2026-01\n" for index in range(1, 1201)
)
SERIALIZED = {"serialize_rowset": {"format": "parquet", "mode": "view"}}
SINK = {"log": {"type": "training_log", "path": "out/log"}}


def output(seq: int, path: str, **more: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path, "format": more.pop("format", "parquet")}
    return {"seq": seq, "name": path, "type": "output", "arguments": {"destination": destination, **more}}


STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "assign": "doubled",
        "after_request": [
            {"name": "sent", "tasks": [{"take": 5}, SERIALIZED, {"emit_training_log": {"sink": "log"}}]},
        ],
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
    output(30, "all", register_as_dataset="kept"),
    output(40, "log", mode="append"),
    output(50, "list.csv", format="csv"),
]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    settings = {"name": "shop", "environments": {"dev": {"mode": "dev", "sinks": SINK}}}
    return make_shop(tmp_path / "shop").write({"clew.yaml": settings, "data/orders.csv": MANY}).project("p", *STEPS)


@pytest.fixture(scope="module")
def zombie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zombie]:
    with zombie_process(tmp_path_factory.mktemp("zombie")) as process:
        yield process


def driven(shop: Shop, run_id: str) -> RunView:
    """Nobody else gets the run before the lease of the frozen process has run out."""
    waiting = threading.Event()
    while not (view := shop.drive(run_id)).snapshot.status.is_terminal:
        waiting.wait(0.1)
    return view


def submitted(shop: Shop) -> str:
    with shop.starter() as starter:
        return starter.submit("p", "2026-01", captures=capture_wishes_of_data(["doubled"], "captures")).run_id


def everything(shop: Shop, run_id: str) -> dict[str, Any]:
    """All that can be asked about a run, and every byte that users see of it."""
    run = clew.open(shop.root).get_run(run_id)
    with shop.starter() as starter:
        view = RunReader(starter.state, starter.environment).view(run_id)
        trace = open_trace(view, starter.environment)
        trace.verify()
        events = [(event.event_type, event.step_id) for event in starter.state.stores.reader.events(run_id)]
        versions = [version.files for version in starter.state.datasets.versions("kept")]
    folder = shop.root / "reports"
    hidden = (".", "_")
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(hidden)
    }
    return {
        "status": view.snapshot.status.value,
        "events": events,
        "files": files,
        "versions": versions,
        "rows": [[str(record) for record in trace.step_rows(seq, limit=5_000).records] for seq in (10, 20)],
        "total": str(run.explain(trace.search('currency = "EUR" AND total > 0').rows[0].row_id, "total").to_json()),
    }


@pytest.mark.parametrize("place", ["input", "changes", "created", "output", "registration", "append", "file"])
def test_a_process_that_was_overtaken_changes_nothing_when_it_wakes_up(shop: Shop, zombie: Zombie, place: str) -> None:
    if place == "output":
        assert shop.run("p").snapshot.status.value == "COMPLETED"  # there is something to replace
    run_id = submitted(shop)
    with zombie.frozen_before(shop.root, run_id, place):
        assert driven(shop, run_id).snapshot.status.value == "COMPLETED"
        before = everything(shop, run_id)
    assert everything(shop, run_id) == before
    assert before["status"] == "COMPLETED"
    done = [step for kind, step in before["events"] if kind == "StepCompleted"]
    assert sorted(done) == ["10", "20", "30", "40", "50", "load"]
    runs = 2 if place == "output" else 1
    assert len(shop.read("reports/log")) == 1202 * runs
    assert len(before["versions"]) == runs


@pytest.mark.parametrize("place", ["capture", "job"])
def test_a_capture_or_job_that_was_overtaken_changes_nothing_when_it_wakes_up(
    shop: Shop, zombie: Zombie, place: str
) -> None:
    run_id = submitted(shop)
    with zombie.frozen_before(shop.root, run_id, place):
        workspace = clew.open(shop.root)
        waiting = threading.Event()
        with open_state(workspace.run_environment) as state, shop.starter() as starter:
            worker = CaptureWorker(workspace.run_environment, state, starter.session)
            while not all(record.status.is_over for record in state.captures.of_run(run_id)):
                if not worker.work_once():
                    waiting.wait(0.1)
            records = {record.capture_id: record for record in state.captures.of_run(run_id)}
        kept = [each.to_arrow().to_pylist() for each in clew.open(shop.root).get_run(run_id).captures]
        sent = sent_files(shop, records)
        assert {record.status.value for record in records.values()} == {"ready"}
    with open_state(clew.open(shop.root).run_environment) as state:
        assert {record.capture_id: record for record in state.captures.of_run(run_id)} == records
    assert [each.to_arrow().to_pylist() for each in clew.open(shop.root).get_run(run_id).captures] == kept
    assert len(kept[0]) == 1200
    assert sent_files(shop, records) == sent


def test_links_that_were_worked_out_meanwhile_stay_what_they_are(shop: Shop, zombie: Zombie) -> None:
    settings = json.loads((shop.root / "clew.yaml").read_text())
    settings["environments"]["dev"]["tracelink"] = {"links_up_to_rows": 0}
    run_id = submitted(shop.write({"clew.yaml": settings}))
    assert driven(shop, run_id).snapshot.status.value == "COMPLETED"
    with zombie.frozen_before(shop.root, run_id, "links"):
        assert [step.links for step in clew.open(shop.root).expand_windows(run_id)] == [1200]
        before = everything(shop, run_id), files_of_links(shop, run_id)
    assert (everything(shop, run_id), files_of_links(shop, run_id)) == before
    assert [step.links for step in clew.open(shop.root).expand_windows(run_id)] == [0]


def files_of_links(shop: Shop, run_id: str) -> list[tuple[str, str]]:
    """The files that the description of the links names, with digests; all of them are as they were written."""
    described = expanded_links(shop.storage_root, run_id, 20)
    assert described is not None
    assert sum(file.rows for file in described.files) == 1200
    for file in described.files:
        assert shop.storage_root.sha256(file.path) == file.sha256
    return [(file.path, file.sha256) for file in described.files]


def test_a_plan_that_was_written_meanwhile_stays_what_it_is(shop: Shop, zombie: Zombie) -> None:
    with zombie.frozen_before(shop.root, "none", "plan"):
        assert not list(shop.storage.glob("plans/*.json"))
        run_id = submitted(shop)
        assert driven(shop, run_id).snapshot.status.value == "COMPLETED"
        [plan] = shop.storage.glob("plans/*.json")
        before = everything(shop, run_id), plan.read_bytes(), plan.stat().st_ino
    assert (everything(shop, run_id), plan.read_bytes(), plan.stat().st_ino) == before
    with shop.starter() as starter:
        [late] = [run for run in starter.state.stores.catalog.runs(RunFilter()) if run.run_id != run_id]
    assert driven(shop, late.run_id).snapshot.status.value == "COMPLETED"


def sent_files(shop: Shop, records: dict[str, Any]) -> dict[str, str]:
    """What jobs have sent, by the paths that their records name."""
    reports = [record.outcome.job for record in records.values() if record.outcome.job is not None]
    paths = [shop.root / emission.path for report in reports for emission in report.emissions]
    assert paths
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
