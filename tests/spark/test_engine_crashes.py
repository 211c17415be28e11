"""A process that is killed in the middle of the sample's month close, and another one that carries it on."""

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from engine_workspaces import Shop

from clew.app.running.reading import RunReader, RunView
from clew.app.running.tracing import open_trace
from clew.app.sample_workspace import write_sample
from clew.runs.request import RunFilter

pytestmark = pytest.mark.usefixtures("spark")

CRASH = Path(__file__).with_name("engine_crash.py")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = sample(tmp_path_factory.mktemp("undisturbed") / "gl")
    assert shop.run("gl-close").snapshot.status.value == "COMPLETED"
    return shop


def sample(root: Path) -> Shop:
    write_sample(root)
    return Shop(root)


def killed(shop: Shop, run_id: str, group: int, moment: str) -> None:
    command = [sys.executable, CRASH, shop.root, run_id, str(group), moment]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr.decode()[-2000:]


def driven(shop: Shop, run_id: str) -> RunView:
    """Nobody else gets the run before the lease of the dead process has run out."""
    waiting = threading.Event()
    while not (view := shop.drive(run_id)).snapshot.status.is_terminal:
        waiting.wait(0.1)
    return view


def outputs(shop: Shop) -> dict[str, list[str]]:
    closed = sorted(map(str, shop.read("out/gl-closed/2026-01")))
    files = (shop.root / "out/review/2026-01").glob("*.csv")
    review = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return {"closed": closed, "review": sorted(review)}


def records(shop: Shop) -> dict[int, list[str]]:
    """What every step of the only run did, without the ids of rows, which are those of the run."""
    with shop.starter() as starter:
        [run] = starter.state.stores.catalog.runs(RunFilter())
        view = RunReader(starter.state, starter.environment).view(run.run_id)
        trace = open_trace(view, starter.environment)
    trace.verify()
    return {
        step.seq: sorted(
            str((record.change_type, record.before, record.after))
            for record in trace.step_rows(step.seq, limit=10_000).records
        )
        for step in trace.plan.steps
    }


def test_a_killed_run_is_carried_on_at_its_first_incomplete_step_and_gives_the_same_outputs(
    undisturbed: Shop, tmp_path: Path
) -> None:
    """Killed twice: behind an output that is published and not committed, and within the last one."""
    shop = sample(tmp_path / "gl")
    run_id = shop.submit("gl-close")
    killed(shop, run_id, 2, "after")
    killed(shop, run_id, 4, "within")
    view = driven(shop, run_id)
    assert view.snapshot.status.value == "COMPLETED"
    assert outputs(shop) == outputs(undisturbed)
    assert records(shop) == records(undisturbed)
    with shop.starter() as starter:
        events = starter.state.stores.reader.events(run_id)
        versions = starter.state.datasets.versions("gl-closed")
    done = Counter(event.step_id for event in events if event.event_type == "StepCompleted")
    assert set(done.values()) == {1}
    assert view.plan is not None
    assert set(done) == {"load", *(str(step.seq) for step in view.plan.steps)}
    assert [version.version for version in versions] == [1]
    leftovers = [path.name for path in (shop.root / "out").rglob(".*") if path.name.endswith(".staging")]
    leftovers += [path.name for path in (shop.storage / "runs" / run_id).rglob("*.staging")]
    assert leftovers == []
