"""Workspaces that earlier versions of Clew wrote, opened by this one.

Each folder has a sample workspace whose two projects were run by the code of that time, on Spark, and what that code
answered about the runs. The state store is brought to the schema of today; the answers must be the same. So must be
what the events of then mean; that a project does the same again is in `tests/engine/test_earlier_results.py`.
"""

import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.cli.main import run
from clew.events.reducer import project_run
from clew.storage.parts import LAYOUT_VERSION

HERE = Path(__file__).parent
KEPT = sorted(HERE.glob("*/expected.json"))
Ask = Callable[..., Any]


@pytest.fixture(scope="module", params=KEPT, ids=lambda path: path.parent.name)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A copy of a workspace that was kept, and what was known about it."""
    folder: Path = request.param.parent
    root = tmp_path_factory.mktemp(folder.name)
    with tarfile.open(folder / "workspace.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root, {"folder": folder.name, **json.loads(request.param.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def packed(kept: tuple[Path, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same workspace, as it was packed; nothing of today opens it."""
    root = tmp_path_factory.mktemp("packed")
    with tarfile.open(HERE / kept[1]["folder"] / "workspace.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


@pytest.fixture
def ask(kept: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.chdir(kept[0])

    def answer(*arguments: str) -> Any:
        code = run([*arguments, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert code == 0, told
        return told

    return answer


def test_the_layout_of_today_is_kept() -> None:
    """Whoever changes the layout of traces also runs `make history`."""
    assert LAYOUT_VERSION in {json.loads(path.read_text(encoding="utf-8"))["layout"] for path in KEPT}


def test_runs_have_the_same_state_steps_and_counts(kept: tuple[Path, Any], ask: Ask) -> None:
    for known in kept[1]["runs"]:
        found = ask("show", known["run_id"])
        steps = [{name: step[name] for name in known["steps"][0]} for step in found["steps"]]
        assert (found["status"], found["rows_loaded"]) == (known["status"], known["rows_loaded"])
        assert steps == known["steps"]


def test_answers_about_rows_are_the_same(kept: tuple[Path, Any], ask: Ask) -> None:
    """But for the versions of events, which are read as those of today."""
    for known in kept[1]["answers"]:
        found = differences(known["answer"], ask(*known["command"]))
        assert [each for each in found if not (each[0].endswith("/event_version") and each[1] < each[2])] == []


def test_events_mean_what_they_meant(kept: tuple[Path, Any], packed: Path) -> None:
    """The snapshots that were saved then are what the same events give now."""
    with closing(sqlite3.connect(packed / ".clew" / "state.db")) as database:
        saved = dict(database.execute("SELECT run_id, document FROM snapshots"))
        counted = dict(database.execute("SELECT run_id, count(*) FROM run_events GROUP BY run_id"))
    assert len(saved) == len(kept[1]["runs"])
    with Workspace(kept[0]) as workspace, open_state(workspace.run_environment) as state:
        for run_id, document in saved.items():
            events = state.stores.reader.events(run_id)
            assert len(events) == counted[run_id]
            assert list(differences(json.loads(document), project_run(run_id, events).to_json())) == []


def test_parts_lie_under_the_digests_of_then(kept: tuple[Path, Any], packed: Path) -> None:
    storage = packed / ".clew" / "storage"
    described = [json.loads(path.read_text(encoding="utf-8")) for path in storage.rglob("part.json")]
    files = [file for part in described for file in part["files"]]
    assert len(files) > 10
    for file in files:
        assert sha256((storage / file["path"]).read_bytes()).hexdigest() == file["sha256"]
        assert (kept[0] / ".clew" / "storage" / file["path"]).read_bytes() == (storage / file["path"]).read_bytes()


def test_every_file_is_what_its_digest_says(kept: tuple[Path, Any], ask: Ask) -> None:
    for known in kept[1]["runs"]:
        assert ask("verify", known["run_id"])["findings"] == []


def test_captures_from_before_the_ledger_vouched_for_them_are_adopted_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger of layout 5 had begun, but knew nothing of captures."""
    expected = json.loads((HERE / "layout-5" / "expected.json").read_text(encoding="utf-8"))
    [show, *_] = [each["command"] for each in expected["answers"] if each["command"][0] == "capture"]
    with tarfile.open(HERE / "layout-5" / "workspace.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    assert [run(show), run(["verify", "--all"])] == [0, 0]
    assert run(["token", "create", "ada"]) == 0  # the first entry of this version
    assert [run(show), run(["verify", "--all"])] == [0, 0]
    with closing(sqlite3.connect(tmp_path / ".clew" / "state.db")) as database, database:
        database.execute("UPDATE captures SET expires_at = '2300-01-01T00:00:00.000000Z'")
    capsys.readouterr()
    assert [run(show), run(["verify", "--all"])] == [1, 1]
    told = capsys.readouterr()
    assert "error ForgedRecord: " in told.err
    assert "was changed" in told.out


def differences(known: Any, found: Any, place: str = "") -> Any:
    """What was told then and is not told now, or otherwise. What is told in addition does not matter."""
    if isinstance(known, dict) and isinstance(found, dict):
        for name, value in known.items():
            yield from differences(value, found.get(name), f"{place}/{name}")
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for number, (one, other) in enumerate(zip(known, found, strict=True)):
            yield from differences(one, other, f"{place}/{number}")
    elif known != found:
        yield place, known, found
