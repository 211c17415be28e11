"""The rules of the queue hold for `clew run` and for `Workspace.run`, not only for workers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.state import State, open_state
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.events import RunQueued, RunStarted
from clew.runs.executor import StepContext
from clew.runs.leases import Lease, Wait, WaitReason
from clew.runs.signals import SignalType
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew


def set_queue(sample: Path, queue: str) -> None:
    path = sample / "clew.yaml"
    path.write_text(path.read_text().replace("    mode: dev\n", f"    mode: dev\n    queue: {queue}\n", 1))


@contextmanager
def only_place_taken(sample: Path) -> Iterator[Callable[[], None]]:
    """Another worker has a run of another project; the function ends that run."""
    workspace = clew_package.open(sample)
    run = workspace.submit("group-report", "2026-01")
    with open_state(workspace.run_environment) as state:
        claim = state.stores.leases.claim("dev", owner="another worker", ttl_s=600, max_running=1)
        assert claim is not None
        assert claim.run.run_id == run.id
        yield lambda: _give_up(state, claim.lease)


def _give_up(state: State, lease: Lease) -> None:
    state.stores.leases.release(lease, seen_seq=0)
    assert state.stores.catalog.load("dev").running == 0


def test_clew_run_waits_for_a_free_place(
    clew: Clew, sample: Path, engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    set_queue(sample, "{max_running: 1}")
    seen, over = list[str](), threading.Event()

    def free_the_place_once_it_waits(give_up: Callable[[], None]) -> None:
        while not over.wait(0.05):
            seen.append(capsys.readouterr().out)
            if "waiting:" in "".join(seen):
                seen.append(f"executed so far: {engine.executed}")
                return give_up()
        return None

    with only_place_taken(sample) as give_up:
        helper = threading.Thread(target=free_the_place_once_it_waits, args=(give_up,))
        helper.start()
        try:
            answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
        finally:
            over.set()
            helper.join()
    text = "".join(seen)
    assert "waiting: 1 run already running, no place is free; `clew runs --status running` lists them" in text
    assert "executed so far: []" in text
    assert (answer.code, "completed in" in answer.out) == (0, True)


def test_a_run_of_python_waits_for_a_free_place(sample: Path, engine: FakeEngine) -> None:
    set_queue(sample, "{max_running: 1}")
    waits, executed = list[Wait](), list[list[str]]()
    with only_place_taken(sample) as give_up:

        def on_wait(wait: Wait) -> None:
            waits.append(wait)
            executed.append(list(engine.executed))
            give_up()

        run = clew_package.open(sample).submit("gl-close", "2026-01")
        run.drive(on_wait=on_wait)
    assert [wait.reason for wait in waits] == [WaitReason.NO_PLACE]
    assert executed == [[]]
    assert run.refreshed().status == "COMPLETED"


@pytest.mark.parametrize("door", ["command", "python"])
def test_a_delayed_run_does_not_start_before_its_time(clew: Clew, sample: Path, engine: FakeEngine, door: str) -> None:
    set_queue(sample, "{policy: DELAY, max_running: 1, delay_seconds: 2}")
    with only_place_taken(sample) as give_up:
        submitted = clew_package.open(sample).submit("gl-close", "2026-01", request_id="r")
        give_up()
        if door == "command":
            answer = clew("run", "gl-close", "--period", "2026-01", "--request-id", "r", cwd=sample)
            assert (answer.code, "waiting: the run starts at " in answer.out) == (0, True)
        else:
            assert clew_package.open(sample).run("gl-close", "2026-01", request_id="r").status == "COMPLETED"
    queued, started = (
        next(event for event in submitted.events() if isinstance(event.body, kind)) for kind in (RunQueued, RunStarted)
    )
    assert isinstance(queued.body, RunQueued)
    assert queued.body.not_before is not None
    assert started.persisted_at >= queued.body.not_before


def test_a_run_that_waits_can_be_cancelled(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    set_queue(sample, "{max_running: 1}")
    with only_place_taken(sample):
        run = clew_package.open(sample).submit("gl-close", "2026-01")

        def cancel(_wait: Wait) -> None:
            assert clew("signal", run.id, "CANCEL", cwd=sample).code == 0

        run.drive(on_wait=cancel)
    assert (run.refreshed().status, engine.executed) == ("CANCELLED", [])


def test_a_step_that_is_under_way_is_cancelled_with_its_run(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    def cancelled(context: StepContext) -> None:
        with clew_package.open(sample) as workspace:
            [run] = workspace.runs()
            run.signal(SignalType.CANCEL)
        assert context.cancel.wait(60)
        context.cancel.check()

    engine.during["20"] = cancelled
    ended = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json
    assert ended["status"] == "CANCELLED"
    [step] = [step for step in ended["steps"] if step["seq"] == 20]
    assert step["error"]["code"] == "StepInterrupted"


def test_a_run_that_a_worker_takes_while_it_waits_is_waited_for(sample: Path, engine: FakeEngine) -> None:
    set_queue(sample, "{max_running: 1}")
    workspace = clew_package.open(sample)
    reasons = list[WaitReason]()
    with only_place_taken(sample) as give_up, open_state(workspace.run_environment) as state:
        run = workspace.submit("gl-close", "2026-01", request_id="r")
        taken = list[Lease]()

        def on_wait(wait: Wait) -> None:
            reasons.append(wait.reason)
            if wait.reason is WaitReason.NO_PLACE:
                claim = state.stores.leases.claim_run(run.id, owner="another worker", ttl_s=600, max_running=2)
                assert not isinstance(claim, Wait)
                taken.append(claim.lease)
            else:
                state.stores.leases.release(taken[0], seen_seq=0)
                give_up()

        run.drive(on_wait=on_wait)
    assert reasons == [WaitReason.NO_PLACE, WaitReason.HELD]
    assert run.refreshed().status == "COMPLETED"


def set_environment(sample: Path, *settings: str) -> None:
    path = sample / "clew.yaml"
    lines = "".join(f"    {line}\n" for line in settings)
    path.write_text(path.read_text().replace("    mode: dev\n", f"    mode: dev\n{lines}", 1))


def test_a_run_that_is_rejected_is_told_what_a_repetition_would_be(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    set_queue(sample, "{policy: REJECT, max_running: 1}")
    with only_place_taken(sample):
        unnamed = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
        named = clew("run", "gl-close", "--period", "2026-01", "--request-id", "r", cwd=sample)
    assert unnamed.code == named.code != 0
    assert "that will be another run (--request-id ID makes it the same request)" in unnamed.err
    assert "keeps its run id" not in unnamed.err
    assert "retry the same request later; it keeps its run id" in named.err
    assert len(clew("runs", "--project", "gl-close", "--json", cwd=sample).json["runs"]) == 2


def test_the_length_of_the_queue_is_a_setting(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    set_queue(sample, "{max_running: 1, max_queued: 1}")
    with only_place_taken(sample):
        clew_package.open(sample).submit("gl-close", "2026-01")
        answer = clew("run", "gl-close", "--period", "2026-02", "--request-id", "r", cwd=sample)
    assert answer.code != 0
    assert "error Overloaded:" in answer.err


def test_logical_attempts_are_a_setting(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    set_environment(sample, "retry: {max_attempts: 2, logical_attempts: 2, base_delay_ms: 0}")
    failures = iter([True, True, True, False])

    def away(_context: object) -> None:
        if next(failures):
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="away"))

    engine.during["20"] = away
    answer = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample)
    assert answer.code == 0
    (step,) = [step for step in answer.json["steps"] if step["seq"] == 20]
    assert (step["logical_attempt"], step["engine_attempt"]) == (2, 2)


def test_the_attempts_of_a_delivery_are_a_setting(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    bus = "bus: [{id: audit, type: webhook, url: 'http://127.0.0.1:9/'}]"
    set_environment(sample, bus, "delivery: {max_attempts: 1, finish_seconds: 60}")
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    letters = clew("dlq", "--json", cwd=sample).json["dead_letters"]
    assert letters[0]["run_id"] == run_id
    assert {letter["attempts"] for letter in letters} == {1}
    assert all("audit" in letter["error"] for letter in letters)


def test_the_limits_of_signals_are_a_setting(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    set_environment(sample, "signals: {max_bytes: 300, max_per_minute: 2}")
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    answers = [
        clew("signal", run_id, "PAUSE", "--json", "--reason", reason, cwd=sample).json["refusal"]
        for reason in ("x" * 300, "short", "once more")
    ]
    assert answers == ["TOO_LARGE", "RUN_TERMINAL", "RATE_LIMITED"]


def test_the_time_of_a_lease_is_a_setting(sample: Path, engine: FakeEngine) -> None:
    set_environment(sample, "lease: {ttl_seconds: 500}")
    workspace = clew_package.open(sample)
    left = list[float]()

    def look(_context: object) -> None:
        with open_state(workspace.run_environment) as state:
            (lease,) = state.stores.activity.leases("dev")
            left.append((lease.expires_at - state.stores.reader.now()).total_seconds())

    engine.during["20"] = look
    assert workspace.run("gl-close", "2026-01").status == "COMPLETED"
    assert 30 < left[0] <= 500
