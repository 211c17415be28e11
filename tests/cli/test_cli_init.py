"""`clew init`: a workspace that is complete, or nothing."""

from pathlib import Path

from tests.cli.conftest import Clew


def test_a_new_folder_becomes_a_workspace_that_checks(clew: Clew, tmp_path: Path) -> None:
    answer = clew("init", "ledger")
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "next: cd ledger && clew check"
    assert clew("check", cwd=tmp_path / "ledger").code == 0


def test_a_folder_with_spaces_is_quoted_in_the_next_command(clew: Clew) -> None:
    assert clew("init", "my ledger").out.splitlines()[-1] == "next: cd 'my ledger' && clew check"


def test_the_present_folder_is_taken_where_none_is_named(clew: Clew, tmp_path: Path) -> None:
    answer = clew("init")
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "next: clew check"
    assert (tmp_path / "clew.yaml").is_file()


def test_json_lists_the_files(clew: Clew, tmp_path: Path) -> None:
    document = clew("init", "büro/ledger", "--json").json
    assert document["path"] == str(tmp_path / "büro" / "ledger")
    assert "projects/gl-close.yaml" in document["files"]
    assert all((tmp_path / "büro" / "ledger" / file).is_file() for file in document["files"])


def test_a_folder_that_holds_something_is_left_alone(clew: Clew, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    answer = clew("init")
    assert answer.code == 2
    assert answer.err.startswith("error WorkspaceExists: . is not empty\n")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert clew("init", "--json").json["error"]["code"] == "WorkspaceExists"


def test_a_file_cannot_become_a_workspace(clew: Clew, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    answer = clew("init", "notes.txt")
    assert answer.code == 2
    assert "Traceback" not in answer.err
    assert (tmp_path / "notes.txt").read_text() == "mine"
