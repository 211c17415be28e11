"""Versions of projects: what activating makes of a file, and what it refuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.api.projects import activate, choose, list_projects
from clew.api.state import State, open_state
from clew.api.workspace import Workspace
from clew.api.workspace_files import WorkspaceFiles
from clew.diagnostics import UserError

COLUMNS = [{"name": "id", "type": "integer"}, {"name": "amount", "type": "decimal(12,2)"}]
FILES: dict[str, Any] = {
    "clew.yaml": {"name": "w", "environments": {"dev": {"mode": "dev"}}},
    "calendars/c.yaml": {"id": "c", "generate": {"first_year": 2026, "last_year": 2026}},
    "datasources/f.yaml": {"id": "f", "type": "files", "options": {"root": "."}},
    "resolvers/r.yaml": {
        "id": "r",
        "is_default": True,
        "rules": [{"name": "a", "strategy": {"type": "path", "datasource_id": "f", "path": "x.csv"}}],
    },
    "datasets/d.yaml": {"id": "d", "main_table": {"name": "t", "columns": COLUMNS}},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


@pytest.fixture
def state(root: Path) -> Iterator[State]:
    with open_state(Workspace(root).run_environment) as opened:
        yield opened


def write(root: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(json.dumps(content), encoding="utf-8")


def project(root: Path, name: str, *operations: dict[str, Any], dataset: str = "d", status: str = "active") -> None:
    content = {"id": name, "status": status, "input_dataset": dataset, "operations": list(operations)}
    write(root, {f"projects/{name}.yaml": content})


def setting(seq: int, column: str) -> dict[str, Any]:
    arguments = {"assignments": [{"column": column, "expression": "amount * 2"}]}
    return {"seq": seq, "name": column, "type": "update", "arguments": arguments}


def output(**arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "f", "path": "out"}
    return {"seq": 90, "name": "Write", "type": "output", "arguments": {"destination": destination, **arguments}}


def test_the_operations_of_a_draft_can_be_put_in_another_order_at_will(root: Path, state: State) -> None:
    digests = set[str]()
    for seqs in ((1, 2, 3), (30, 20, 10), (7, 900, 8)):
        project(root, "p", *(setting(seq, f"c{seq}") for seq in seqs), status="draft")
        choice = choose(WorkspaceFiles(root), state, "p")
        assert [step.seq for step in choice.plan.steps] == sorted(seqs)
        assert choice.version is None
        digests.add(choice.plan.digest)
    assert len(digests) == 3
    assert state.projects.project_versions("p") == []
    assert [view.state for view in list_projects(WorkspaceFiles(root), state)] == ["draft"]


def test_another_order_of_the_operations_of_an_active_project_is_another_version(root: Path, state: State) -> None:
    project(root, "p", setting(10, "a"), setting(20, "b"))
    assert activate(WorkspaceFiles(root), state, "p", actor="tester").version == 1
    project(root, "p", setting(20, "a"), setting(10, "b"))
    assert [view.state for view in list_projects(WorkspaceFiles(root), state)] == ["modified"]
    before = choose(WorkspaceFiles(root), state, "p")
    assert (before.version, [step.name for step in before.plan.steps]) == (1, ["a", "b"])
    assert activate(WorkspaceFiles(root), state, "p", actor="tester").version == 2
    after = choose(WorkspaceFiles(root), state, "p")
    assert (after.version, [step.name for step in after.plan.steps]) == (2, ["b", "a"])
    assert len(state.projects.project_versions("p")) == 2


def test_a_change_that_takes_columns_from_an_active_project_is_not_activated(root: Path, state: State) -> None:
    project(root, "close", output(columns=["id", "amount"], register_as_dataset="closed"))
    project(root, "report", output(columns=["amount"]), dataset="closed")
    for name in ("close", "report"):
        activate(WorkspaceFiles(root), state, name, actor="tester")
    project(root, "close", output(columns=["id"], register_as_dataset="closed"))
    with pytest.raises(UserError) as refused:
        activate(WorkspaceFiles(root), state, "close", actor="tester")
    assert refused.value.code == "DatasetConflict"
    assert refused.value.diagnostic.message == (
        'the next version of the dataset "closed" has no column "amount", which the active project "report" uses'
    )
    assert refused.value.diagnostic.span is not None
    assert refused.value.diagnostic.span.file == "projects/close.yaml"
    project(root, "report", output(columns=["id"]), dataset="closed")
    for name in ("report", "close"):
        assert activate(WorkspaceFiles(root), state, name, actor="tester").version == 2
