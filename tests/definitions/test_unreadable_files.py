"""Files that cannot be read, and workspaces that cannot be found."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from clew.definitions import LoadedWorkspace, find_workspace, load_workspace
from clew.diagnostics import UserError

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]

DATASET = "id: {id}\nmain_table: {{name: t, columns: [{{name: a, type: string}}]}}\n"


def dataset(name: str) -> str:
    return DATASET.format(id=name)


def test_a_workspace_is_found_from_any_folder_inside_it(tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("name: w\n")
    inside = tmp_path / "projects" / "deep"
    inside.mkdir(parents=True)
    assert find_workspace(inside) == tmp_path
    assert find_workspace(tmp_path) == tmp_path


def test_outside_a_workspace_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        find_workspace(tmp_path)
    assert caught.value.code == "WorkspaceNotFound"
    with pytest.raises(UserError) as caught:
        load_workspace(tmp_path)
    assert caught.value.code == "WorkspaceNotFound"


def test_a_minimal_workspace_has_one_environment_with_defaults(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"clew.yaml": "name: Nächster Versuch\n"})
    assert loaded.diagnostics == ()
    settings = loaded.workspace.settings
    assert settings.name == "Nächster Versuch"
    assert settings.usual_environment == "dev"
    assert settings.environments["dev"].state_store == "sqlite:///.clew/state.db"


def test_one_broken_file_leaves_the_others_loaded_and_is_remembered(workspace_of: WorkspaceOf) -> None:
    broken = "id: broken\nname: The broken one\nmain_table: [\n"
    loaded = workspace_of({"datasets/a.yaml": dataset("a"), "datasets/b.yaml": broken, "datasets/c.yml": dataset("c")})
    assert [each.id for each in loaded.workspace.datasets] == ["a", "c"]
    assert [each.file for each in loaded.workspace.datasets] == ["datasets/a.yaml", "datasets/c.yml"]
    assert loaded.workspace.broken == {("dataset", "broken"), ("dataset", "The broken one")}
    assert len(loaded.diagnostics) == 1


def test_a_file_without_a_readable_id_is_remembered_by_its_name(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"datasets/ledger.yaml": "'"})
    assert loaded.workspace.broken == {("dataset", "ledger")}


def test_a_broken_clew_yaml_leaves_a_workspace_with_default_settings(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"clew.yaml": "nam: x\n", "datasets/a.yaml": dataset("a")})
    assert [each.code for each in loaded.diagnostics] == ["UnknownKey"]
    assert loaded.workspace.settings.usual_environment == "dev"
    assert [each.id for each in loaded.workspace.datasets] == ["a"]


def test_other_files_and_hidden_files_are_left_alone(workspace_of: WorkspaceOf) -> None:
    files = {"datasets/notes.md": "[", "datasets/.#a.yaml": "[", "datasets/deeper/x.yaml": "[", "notes.yaml": "["}
    assert workspace_of(files).diagnostics == ()


def test_the_problems_of_all_files_are_reported_together_in_order(workspace_of: WorkspaceOf) -> None:
    files = {"resolvers/r.yaml": "[", "datasets/b.yaml": "id: b\n", "datasets/a.yaml": "id: [\n", "clew.yaml": "x: 1\n"}
    spans = [each.span for each in workspace_of(files).diagnostics]
    names = [span.file for span in spans if span is not None]
    assert names == ["clew.yaml", "clew.yaml", "datasets/a.yaml", "datasets/b.yaml", "resolvers/r.yaml"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"id: \xff\xfe\n", "byte 5 is not UTF-8"),
        ("id: d\n".encode("utf-16"), "byte 1 is not UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_unreadable(workspace_of: WorkspaceOf, content: bytes, reason: str) -> None:
    [diagnostic] = workspace_of({"datasets/d.yaml": content}).diagnostics
    assert diagnostic.code == "UnreadableFile"
    assert diagnostic.message == f"cannot read datasets/d.yaml: {reason}"


def test_a_link_that_leads_nowhere_is_unreadable(workspace_of: WorkspaceOf, tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "d.yaml").symlink_to(tmp_path / "nowhere")
    [diagnostic] = workspace_of({}).diagnostics
    assert diagnostic.message == "cannot read datasets/d.yaml: no such file or directory"


def test_a_pipe_is_not_waited_for(workspace_of: WorkspaceOf, tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    os.mkfifo(tmp_path / "datasets" / "d.yaml")
    [diagnostic] = workspace_of({}).diagnostics
    assert diagnostic.message == "cannot read datasets/d.yaml: it is not a regular file"


def test_a_file_over_the_limit_is_not_read(workspace_of: WorkspaceOf, tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    with (tmp_path / "scenarios" / "s.yaml").open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    [diagnostic] = workspace_of({}).diagnostics
    assert diagnostic.code == "FileTooLarge"
    assert diagnostic.params["size"] == 16 * 1024 * 1024 + 1


def test_the_text_of_every_file_is_there_for_excerpts(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"datasets/a.yaml": "id: [\n"})
    assert loaded.source_of("datasets/a.yaml") == "id: [\n"
    assert loaded.source_of("datasets/b.yaml") is None
