"""`clew.open`: the workspace as a Python object."""

from pathlib import Path

import pytest

import clew
from clew.diagnostics import UserError
from clew.sample import write_sample


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_sample(tmp_path / "ledger")
    return tmp_path / "ledger"


def test_a_workspace_opens_from_any_folder_inside_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "data")
    assert clew.open().root == root
    assert clew.open(str(root)).root == root
    assert clew.open(root / "projects").name == "general-ledger"


def test_opening_reads_no_file_but_using_does(root: Path) -> None:
    workspace = clew.open(root)
    (root / "clew.yaml").write_text("name: renamed\n")
    assert workspace.name == "renamed"


def test_check_and_plan_give_what_the_compiler_says(root: Path) -> None:
    workspace = clew.open(root)
    assert workspace.check().is_ok
    assert workspace.check("gl-close").counts["projects"] == 1
    assert workspace.plan("gl-close").name == "gl-close"


def test_a_plan_that_cannot_be_made_raises_everything_that_is_wrong(root: Path) -> None:
    path = root / "projects" / "gl-close.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("datasource_id: reports", "datasource_id: nowhere"))
    with pytest.raises(UserError) as raised:
        clew.open(root).plan("gl-close")
    assert {found.code for found in raised.value.diagnostics} == {"UnknownDatasource"}


def test_the_usual_environment_is_taken_where_none_is_named(root: Path) -> None:
    assert clew.open(root).environment_name == "dev"
    assert clew.open(root, environment="prod").environment.approval == "required"


def test_an_unknown_environment_is_refused_with_a_near_name(root: Path) -> None:
    with pytest.raises(UserError) as raised:
        _ = clew.open(root, environment="prd").environment
    assert raised.value.code == "UnknownEnvironment"
    assert raised.value.diagnostic.hint == 'did you mean "prod"?'


def test_no_workspace_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        clew.open(tmp_path)
    assert raised.value.code == "WorkspaceNotFound"
    assert str(tmp_path) in raised.value.diagnostic.message


def test_clew_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = clew.nothing
