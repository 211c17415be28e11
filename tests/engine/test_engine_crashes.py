"""A process that is killed in the middle of the sample's month close, and another one that carries it on."""

import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from clew.api.run_view import RunReader, RunView
from clew.runs.request import RunFilter
from clew.sample import write_sample
from clew.storage.committed import committed_parts
from clew.storage.parts import IdBlock
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop
from tests.engine.lineage_runs import blocks_of, registered_rows, trace_ids

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

CRASH = "tests.engine.engine_crash"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = sample(tmp_path_factory.mktemp("undisturbed") / "gl")
    assert shop.run("gl-close").snapshot.status.value == "COMPLETED"
    return shop


def sample(root: Path) -> Shop:
    write_sample(root)
    return Shop(root)


def killed(shop: Shop, run_id: str, group: int, moment: str) -> None:
    command = [sys.executable, "-m", CRASH, str(shop.root), run_id, str(group), moment]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr.decode()[-2000:]


def driven(shop: Shop, run_id: str) -> RunView:
    """No other worker gets the run before the lease of the dead process has expired."""
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


@dataclass(frozen=True)
class CarriedOn:
    """A run that was killed twice: behind an output that was published and not committed, and within the last one."""

    shop: Shop
    view: RunView
    blocks: tuple[dict[str, IdBlock], ...]
    """The trace ids of files that were committed when it was killed, each time."""


@pytest.fixture(scope="module")
def carried_on(tmp_path_factory: pytest.TempPathFactory) -> CarriedOn:
    shop = sample(tmp_path_factory.mktemp("killed") / "gl")
    run_id = shop.submit("gl-close")
    blocks = list[dict[str, IdBlock]]()
    for group, moment in ((2, "after"), (4, "within")):
        killed(shop, run_id, group, moment)
        with shop.starter() as starter:
            blocks.append(blocks_of(shop, RunReader(starter.state, starter.environment).view(run_id)))
    return CarriedOn(shop, driven(shop, run_id), tuple(blocks))


def test_trace_ids_are_the_same_after_a_crash_and_resume(carried_on: CarriedOn) -> None:
    first, second = carried_on.blocks
    after = blocks_of(carried_on.shop, carried_on.view)
    assert first
    assert first.items() <= second.items() <= after.items()
    assert len(after) > len(first)
    ids = {
        file.ids.trace_id(position)
        for part in committed_parts(carried_on.shop.storage_root, carried_on.view.snapshot)
        for file in part.files
        if isinstance(file.ids, IdBlock)
        for position in range(file.rows)
    }
    registered = trace_ids(registered_rows(carried_on.shop, carried_on.view))
    assert len(set(registered)) == len(registered)
    assert set(registered) < ids


def test_a_killed_run_is_carried_on_at_its_first_incomplete_step_and_gives_the_same_outputs(
    undisturbed: Shop, carried_on: CarriedOn
) -> None:
    shop, view, run_id = carried_on.shop, carried_on.view, carried_on.view.record.run_id
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
