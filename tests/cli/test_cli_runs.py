"""Commands about runs that have been: listing, showing, following, verifying, deleting."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import clew as clew_package
from clew.api.state import open_state
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.runs.registry import DatasetFile, Registration
from clew.store.events import SqlEventReader
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew


@pytest.fixture
def three(clew: Clew, sample: Path, engine: FakeEngine) -> list[str]:
    """The ids of three runs, newest first: January closed, February failed, January reported."""
    ids = [clew("run", "group-report", "--period", "2026-01", "--json", cwd=sample).json["run_id"]]
    engine.failing["10"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of fx match"))
    ids.insert(0, clew("run", "gl-close", "--period", "2026-02", "--json", cwd=sample).json["run_id"])
    engine.failing.clear()
    ids.insert(0, clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"])
    return ids


def register(sample: Path, run_id: str) -> None:
    with open_state(clew_package.open(sample).run_environment) as state:
        file = DatasetFile("datasets/gl-closed/x.parquet", 1569, 9, "0" * 64, "2026-01", run_id, 60)
        state.datasets.register(
            Registration("gl-closed", run_id, 60, "2026-01", "transactions", (("row_kind", "string"),), (file,))
        )


def test_a_fresh_workspace_says_how_to_make_the_first_run(clew: Clew, sample: Path) -> None:
    answer = clew("runs", cwd=sample)
    assert (answer.code, answer.out) == (0, "no runs yet; `clew run PROJECT --period PERIOD` starts one\n")
    assert clew("runs", "--json", cwd=sample).json == {"runs": [], "has_more": False}


def test_runs_are_listed_newest_first_within_eighty_columns(
    clew: Clew, sample: Path, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    lines = clew("runs", cwd=sample).out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", *(run_id[:8] for run_id in three)]
    assert max(map(len, lines)) <= 80
    assert re.search(r"gl-close v1 +2026-02 +FAILED +\d{4}-\d\d-\d\d \d\d:\d\d", lines[2])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--project", "gl-close"), [0, 1]),
        (("--period", "2026-01"), [0, 2]),
        (("--status", "failed"), [1]),
        (("--limit", "1"), [0]),
        (("--project", "gl-close", "--period", "2026-03"), []),
    ],
)
def test_runs_can_be_filtered(
    clew: Clew, sample: Path, three: list[str], arguments: tuple[str, ...], expected: list[int]
) -> None:
    found = clew("runs", *arguments, "--json", cwd=sample).json["runs"]
    assert [run["run_id"] for run in found] == [three[index] for index in expected]


def test_what_cannot_be_filtered_by_is_wrong_usage(clew: Clew, sample: Path) -> None:
    answer = clew("runs", "--status", "COMPLETE", cwd=sample)
    assert answer.code == 2
    assert 'did you mean "COMPLETED"?' in answer.err
    assert clew("runs", "--limit", "0", cwd=sample).code == 2


@pytest.mark.slow
def test_a_run_is_shown_with_steps_outputs_and_reason(clew: Clew, sample: Path, three: list[str]) -> None:
    closed = clew("show", three[0][:8], cwd=sample)
    assert closed.code == 0
    assert closed.out.startswith(f"run {three[0]}\nstatus   COMPLETED\nproject  gl-close v1\n")
    assert re.search(r"20 +Reclassify travel +SUCCESS +34 changed", closed.out)
    assert re.search(r"60 +1,569 +out/60", closed.out)
    failed = clew("show", three[1][:8], cwd=sample)
    assert failed.code == 0
    assert "error JoinNotUnique: 2 rows of fx match" in failed.out
    assert f"clew signal {three[1][:8]} RETRY_STEP --step 10" in failed.out
    assert clew("show", three[1], "--json", cwd=sample).json["error"]["step"] == 10


@pytest.mark.parametrize("command", ["show", "events", "rm"])
def test_a_run_that_does_not_exist_is_not_found(clew: Clew, sample: Path, command: str) -> None:
    answer = clew(command, "0000", cwd=sample)
    assert answer.code == 3
    assert answer.err.startswith('error RunNotFound: no run "0000"')


@pytest.mark.slow
def test_the_beginning_of_an_id_has_to_tell_runs_apart(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    ids = list[str]()
    while len({run_id[0] for run_id in ids}) == len(ids):
        ids.append(clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"])
    first = next(run_id[0] for run_id in ids[:-1] if run_id[0] == ids[-1][0])
    answer = clew("show", first, cwd=sample)
    assert answer.code == 2
    assert answer.err.startswith(f'error AmbiguousRun: several runs start with "{first}"')
    assert ids[-1][:8] in answer.err


@pytest.mark.slow
def test_events_tell_the_history_in_order(clew: Clew, sample: Path, three: list[str]) -> None:
    answer = clew("events", three[1], cwd=sample)
    lines = answer.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert "RunQueued" in lines[0]
    assert "gl-close for 2026-02 by " in lines[0]
    assert "JoinNotUnique: 2 rows of fx match" in lines[-1]
    document = clew("events", three[1], "--json", cwd=sample).json
    assert [event["event_type"] for event in document["events"]][-2:] == ["StepFailed", "RunFailed"]
    assert clew("events", three[1], "--follow", cwd=sample).out == answer.out


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["one in the middle", "the last one"])
def test_who_follows_waits_for_an_event_that_is_missing(
    clew: Clew, sample: Path, three: list[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    everything = clew("events", three[0], cwd=sample).out
    last = len(everything.splitlines())
    hidden = {3} if missing == "one in the middle" else {last}
    read, asked = SqlEventReader.events, list[int]()

    def events(self: SqlEventReader, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[Any, ...]:
        asked.append(after)
        found = read(self, run_id, after=after, limit=limit)
        return tuple(event for event in found if len(asked) > 2 or event.run_seq not in hidden)

    monkeypatch.setattr(SqlEventReader, "events", events)
    [expected] = hidden
    told = f"event {expected} is missing; later events are held back\n"
    listed = clew("events", three[0], cwd=sample)
    assert (listed.out.splitlines(), listed.err) == (everything.splitlines()[: expected - 1], told)
    asked.clear()
    followed = clew("events", three[0], "--follow", cwd=sample)
    assert (followed.out, followed.err) == (everything, told)
    assert asked == [0, expected - 1, expected - 1]


def test_a_history_is_verified(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    answer = clew("events", run_id, "--verify", cwd=sample)
    assert (answer.code, answer.out[:8]) == (0, "intact: ")
    report = clew("events", run_id, "--verify", "--json", cwd=sample).json
    assert (report["intact"], report["unchained"], report["breaks"]) == (True, 0, [])


def bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_deleted_run_is_gone_with_its_folder(clew: Clew, sample: Path, three: list[str]) -> None:
    folder = sample / ".clew" / "storage" / "runs" / three[2]
    (folder / "rows.parquet").write_bytes(b"x" * (5_000_000 - bytes_in(folder)))
    answer = clew("rm", three[2][:8], cwd=sample)
    assert (answer.code, answer.out) == (0, f"run {three[2][:8]} deleted, 5.0 MB freed\n")
    assert not folder.exists()
    assert clew("show", three[2], cwd=sample).code == 3
    assert len(clew("runs", "--json", cwd=sample).json["runs"]) == 2


def test_a_run_that_a_dataset_needs_is_kept_unless_forced(clew: Clew, sample: Path, three: list[str]) -> None:
    register(sample, three[0])
    answer = clew("rm", three[0], cwd=sample)
    assert answer.code == 1
    assert answer.err.startswith(f'error RunNeeded: the dataset "gl-closed" needs the run "{three[0][:8]}"')
    assert clew("show", three[0], cwd=sample).code == 0
    kept = bytes_in(sample / ".clew" / "storage" / "runs" / three[0])
    assert clew("rm", three[0], "--force", "--json", cwd=sample).json == {
        "run_id": three[0],
        "deleted": True,
        "freed_bytes": kept,
        "problems": [],
    }
    assert clew("datasets", "gl-closed", "--json", cwd=sample).json["version"] == 1


def test_a_run_that_goes_on_is_not_deleted(clew: Clew, sample: Path, three: list[str]) -> None:
    clew("signal", three[1], "RETRY_STEP", "--step", "10", "--no-drive", cwd=sample)
    answer = clew("rm", three[1], cwd=sample)
    assert answer.code == 1
    assert answer.err.startswith("error RunNotDeletable")


@pytest.mark.slow
def test_datasets_are_those_of_files_and_those_of_runs(clew: Clew, sample: Path, three: list[str]) -> None:
    register(sample, three[0])
    lines = clew("datasets", cwd=sample).out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "dataset", "accounts", "budgets", "cost-centers", "fx-rates", "gl-closed", "journal-lines",
    ]  # fmt: skip
    assert re.fullmatch(rf"gl-closed +registered +v1 +1 +1,569 +run {three[0][:8]}", lines[5])
    assert lines[1].endswith("datasets/accounts.yaml")
    page = clew("datasets", "gl-closed", cwd=sample).out
    assert re.search(rf"v1 +1,569 +run {three[0][:8]} step 60 +\S+ \S+ +2026-01", page)
    assert re.search(r"account_code +string", clew("datasets", "accounts", cwd=sample).out)


def test_a_dataset_that_does_not_exist_is_not_found(clew: Clew, sample: Path) -> None:
    answer = clew("datasets", "acounts", cwd=sample)
    assert answer.code == 3
    assert answer.err.endswith('did you mean "accounts"?\n')


def test_a_project_is_activated_modified_activated_again_and_deactivated(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    def state() -> tuple[str, int | None]:
        [found] = [p for p in clew("projects", "--json", cwd=sample).json["projects"] if p["project"] == "gl-close"]
        return found["state"], found["version"]

    assert state() == ("draft", None)
    assert re.match(r"gl-close v1 is active \(digest [0-9a-f]{12}\)", clew("activate", "gl-close", cwd=sample).out)
    assert state() == ("active", 1)
    assert clew("activate", "gl-close", cwd=sample).out.startswith("gl-close v1 is already active")
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(path.read_text().replace("'\"5290\"'", "'\"5291\"'"))
    assert state() == ("modified", 1)
    assert clew("activate", "gl-close", "--json", cwd=sample).json["version"] == 2
    assert state() == ("active", 2)
    assert clew("deactivate", "gl-close", cwd=sample).out == "gl-close v2 is no longer active\n"
    assert state() == ("inactive", 2)
    refused = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert refused.code == 1
    assert 'error ProjectNotActive: the project "gl-close" has no active version' in refused.err
    assert clew("deactivate", "gl-close", cwd=sample).code == 1


def test_a_project_with_mistakes_is_not_activated(clew: Clew, sample: Path) -> None:
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(path.read_text().replace("SUM(transactions.amount_usd)", "SUM(transactions.amonut_usd)"))
    assert clew("activate", "gl-close", cwd=sample).code == 1
    assert "has errors" in clew("projects", cwd=sample).out
    assert clew("activate", "gl-cloze", cwd=sample).code == 3


def test_a_draft_runs_as_it_is(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(path.read_text().replace("status: active\n", ""))
    answer = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample)
    assert (answer.code, answer.json["project_version"]) == (0, "draft")


@pytest.mark.slow
def test_dead_letters_are_listed_and_sent_again(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    assert clew("dlq", cwd=sample).out == "no dead letters\n"
    path = sample / "clew.yaml"
    bus = "    bus: [{id: audit, type: webhook, url: 'http://127.0.0.1:9/'}]\n"
    path.write_text(path.read_text().replace("    mode: dev\n", f"    mode: dev\n{bus}"))
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    with open_state(clew_package.open(sample).run_environment) as state:
        for entry_id in range(1, 4):
            state.stores.outbox.bury(entry_id, error="connection refused")
    listed = clew("dlq", "list", "--json", cwd=sample).json["dead_letters"]
    assert [(letter["sink"], letter["run_id"], letter["run_seq"]) for letter in listed] == [
        ("audit", run_id, number) for number in (1, 2, 3)
    ]
    assert "connection refused" in clew("dlq", cwd=sample).out
    assert clew("dlq", "replay", "--sink", "other", cwd=sample).out == "0 events will be sent again\n"
    assert clew("dlq", "replay", "--json", cwd=sample).json == {"replayed": 3}
    assert clew("dlq", "reply", cwd=sample).code == 2


@pytest.mark.slow
def test_environments_that_share_a_store_and_a_bus_id_keep_their_events_apart(
    clew: Clew, sample: Path, engine: FakeEngine
) -> None:
    path = sample / "clew.yaml"
    webhook = "    bus: [{id: audit, type: webhook, url: 'http://127.0.0.1:9/'}]\n    tenant: acme\n"
    lines = "bus: [{id: audit, type: file, path: globex.jsonl}]"
    sinks = "sinks: {close-review: {type: capture_store, path: globex}}"
    other = f"  globex:\n    tenant: globex\n    {lines}\n    {sinks}\n"
    text = path.read_text().replace("    mode: dev\n", f"    mode: dev\n{webhook}")
    path.write_text(text.replace("environments:\n", f"environments:\n{other}"))
    where = ("--period", "2026-01", "--json", "--env")
    theirs = clew("run", "gl-close", *where, "dev", cwd=sample).json["run_id"]
    with open_state(clew_package.open(sample, "dev").run_environment) as state:
        for entry_id in range(1, 4):
            state.stores.outbox.bury(entry_id, error="connection refused")

    assert clew("dlq", "--json", "--env", "globex", cwd=sample).json["dead_letters"] == []
    assert clew("dlq", "replay", "--json", "--env", "globex", cwd=sample).json == {"replayed": 0}
    assert clew("dlq", "replay", "--json", "--env", "dev", cwd=sample).json == {"replayed": 3}
    mine = clew("run", "gl-close", *where, "globex", cwd=sample).json["run_id"]
    sent = [json.loads(line)["subject"] for line in (sample / "globex.jsonl").read_text().splitlines()]
    assert mine != theirs
    assert set(sent) == {mine}
