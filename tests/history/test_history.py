"""Workspaces that earlier versions of Clew wrote, opened by this one.

Each folder has a sample workspace whose two projects were run by the code of that time, on Spark, and what that code
answered about the runs. The state store is brought to the schema of today; the answers must be the same.
"""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import run
from clew.storage.parts import LAYOUT_VERSION

HERE = Path(__file__).parent
KEPT = sorted(HERE.glob("*/expected.json"))
Ask = Callable[..., Any]


@pytest.fixture(scope="module", params=KEPT, ids=lambda path: path.parent.name)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A copy of a workspace that was kept, and what was known about it."""
    folder: Path = request.param.parent
    root = tmp_path_factory.mktemp(folder.name)
    with tarfile.open(folder / "workspace.tar.gz") as packed:
        packed.extractall(root, filter="data")
    return root, json.loads(request.param.read_text(encoding="utf-8"))


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
    for known in kept[1]["answers"]:
        assert list(differences(known["answer"], ask(*known["command"]))) == []


def test_every_file_is_what_its_digest_says(kept: tuple[Path, Any], ask: Ask) -> None:
    for known in kept[1]["runs"]:
        assert ask("verify", known["run_id"])["findings"] == []


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
