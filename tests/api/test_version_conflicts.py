"""Versions of datasets that do not fit: what a check and a plan say, and that looking changes nothing."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.api.projects import activate
from clew.api.state import State, open_state
from clew.api.workspace import Workspace
from clew.api.workspace_files import WorkspaceFiles
from clew.runs.registry import DatasetFile, Registration
from tests.api.test_project_versions import FILES, output, project, setting, write

FITS = (("id", "integer"), ("amount", "decimal(12,2)"))
STORE = ".clew/state.db"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One project registers what the other reads."""
    write(tmp_path, FILES)
    project(tmp_path, "close", output(columns=["id", "amount"], register_as_dataset="closed"))
    project(tmp_path, "report", output(columns=["amount"]), dataset="closed")
    return tmp_path


@pytest.fixture
def state(root: Path) -> Iterator[State]:
    with open_state(Workspace(root).run_environment) as opened:
        yield opened


def register(state: State, run: str, *columns: tuple[str, str]) -> None:
    file = DatasetFile(f"datasets/closed/{run}.parquet", 1, 1, "", "2026-01", run, 90)
    state.datasets.register(Registration("closed", run, 90, "2026-01", "t", columns, (file,)))


def told(root: Path, name: str | None = None) -> list[tuple[str, str, str]]:
    found = Workspace(root).check(name)
    assert found.notes == ()
    return [(each.code, each.message, each.span.file if each.span else "") for each in found.diagnostics]


OUTDATED = (
    "DatasetConflict",
    (
        'version 2 of the dataset "closed" has no column "amount", which the project "report" uses; '
        "version 1 was the last that fits"
    ),
    "projects/report.yaml",
)


def test_a_version_without_columns_in_use_is_told_where_the_dataset_is_named(root: Path, state: State) -> None:
    register(state, "one", *FITS)
    assert told(root) == []
    register(state, "two", ("id", "integer"))
    assert told(root) == told(root, "report") == [OUTDATED]
    assert told(root, "close") == []
    [found] = Workspace(root).check().diagnostics
    assert found.span is not None
    assert (root / found.span.file).read_text()[found.span.column - 1 :].startswith('"closed"')


def test_a_column_that_was_added_to_both_projects_is_a_note_that_says_what_to_run(root: Path, state: State) -> None:
    register(state, "one", *FITS)
    activate(WorkspaceFiles(root), state, "close", actor="tester")
    columns = ["id", "amount", "tax"]
    project(root, "close", setting(10, "tax"), output(columns=columns, register_as_dataset="closed"))
    project(root, "report", output(columns=["tax"]), dataset="closed")
    found = Workspace(root).check()
    assert found.is_ok
    [note] = found.notes
    assert note == (
        'version 1 of the dataset "closed" has no column "tax", which the project "report" uses; the next version will '
        "have it: `clew activate close`, then `clew run close`, before `clew run report`"
    )
    activate(WorkspaceFiles(root), state, "close", actor="tester")
    [note] = Workspace(root).check("report").notes
    assert note.endswith("the next version will have it: `clew run close`, before `clew run report`")
    planned = clew(root, "plan", "report")
    assert (planned.returncode, planned.stderr) == (0, f"note: {note}\n")
    register(state, "two", *FITS, ("tax", "decimal(13,2)"))
    assert Workspace(root).check().notes == ()


def test_a_pinned_version_that_never_had_a_column_stays_an_error(root: Path, state: State) -> None:
    register(state, "one", *FITS)
    columns = ["id", "amount", "tax"]
    project(root, "close", setting(10, "tax"), output(columns=columns, register_as_dataset="closed"))
    project(root, "report", output(columns=["tax"]), dataset={"dataset_id": "closed", "dataset_version": 1})  # type: ignore[arg-type]
    [(code, message, _)] = told(root)
    assert code == "DatasetConflict"
    assert message.endswith("no version has what it needs")


def test_a_pinned_version_is_the_one_that_counts(root: Path, state: State) -> None:
    for run, columns in (("one", FITS), ("two", FITS[:1])):
        register(state, run, *columns)
    project(root, "report", output(columns=["amount"]), dataset={"dataset_id": "closed", "dataset_version": 1})  # type: ignore[arg-type]
    assert told(root) == []
    register(state, "three", *FITS)
    project(root, "report", output(columns=["amount"]), dataset={"dataset_id": "closed", "dataset_version": 2})  # type: ignore[arg-type]
    assert [(code, file) for code, _, file in told(root)] == [("DatasetConflict", "projects/report.yaml")]


def test_a_change_that_would_not_be_activated_is_told_unless_it_is_a_draft(root: Path, state: State) -> None:
    for name in ("close", "report"):
        activate(WorkspaceFiles(root), state, name, actor="tester")
    project(root, "report", output(columns=["id"]), dataset="closed")
    project(root, "close", output(columns=["id"], register_as_dataset="closed"))
    message = 'the next version of the dataset "closed" has no column "amount", which the active project "report" uses'
    assert told(root) == [("DatasetConflict", message, "projects/close.yaml")]
    activate(WorkspaceFiles(root), state, "report", actor="tester")
    assert told(root) == []


def test_a_check_makes_no_state_store_and_upgrades_none(root: Path) -> None:
    assert told(root) == []
    assert not (root / ".clew").exists()
    (root / ".clew").mkdir()
    with closing(sqlite3.connect(root / STORE)) as connection, connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY)")
    before = (root / STORE).read_bytes()
    assert told(root) == []
    assert (root / STORE).read_bytes() == before


@pytest.mark.parametrize("address", ["postgresql://127.0.0.1:1/nothing", "sqlite:///broken.db"])
def test_a_state_store_that_does_not_answer_is_a_note_and_no_error(root: Path, address: str) -> None:
    (root / "broken.db").write_text("this is not a database, and long enough to show it" * 20)
    write(root, {"clew.yaml": {"name": "w", "environments": {"dev": {"state_store": address}}}})
    found = Workspace(root).check()
    assert found.is_ok
    [note] = found.notes
    assert note.startswith("versions of datasets were not compared: the state store does not respond: ")
    assert "\n" not in note
    assert Workspace(root).conflicts(Workspace(root).plan("report")).notes == (note,)


@pytest.mark.slow
def test_the_commands_tell_conflicts_with_place_and_exit_code(root: Path, state: State) -> None:
    register(state, "one", *FITS)
    register(state, "two", ("id", "integer"))
    checked = clew(root, "check")
    assert checked.returncode == 1
    assert "error DatasetConflict: version 2 of the dataset" in checked.stdout
    planned = clew(root, "plan", "report")
    assert planned.returncode == 1
    assert "Write" in planned.stdout
    assert planned.stderr.startswith("projects/report.yaml:1:")
    document = json.loads(clew(root, "plan", "report", "--json").stdout)
    assert [each["code"] for each in document["diagnostics"]] == ["DatasetConflict"]
    assert clew(root, "plan", "close").returncode == 0
    for command in (["check"], ["plan", "close"]):
        assert "UnknownEnvironment" in clew(root, *command, "--env", "prod").stderr


def test_a_look_into_a_file_loads_no_sqlalchemy(root: Path, state: State) -> None:
    register(state, "one", *FITS)
    code = (
        "import sys; from clew.cli.main import run; assert run(['check']) == 0; sys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False).returncode == 0


def clew(root: Path, *arguments: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "clew.cli", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
