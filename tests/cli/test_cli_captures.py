"""Captures and postlude jobs around runs, on an engine without Spark: refused before the run, isolated after it."""

import json
import threading
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.queue import CaptureRecord
from clew.captures.worker import CaptureWorker
from clew.definitions import capture_wishes_of_data
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.runs.environment import RunEnvironment
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew

GL_CLOSE = ("run", "gl-close", "--period", "2026-01")


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["--capture", "cleand"], 3, "UnknownBreakpoint"),
        (["--capture", "cleaned=everything"], 2, "InvalidValue"),
        (["--capture", "cleaned=full_raw", "--env", "prod"], 1, "CaptureNotAllowed"),
        (["--captures", "nowhere.yaml"], 1, "UnreadableFile"),
        (["--capture", "cleand", "--dry-run"], 3, "UnknownBreakpoint"),
        (["--captures", "misspelt.yaml"], 1, "NoMatchingColumn"),
    ],
)
def test_what_is_not_allowed_is_refused_before_there_is_a_run(
    clew: Clew, sample: Path, engine: FakeEngine, arguments: list[str], code: int, error: str
) -> None:
    (sample / "misspelt.yaml").write_text("captures: [{breakpoint: cleaned, exclude_columns: [ammount*]}]\n")
    answer = clew(*GL_CLOSE, *arguments, "--json", cwd=sample)
    assert (answer.code, answer.json["error"]["code"]) == (code, error)
    environment = ["--env", "prod"] if "prod" in arguments else []
    assert clew("runs", "--json", *environment, cwd=sample).json["runs"] == []
    assert engine.executed == []


def test_a_mistake_in_a_file_of_captures_is_shown_where_it_stands(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    (sample / "captures.yaml").write_text(
        "captures:\n  - {breakpoint: cleaned, ttl_days: 0}\n  - {breakpoint: cleaned, limits: {max_rows: -5}}\n"
    )
    told = clew(*GL_CLOSE, "--captures", "captures.yaml", cwd=sample)
    assert told.code == 1
    assert "captures.yaml:2:37: error InvalidValue" in told.err
    assert "    3 |   - {breakpoint: cleaned, limits: {max_rows: -5}}" in told.err
    assert engine.executed == []


def test_a_sink_that_the_environment_does_not_have_is_refused_before_there_is_a_run(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    settings = sample / "clew.yaml"
    dev, marker, prod = settings.read_text().partition("  # A team")
    settings.write_text(
        dev.replace("    sinks:", "    captures: {ttl_days: 3}").partition("      close-review")[0] + marker + prod
    )
    answer = clew(*GL_CLOSE, "--json", cwd=sample)
    assert (answer.code, answer.json["error"]["code"]) == (1, "SinkNotAllowed")
    assert engine.executed == []


def test_the_answer_of_a_run_has_a_handle_for_each_capture(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    answer = clew(*GL_CLOSE, "--capture", "cleaned", "--capture", "gl-close::fx::converted=stats", "--json", cwd=sample)
    assert answer.code == 0
    captures = {each["breakpoint"]: each for each in answer.json["captures"]}
    assert set(captures) == {"gl-close::main::cleaned", "gl-close::fx::converted"}
    for each in captures.values():
        assert each["capture_id"].startswith("cap_")
        assert each["status"] == "failed"
        assert each["error"]["code"]


def test_captures_and_jobs_that_fail_leave_the_run_as_it_is(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    plain = clew(*GL_CLOSE, "--json", cwd=sample)
    captured = clew(*GL_CLOSE, "--capture", "*", "--json", cwd=sample)
    for answer in (plain, captured):
        assert (answer.code, answer.json["status"], answer.json["error"]) == (0, "COMPLETED", None)
        [job] = answer.json["postlude_jobs"]
        assert (job["name"], job["status"]) == ("converted-lines", "failed")
        assert job["job_id"].startswith("job_1_")
        assert job["error"]["code"]
    assert [step["status"] for step in plain.json["steps"]] == [step["status"] for step in captured.json["steps"]]
    assert [
        event
        for event in clew("events", captured.json["run_id"], "--json", cwd=sample).out.splitlines()
        if "cap_" in event
    ] == []


def test_captures_and_jobs_tell_the_facts_that_operators_look_for(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    answer = clew(*GL_CLOSE, "--capture", "cleaned", "--json", cwd=sample).json
    [capture], [job] = answer["captures"], answer["postlude_jobs"]
    assert (capture["breakpoint"], capture["seq"]) == ("gl-close::main::cleaned", 30)
    assert (capture["asked_mode"], capture["limits"]) == (
        "full_raw",
        {"max_bytes": 100_000_000, "max_rows": 1_000_000, "max_columns": 2000},
    )
    assert capture["estimated_bytes"] >= 0
    assert capture["freeze_us"] >= 0
    assert (capture["degradations"], capture["drop_reason"], capture["attempts"]) == ([], None, 1)
    assert job["anchor"] == "gl-close::main::cleaned"
    assert job["created_at"] <= job["started_at"] <= job["completed_at"]
    assert (job["attempts"], job["bytes"], job["emissions"], job["drop_reason"]) == (1, 0, [], None)


def test_in_prod_captures_wait_for_a_worker(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    settings = sample / "clew.yaml"
    settings.write_text(settings.read_text().replace("    approval: required\n", ""))
    engine.storage_root = sample / ".clew" / "prod" / "storage"
    answer = clew(*GL_CLOSE, "--env", "prod", "--capture", "cleaned", "--json", cwd=sample)
    assert (answer.code, answer.json["status"]) == (0, "COMPLETED")
    [capture] = answer.json["captures"]
    assert (capture["status"], capture["asked_mode"]) == ("queued", "sample_raw")
    assert [job["status"] for job in answer.json["postlude_jobs"]] == ["queued"]

    environment = clew_package.open(sample, "prod").run_environment
    with open_state(environment) as state:
        worker = CaptureWorker(environment, state, lambda: None)  # type: ignore[arg-type, return-value]
        assert worker.work_once()
        assert worker.work_once()
        assert not worker.work_once()
    listed = clew("captures", "--env", "prod", "--json", cwd=sample).json["captures"]
    assert [each["status"] for each in listed] == ["failed"]


def test_a_run_whose_captures_are_still_to_be_made_is_kept_unless_forced(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    settings = sample / "clew.yaml"
    settings.write_text(settings.read_text().replace("    approval: required\n", ""))
    storage = engine.storage_root = sample / ".clew" / "prod" / "storage"
    run = clew(*GL_CLOSE, "--env", "prod", "--capture", "cleaned", "--json", cwd=sample).json
    capture_id, run_id = run["captures"][0]["capture_id"], run["run_id"]
    begun = storage / "captures" / capture_id / "1.staging"
    begun.mkdir(parents=True)

    refused = clew("rm", run_id, "--env", "prod", cwd=sample)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f'error CapturesWaiting: the rows of the run "{run_id[:8]}" are still needed')
    assert "--force" in refused.err
    assert begun.exists()

    assert clew("rm", run_id, "--env", "prod", "--force", cwd=sample).code == 0
    [capture] = clew("captures", "--env", "prod", "--json", cwd=sample).json["captures"]
    assert (capture["status"], capture["drop_reason"]) == ("dropped", "RUN_REMOVED")
    assert not begun.parent.exists()
    with open_state(clew_package.open(sample, "prod").run_environment) as state:
        assert [record.status.value for record in state.captures.of_run(run_id)] == ["dropped", "dropped"]
        assert state.captures.claim(owner="w", ttl_s=1) is None


def run_that_nobody_came_after(sample: Path) -> tuple[RunEnvironment, str]:
    """A run with a capture, whose process ended before it was settled what becomes of the capture."""
    workspace = clew_package.open(sample)
    environment = workspace.run_environment
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        wishes = capture_wishes_of_data(["cleaned"], "captures")
        run_id = starter.submit("gl-close", "2026-01", captures=wishes).run_id
        starter.drive(run_id, threading.Event())
        frozen = [record.frozen for record in state.captures.of_run(run_id)]
        assert all(each is not None and each.mode is None for each in frozen)
    return environment, run_id


def test_captures_that_were_never_settled_are_dropped_with_their_run(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    del engine
    environment, run_id = run_that_nobody_came_after(sample)
    assert clew("rm", run_id, cwd=sample).code == 1
    assert clew("rm", run_id, "--force", cwd=sample).code == 0
    with open_state(environment) as state:
        assert {record.outcome.drop_reason for record in state.captures.of_run(run_id)} == {"RUN_REMOVED"}
        assert state.captures.unfrozen_runs() == ()


def test_a_worker_drops_captures_whose_run_is_gone(sample: Path, engine: FakeEngine) -> None:
    del engine
    environment, run_id = run_that_nobody_came_after(sample)
    told = list[CaptureRecord]()
    with open_state(environment) as state:
        state.stores.intake.delete(run_id, deleted_by="somebody", reason="and was killed before the captures")
        worker = CaptureWorker(environment, state, lambda: None, on_done=told.append)  # type: ignore[arg-type, return-value]
        assert not worker.work_once()
        assert {record.outcome.drop_reason for record in state.captures.of_run(run_id)} == {"RUN_REMOVED"}
    assert {record.status.value for record in told} == {"dropped"}


def test_a_run_that_waits_is_not_deletable_whatever_captures_it_has(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    del engine
    workspace = clew_package.open(sample)
    with open_state(workspace.run_environment) as state:
        starter = RunStarter(workspace.files, workspace.run_environment, state)
        wishes = capture_wishes_of_data(["cleaned"], "captures")
        run_id = starter.submit("gl-close", "2026-01", captures=wishes).run_id
    for force in ([], ["--force"]):
        assert clew("rm", run_id, *force, cwd=sample).err.startswith("error RunNotDeletable")
    with open_state(workspace.run_environment) as state:
        assert {record.status.value for record in state.captures.of_run(run_id)} == {"queued"}


def test_what_finds_no_room_among_what_is_under_way_is_dropped_with_the_reason(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    settings = sample / "clew.yaml"
    text = settings.read_text().replace("    approval: required\n", "    captures: {max_inflight_jobs: 2}\n")
    settings.write_text(text)
    engine.storage_root = sample / ".clew" / "prod" / "storage"
    answer = clew(*GL_CLOSE, "--env", "prod", "--capture", "*", "--json", cwd=sample)
    assert answer.code == 0
    assert [(each["breakpoint"], each["status"], each["drop_reason"]) for each in answer.json["captures"]] == [
        ("gl-close::fx::converted", "queued", None),
        ("gl-close::main::cleaned", "queued", None),
        ("gl-close::main::after_totals", "dropped", "INFLIGHT_JOBS"),
    ]
    assert [job["drop_reason"] for job in answer.json["postlude_jobs"]] == ["INFLIGHT_JOBS"]
    modes = [step["mode"] for step in answer.json["captures"][2]["degradations"]]
    assert modes == ["sample_raw", "stats"]


def test_a_point_that_a_failed_run_did_not_reach_is_dropped_and_taken_up_when_the_run_goes_on(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    engine.failing["40"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="twice"))
    failed = clew(*GL_CLOSE, "--capture", "cleaned", "--capture", "after_totals", "--json", cwd=sample)
    assert failed.code == 1
    found = {each["breakpoint"]: each for each in failed.json["captures"]}
    assert found["gl-close::main::after_totals"]["drop_reason"] == "NOT_REACHED"
    assert found["gl-close::main::cleaned"]["drop_reason"] is None
    assert failed.json["postlude_jobs"][0]["drop_reason"] == "RUN_NOT_COMPLETED"
    [line] = [line for line in clew("show", failed.json["run_id"], cwd=sample).out.splitlines() if "RUN_NOT" in line]
    assert line.startswith("converted-lines")
    engine.failing.clear()
    again = clew("signal", failed.json["run_id"], "RETRY_STEP", "--step", "40", "--json", cwd=sample)
    assert again.code == 0
    found = {each["breakpoint"]: each for each in again.json["captures"]}
    assert found["gl-close::main::after_totals"]["drop_reason"] is None
    assert again.json["postlude_jobs"][0]["drop_reason"] is None


def test_a_run_that_retries_another_has_its_captures_too(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    engine.failing["load"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="twice"))
    failed = clew(*GL_CLOSE, "--capture", "cleaned=stats", "--json", cwd=sample).json
    engine.failing.clear()
    clew("signal", failed["run_id"], "RETRY_RUN", "--json", cwd=sample)
    runs = clew("runs", "--json", cwd=sample).json["runs"]
    [retry] = [run for run in runs if run["retry_of"] == failed["run_id"]]
    shown = clew("show", retry["run_id"], "--json", cwd=sample).json
    assert [each["asked_mode"] for each in shown["captures"]] == ["stats"]
    assert shown["captures"][0]["capture_id"] != failed["captures"][0]["capture_id"]


def test_captures_are_listed_by_run_and_by_request(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    first = clew(*GL_CLOSE, "--capture", "cleaned", "--request-id", "january", "--json", cwd=sample).json
    clew(*GL_CLOSE, "--capture", "cleaned", "--json", cwd=sample)
    assert len(clew("captures", "--json", cwd=sample).json["captures"]) == 2
    for by in (["--request-id", "january"], ["--run", first["run_id"]]):
        listed = clew("captures", *by, "--json", cwd=sample).json["captures"]
        assert [each["capture_id"] for each in listed] == [first["captures"][0]["capture_id"]]
    latest = clew("captures", "--limit", "1", "--json", cwd=sample).json["captures"]
    assert [each["run_id"] == first["run_id"] for each in latest] == [False]
    assert clew("rm", first["run_id"], cwd=sample).code == 0
    for name in (first["run_id"], first["run_id"][:8]):
        listed = clew("captures", "--run", name, "--json", cwd=sample).json["captures"]
        assert [each["capture_id"] for each in listed] == [first["captures"][0]["capture_id"]]
    assert clew_package.open(sample).captures(run=first["run_id"])[0].id == first["captures"][0]["capture_id"]
    assert clew("captures", "--run", "nowhere", cwd=sample).code == 3
    assert clew("captures", "--status", "reddy", cwd=sample).code == 2
    assert "failed" in clew("captures", cwd=sample).out


@pytest.mark.parametrize("guess", ["cap_", "cap_0123456789abcdef0123456789abcdef", "../../etc/passwd", "%", ""])
def test_guessing_an_id_finds_nothing(clew: Clew, sample: Path, engine: FakeEngine, guess: str) -> None:
    made = clew(*GL_CLOSE, "--capture", "cleaned", "--json", cwd=sample).json["captures"][0]["capture_id"]
    for id_ in (guess, made[:-1], made.upper()):
        answer = clew("capture", "view", id_, "--json", cwd=sample)
        assert (answer.code, answer.json["error"]["code"]) == (3, "CaptureNotFound")


def test_a_capture_that_failed_tells_why(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    made = clew(*GL_CLOSE, "--capture", "cleaned", "--json", cwd=sample).json["captures"][0]["capture_id"]
    shown = clew("capture", "show", made, cwd=sample)
    assert (shown.code, "failed" in shown.out) == (0, True)
    viewed = clew("capture", "view", made, "--json", cwd=sample)
    assert (viewed.code, viewed.json["error"]["code"]) == (1, "CaptureNotReady")


@pytest.mark.parametrize("arguments", [["look", "cap_1"], ["diff", "cap_1"], ["show", "cap_1", "cap_2"], ["show"]])
def test_wrong_usage_is_told(clew: Clew, sample: Path, arguments: list[str]) -> None:
    assert clew("capture", *arguments, cwd=sample).code == 2


def test_a_secret_in_a_failure_is_not_kept(
    clew: Clew, sample: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leak(self: CaptureWorker, lease: object) -> None:
        self.state.secrets.redactor.learn(["hunter2"])
        raise ValueError("password=hunter2")

    monkeypatch.setattr(CaptureWorker, "_done", leak)
    answer = clew(*GL_CLOSE, "--capture", "cleaned", "--json", cwd=sample)
    assert "hunter2" not in json.dumps(answer.json)
    assert "[secret]" in answer.json["captures"][0]["error"]["message"]
