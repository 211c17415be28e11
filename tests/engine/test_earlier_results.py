"""A project that is run again in a workspace of the first trace layout does what it did then."""

import json
import re
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import dataset

from clew.cli.main import run
from tests.history.test_history import HERE as HISTORY
from tests.history.test_history import differences

pytestmark = pytest.mark.usefixtures("spark")


def test_a_project_does_today_what_it_did_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the workspace of the first layout: the same counts, the same rows, and the same reasons for a total."""
    known = json.loads((HISTORY / "layout-1" / "expected.json").read_text(encoding="utf-8"))
    with tarfile.open(HISTORY / "layout-1" / "workspace.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    before = rows_of(tmp_path / "out" / "gl-closed")
    assert run(["run", "gl-close", "--period", "2026-01", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [{name: step[name] for name in known["runs"][0]["steps"][0]} for step in again["steps"]] == known["runs"][0][
        "steps"
    ]
    assert rows_of(tmp_path / "out" / "gl-closed") == before
    command, then = known["answers"][0]["command"], known["answers"][0]["answer"]
    assert run([command[0], again["run_id"], *command[2:], "--json"]) == 0
    now = json.loads(capsys.readouterr().out)
    made_up = re.compile(f"{again['run_id']}|{command[1]}|[0-9a-f]{{8}}-[0-9a-f]{{4}}-8[0-9a-f]{{3}}-[0-9a-f-]{{17}}")
    assert (
        list(differences(json.loads(made_up.sub("", json.dumps(then))), json.loads(made_up.sub("", json.dumps(now)))))
        == []
    )


def rows_of(folder: Path) -> Counter[str]:
    """The rows of an output, without what they are called."""
    found = dataset.dataset(folder, partitioning=None).to_table().to_pylist()
    return Counter(repr({name: value for name, value in row.items() if not name.startswith("_")}) for row in found)
