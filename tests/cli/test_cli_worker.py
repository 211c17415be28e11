"""`clew worker`: takes what waits, and stops cleanly."""

import signal
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.starting import RunStarter
from clew.api.state import open_state
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew


def handle_sigterm_now() -> None:
    """Call what a worker has installed for SIGTERM, without waiting for the main thread to get round to it."""
    handler = signal.getsignal(signal.SIGTERM)
    assert callable(handler)
    handler(signal.SIGTERM, None)


@pytest.fixture
def waiting(sample: Path, engine: FakeEngine) -> str:
    """The id of a run that waits for a worker."""
    workspace = clew_package.open(sample)
    with open_state(workspace.run_environment) as state:
        return RunStarter(workspace.files, workspace.run_environment, state).submit("gl-close", "2026-01").run_id


def test_a_worker_drives_what_waits_until_it_is_told_to_stop(
    clew: Clew, sample: Path, engine: FakeEngine, waiting: str
) -> None:
    engine.on_close = lambda: signal.raise_signal(signal.SIGTERM)
    answer = clew("worker", cwd=sample)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].endswith("executes runs of environment dev; Ctrl-C stops it")
    assert lines[1] == f"run {waiting[:8]}: started, 12 steps"
    assert f"run {waiting[:8]}: step 20: 34 changed" in lines
    assert lines[-2:] == [f"run {waiting[:8]}: completed", "stopped"]
    assert clew("show", waiting, "--json", cwd=sample).json["status"] == "COMPLETED"


def test_a_stopping_worker_gives_its_run_back_after_the_present_step_and_another_goes_on(
    clew: Clew, sample: Path, engine: FakeEngine, waiting: str
) -> None:
    engine.during["20"] = lambda _context: handle_sigterm_now()
    assert clew("worker", cwd=sample).code == 0
    assert engine.executed[-1] == "20"
    assert clew("show", waiting, "--json", cwd=sample).json["status"] == "RUNNING"
    engine.during.clear()
    engine.on_close = lambda: signal.raise_signal(signal.SIGTERM)
    answer = clew("worker", cwd=sample)
    assert f"run {waiting[:8]}: taken over at step 30" in answer.out
    lines = answer.out.splitlines()
    assert f"run {waiting[:8]}: step load: 1,455 rows (done before)" in lines
    assert f"run {waiting[:8]}: step 20: 34 changed (done before)" in lines
    assert any(line.startswith(f"run {waiting[:8]}: step 30: ") for line in lines)
    assert not any(": 0 " in line for line in lines)
    assert engine.executed.count("20") == 1
    assert clew("show", waiting, "--json", cwd=sample).json["status"] == "COMPLETED"
