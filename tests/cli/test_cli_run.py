"""`clew run` and `clew signal`: a run from its first line to its exit code, on an engine without Spark."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.signalling import send_signal
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.cli.main import run
from clew.cli.views.progress import LiveWatch
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.engine import JAVA_MISSING, JOIN_NOT_UNIQUE
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.events.envelope import StoredEvent
from clew.runs.executor import StepContext
from clew.runs.signals import SignalType
from clew.store.events import SqlEventReader
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew

STEPS = ["load", "5", "9", "10", "20", "30", "35", "40", "45", "50", "55", "60"]
NOT_UNIQUE = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of fx match the row with currency EUR"))


def run_id_in(text: str) -> str:
    found = re.search(r"run ([0-9a-f]{8})", text)
    assert found, text
    return found[1]


def tell(sample: Path, type_: SignalType) -> Callable[[object], None]:
    """Something that sends a signal to the only run that is under way."""

    def send(_context: object) -> None:
        environment = clew_package.open(sample).run_environment
        with open_state(environment) as state:
            [run] = [run for run in clew_package.open(sample).runs() if run.status == "RUNNING"]
            send_signal(state, environment, run.id, type_)

    return send


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The state store does not answer the thread that shows the progress, this often."""
    left, asked = [0], SqlEventReader.events

    def events(
        self: SqlEventReader, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> tuple[StoredEvent, ...]:
        if threading.current_thread() is threading.main_thread() and left[0] > 0:
            left[0] -= 1
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="disk I/O error"))
        return asked(self, run_id, after=after, limit=limit)

    monkeypatch.setattr(SqlEventReader, "events", events)
    yield left
    assert left == [0]


def test_a_store_that_is_away_for_a_moment_ends_no_run_that_is_watched(
    clew: Clew, sample: Path, engine: FakeEngine, away: list[int]
) -> None:
    engine.during["10"] = lambda _context: away.__setitem__(0, 2)
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[0] for line in answer.out.splitlines()[1 : len(STEPS) + 1]] == STEPS


def test_the_last_events_are_waited_for(clew: Clew, sample: Path, engine: FakeEngine, away: list[int]) -> None:
    engine.on_close = lambda: away.__setitem__(0, 3)
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[0] for line in answer.out.splitlines()[1 : len(STEPS) + 1]] == STEPS


def test_who_fails_to_watch_leaves_no_run_behind_that_goes_on_unseen(sample: Path, engine: FakeEngine) -> None:
    has_failed = threading.Event()

    def watch(event: StoredEvent) -> None:
        if event.step_id == "5":
            has_failed.set()
            raise ZeroDivisionError("not shown")

    def waits(_context: object) -> None:
        assert has_failed.wait(60)

    engine.during["9"] = waits
    with clew_package.open(sample) as workspace:
        run = workspace.submit("gl-close", "2026-01", request_id="watched")
        with pytest.raises(ZeroDivisionError, match="not shown"):
            run.drive(watch)
        assert all(not thread.name.startswith("drive ") for thread in threading.enumerate())
        assert workspace.operations.activity().leases == ()
        run.refreshed().drive()
        assert run.refreshed().status == "COMPLETED"
    assert engine.executed == STEPS


def test_a_run_says_what_each_step_did(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert (answer.code, answer.err) == (0, "")
    head, *lines, hint = answer.out.splitlines()
    steps, [end, *_notes] = lines[: len(STEPS)], lines[len(STEPS) :]
    assert re.fullmatch(r"gl-close v1, period 2026-01, run [0-9a-f]{8} \(environment dev, local\[2\]\)", head)
    assert [line.split()[0] for line in steps] == STEPS
    assert steps[0].split()[1:] == ["journal", "lines", "1,455", "rows"]
    assert steps[4].split(maxsplit=1)[1].split() == ["Reclassify", "travel", "34", "changed"]
    assert steps[-1].endswith("1,569 rows -> out/60")
    assert re.fullmatch(r"completed in .* s; trace 0 bytes", end)
    assert hint == f"next: clew trace {run_id_in(head)}"
    assert max(map(len, answer.out.splitlines())) <= 80


def test_json_is_one_document_with_steps_and_outputs(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    answer = clew("run", "Month close", "--period", "2026-01", "--json", cwd=sample)
    found = answer.json
    assert answer.code == 0
    assert {key: found[key] for key in ("status", "project", "project_version", "period", "environment")} == {
        "status": "COMPLETED",
        "project": "gl-close",
        "project_version": "1",
        "period": "2026-01",
        "environment": "dev",
    }
    assert found["rows_loaded"] == 1455
    assert [step["seq"] for step in found["steps"]] == [int(step) for step in STEPS[1:]]
    assert {key: found["steps"][3][key] for key in ("name", "type", "status", "rows_updated")} == {
        "name": "Reclassify travel",
        "type": "update",
        "status": "SUCCESS",
        "rows_updated": 34,
    }
    assert found["outputs"] == [{"seq": seq, "path": f"out/{seq}", "rows": 1569} for seq in (35, 60)]
    assert (found["captures"], found["error"], len(found["run_id"])) == ([], None, 36)


def test_the_same_request_again_is_the_same_run(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    arguments = ("run", "gl-close", "--period", "2026-01", "--request-id", "close-january", "--json")
    first, second = clew(*arguments, cwd=sample), clew(*arguments, cwd=sample)
    assert (first.code, second.code) == (0, 0)
    assert first.json["run_id"] == second.json["run_id"]
    assert engine.executed == STEPS


def test_another_request_is_another_run(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    for _ in range(2):
        assert clew("run", "gl-close", "--period", "2026-01", cwd=sample).code == 0
    assert len(clew("runs", "--json", cwd=sample).json["runs"]) == 2


def test_a_storage_root_that_takes_nothing_is_told_before_there_is_a_run(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    storage = sample / ".clew" / "storage"
    storage.parent.mkdir(exist_ok=True)
    storage.write_text("in the way", encoding="utf-8")
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 2
    assert answer.err.startswith(f"error UnwritableFolder: cannot write to {storage / 'plans'}: ")
    storage.unlink()
    assert clew("run", "gl-close", "--period", "2026-01", cwd=sample).code == 0


def test_the_next_command_is_for_the_same_workspace(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    answer = clew("run", "gl-close", "--period", "2026-01", "-w", str(sample), cwd=sample.parent)
    run_id = run_id_in(answer.out.splitlines()[0])
    assert answer.out.splitlines()[-1] == f"next: clew trace {run_id} -w {sample}"


def test_a_failure_names_operation_place_and_way_on(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = NOT_UNIQUE
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    lines = answer.out.splitlines()
    assert (answer.code, answer.err) == (1, "")
    assert lines[4].split() == ["10", "Convert", "to", "USD", "failed"]
    assert lines[5] == 'step 10 "Convert to USD" failed:'
    assert re.match(r"fragments/fx-to-usd.yaml:\d+:\d+: error JoinNotUnique: 2 rows of fx match", lines[6])
    run_id = run_id_in(lines[0])
    assert "The run FAILED at step 10; nothing was published. Fix the cause, then:" in lines
    assert f"  clew signal {run_id} RETRY_STEP --step 10" in lines


def test_a_failure_in_json_has_code_place_and_step(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = NOT_UNIQUE
    answer = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample)
    assert answer.code == 1
    assert answer.json["status"] == "FAILED"
    assert answer.json["last_completed_operation"] == 9
    error = answer.json["error"]
    assert (error["code"], error["file"], error["step"]) == ("JoinNotUnique", "fragments/fx-to-usd.yaml", 10)


def test_a_failure_keeps_the_remedy_that_was_found_for_it(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    hint = "312 rows would be duplicated; make the data of fx-rates unique"
    engine.failing["10"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of fx match", hint=hint))
    failed = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json
    assert failed["error"]["hint"] == hint
    assert hint in clew("show", failed["run_id"], cwd=sample).out


def test_a_failure_says_what_was_published_by_then(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["50"] = NOT_UNIQUE
    out = clew("run", "gl-close", "--period", "2026-01", cwd=sample).out
    assert "FAILED at step 50; already published: step 35; not published: step 60." in out


def test_a_failed_step_is_tried_again_after_the_fix(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = NOT_UNIQUE
    run_id = run_id_in(clew("run", "gl-close", "--period", "2026-01", cwd=sample).out)
    engine.failing.clear()
    answer = clew("signal", run_id, "RETRY_STEP", "--step", "10", "--reason", "rates corrected", cwd=sample)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == "accepted: RETRY_STEP of step 10"
    assert "completed in" in answer.out
    assert engine.executed == [*STEPS[:4], *STEPS[3:]]
    events = clew("events", run_id, cwd=sample).out
    assert "RETRY_STEP step 10 by" in events
    assert "rates corrected" in events


def test_a_step_can_be_skipped(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = NOT_UNIQUE
    run_id = run_id_in(clew("run", "gl-close", "--period", "2026-01", cwd=sample).out)
    answer = clew("signal", run_id, "skip-step", "--step", "10", "--json", cwd=sample)
    assert answer.code == 0
    assert [step["status"] for step in answer.json["steps"][:4]] == ["SUCCESS", "SUCCESS", "SKIPPED", "SUCCESS"]


def test_a_run_that_loaded_badly_is_loaded_again(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["load"] = NOT_UNIQUE
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert "FAILED at loading; nothing was published" in answer.out
    assert "RETRY_STEP --step 0" in answer.out
    engine.failing.clear()
    assert clew("signal", run_id_in(answer.out), "RETRY_STEP", "--step", "0", cwd=sample).code == 0


def test_a_run_that_failed_before_its_first_step_is_done_again_by_another(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    engine.failing["open"] = UserError(JAVA_MISSING.anywhere(problem="there is no Java"))
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 1
    assert "error JavaMissing: there is no Java" in answer.out
    first = run_id_in(answer.out)
    assert f"clew signal {first} RETRY_RUN" in answer.out
    assert "A retry uses the project and its resolvers as they were. If you have corrected them:" in answer.out
    assert f"  clew signal {first} RETRY_RUN --with-current-definitions" in answer.out
    engine.failing.clear()
    again = clew("signal", first, "RETRY_RUN", "--json", cwd=sample)
    assert (again.code, again.json["status"]) == (0, "COMPLETED")
    assert again.json["retry_of"].startswith(first)


def test_no_drive_leaves_the_run_to_a_worker(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = NOT_UNIQUE
    run_id = run_id_in(clew("run", "gl-close", "--period", "2026-01", cwd=sample).out)
    answer = clew("signal", run_id, "RETRY_STEP", "--step", "10", "--no-drive", "--json", cwd=sample)
    assert (answer.code, answer.json["accepted"], answer.json["status"]) == (0, True, "RUNNING")
    assert engine.executed[-1] == "10"
    busy = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert f"no process drives run {run_id}; " in busy.err
    assert f"`clew worker` continues it, `clew signal {run_id} CANCEL` ends it" in busy.err


def test_a_pause_stops_the_run_between_two_steps_and_resume_goes_on(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    engine.during["20"] = tell(sample, SignalType.PAUSE)
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 1
    assert engine.executed[-1] == "20"
    run_id = run_id_in(answer.out)
    assert answer.out.splitlines()[-2:] == [
        "The run is PAUSED; nothing was published.",
        f"next: clew signal {run_id} RESUME",
    ]
    busy = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert busy.code == 1
    message = 'another run of project "gl-close" for period "2026-01" is in progress'
    assert busy.err.startswith(f"error PeriodBusy: {message}")
    assert f"run {run_id} is PAUSED; `clew signal {run_id} RESUME` continues it" in busy.err
    assert clew("signal", run_id, "RESUME", cwd=sample).code == 0
    assert engine.executed == STEPS


def test_a_second_terminal_leaves_no_run_behind(
    clew: Clew, sample: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both requests are accepted while neither has begun; then the other one is faster."""
    with clew_package.open(sample) as workspace:
        first = workspace.submit("gl-close", "2026-01", request_id="first")
    prepare = RunStarter.prepare
    begun = list[str]()

    def overtaken(starter: RunStarter) -> None:
        prepare(starter)
        if not begun:
            begun.append(first.id)
            first.drive()

    monkeypatch.setattr(RunStarter, "prepare", overtaken)
    engine.during["20"] = tell(sample, SignalType.PAUSE)
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 1
    assert answer.err.startswith('error PeriodBusy: another run of project "gl-close" for period "2026-01"')
    assert f"run {first.id[:8]} is PAUSED" in answer.err
    second, kept = clew_package.open(sample).runs()
    assert (kept.id, kept.status, second.status) == (first.id, "PAUSED", "CANCELLED")

    waiting = clew("run", "gl-close", "--period", "2026-01", "--request-id", "mine", cwd=sample)
    assert waiting.code == 1
    assert [run.status for run in clew_package.open(sample).runs()] == ["PENDING", "CANCELLED", "PAUSED"]


def test_ctrl_c_cancels_in_order(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    def interrupt(context: StepContext) -> None:
        signal.raise_signal(signal.SIGINT)
        context.cancel.wait(60)
        context.cancel.check()

    engine.during["20"] = interrupt
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 130
    assert "cancelling; press Ctrl-C again to quit immediately" in answer.out
    assert "The run is CANCELLED; nothing was published." in answer.out
    assert clew("show", run_id_in(answer.out), "--json", cwd=sample).json["status"] == "CANCELLED"


def test_a_run_that_another_worker_has_is_left_alone(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.during["20"] = tell(sample, SignalType.PAUSE)
    arguments = ("run", "gl-close", "--period", "2026-01", "--request-id", "r1")
    run_id = clew(*arguments, "--json", cwd=sample).json["run_id"]
    with open_state(clew_package.open(sample).run_environment) as state:
        assert state.stores.leases.acquire(run_id, owner="somebody else", ttl_s=600) is not None
    answer = clew(*arguments, cwd=sample)
    assert answer.code == 1
    assert answer.err.startswith(f'error RunHeld: another worker holds the run "{run_id[:8]}"')


def test_a_run_may_wait_for_approval(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.storage_root = sample / ".clew" / "prod" / "storage"
    answer = clew("run", "gl-close", "--period", "2026-01", "--env", "prod", cwd=sample)
    run_id = run_id_in(answer.out)
    assert answer.code == 1
    assert engine.executed == []
    assert answer.out.splitlines()[-1] == f"next: clew signal {run_id} APPROVE --env prod"
    assert clew("signal", run_id, "APPROVE", "--env", "prod", cwd=sample).code == 0
    assert engine.executed == STEPS


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("gl-cloze", "--period", "2026-01"),
            3,
            'error UnknownProject: no project "gl-cloze"\n  did you mean "gl-close"?',
        ),
        (
            ("gl-close", "--period", "2026-1"),
            3,
            'error UnknownPeriod: no period "2026-1"\n  the calendars have 2026, quarters 2026-Q1 to',
        ),
        (("gl-close", "--period", "2026-01", "--env", "porduction"), 3, "error UnknownEnvironment"),
        (("gl-close",), 2, "error WrongUsage: missing option '--period'"),
    ],
)
def test_what_does_not_exist_is_said_before_anything_runs(
    clew: Clew, sample: Path, engine: FakeEngine, arguments: tuple[str, ...], code: int, message: str
) -> None:
    answer = clew("run", *arguments, cwd=sample)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith(message)
    assert engine.executed == []


def test_a_run_goes_on_when_its_reader_goes_away(
    sample: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    monkeypatch.chdir(sample)
    with os.fdopen(write, "w") as unread, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", unread)
        assert run(["run", "gl-close", "--period", "2026-01"]) == 0
    assert engine.executed == STEPS
    assert [each.status for each in clew_package.open(sample).runs()] == ["COMPLETED"]


def test_a_project_with_mistakes_does_not_run(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(path.read_text().replace("SUM(transactions.amount_usd)", "SUM(transactions.amonut_usd)"))
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 1
    assert 'did you mean "amount_usd"?' in answer.err
    assert clew("runs", "--json", cwd=sample).json["runs"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("CANCEL",), "refused: CANCEL: RUN_TERMINAL, the run is COMPLETED"),
        (("RETRY_STEP", "--step", "10"), "refused: RETRY_STEP of step 10: RUN_TERMINAL, the run is COMPLETED"),
    ],
)
def test_a_signal_that_makes_no_sense_is_refused_with_a_reason(
    clew: Clew, sample: Path, engine: FakeEngine, arguments: tuple[str, ...], message: str
) -> None:
    run_id = run_id_in(clew("run", "gl-close", "--period", "2026-01", cwd=sample).out)
    answer = clew("signal", run_id, *arguments, cwd=sample)
    assert (answer.code, answer.out) == (1, message + "\n")
    refused = clew("signal", run_id, *arguments, "--json", cwd=sample)
    assert (refused.code, refused.json["accepted"], refused.json["refusal"]) == (1, False, "RUN_TERMINAL")


def test_an_unknown_signal_is_wrong_usage(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    run_id = run_id_in(clew("run", "gl-close", "--period", "2026-01", cwd=sample).out)
    answer = clew("signal", run_id, "RETRY_STEPS", cwd=sample)
    assert answer.code == 2
    assert 'did you mean "RETRY_STEP"?' in answer.err


@pytest.mark.slow
def test_the_file_may_have_changed_since_its_version(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    assert clew("run", "gl-close", "--period", "2026-01", cwd=sample).code == 0
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(path.read_text().replace("'\"5290\"'", "'\"5291\"'"))
    answer = clew("run", "gl-close", "--period", "2026-02", cwd=sample)
    assert answer.out.startswith(
        "note: the project or a resolver of it has changed since version 1, which runs; `clew activate gl-close`"
    )
    assert "gl-close v1, period 2026-02" in answer.out


def test_a_terminal_sees_the_lines_above_one_that_moves(
    clew: Clew, sample: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.cli.driving.watch_for_output", LiveWatch)
    monkeypatch.setenv("TERM", "xterm")
    answer = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert answer.code == 0
    assert "starting Spark" in answer.out
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", answer.out).replace("\r", "\n")
    lines = [line.rstrip() for line in shown.splitlines()]
    assert [line.split()[0] for line in lines if re.match(r"   (load|\d+) ", line)] == STEPS
    assert lines[-1].startswith("next: clew trace ")
