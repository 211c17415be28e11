"""Writing the sample workspace."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from clew.definitions import KINDS, load_workspace, schema_of
from clew.diagnostics import UserError
from clew.sample import write_sample


class Yaml12(yaml.SafeLoader):
    """A reader for which `on` is a plain word, as in YAML 1.2."""

    yaml_implicit_resolvers = {  # noqa: RUF012 the reader wants a plain dictionary
        first: [entry for entry in resolvers if first not in "oO" or entry[0] != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def files_under(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def test_it_writes_every_kind_of_file_and_says_which(tmp_path: Path) -> None:
    written = write_sample(tmp_path / "ledger")
    assert list(written) == files_under(tmp_path / "ledger")
    names = {path.as_posix() for path in written}
    assert {
        "clew.yaml",
        ".gitignore",
        "README.md",
        "calendars/fiscal.yaml",
        "datasets/journal-lines.yaml",
        "projects/gl-close.yaml",
        "projects/group-report.yaml",
        "fragments/fx-to-usd.yaml",
        "data/journal/journal_2026-01.csv",
        "data/journal/2026-03/part-00001.parquet",
    } <= names
    assert ".clew/" in (tmp_path / "ledger" / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_what_it_writes_loads_without_a_complaint(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    loaded = load_workspace(tmp_path / "ledger")
    assert loaded.diagnostics == ()
    workspace = loaded.workspace
    assert [project.id for project in workspace.projects] == ["gl-close", "group-report"]
    assert list(workspace.settings.environments) == ["dev", "prod"]
    assert len(workspace.scenarios) == 8
    for period in ("2026", "2026-Q1", "2026-01", "2026-02", "2026-03"):
        assert workspace.periods.period(period) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_its_definitions_fit_the_published_schema(tmp_path: Path, kind: str) -> None:
    write_sample(tmp_path / "ledger")
    pattern = "clew.yaml" if kind == "workspace" else f"{kind}s/*.yaml"
    paths = sorted((tmp_path / "ledger").glob(pattern))
    assert paths
    validator = Draft202012Validator(schema_of(kind))
    for path in paths:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=Yaml12)
        problems = [error.message for error in validator.iter_errors(json.loads(json.dumps(content, default=str)))]
        assert problems == [], path.name


def test_it_creates_missing_folders_above(tmp_path: Path) -> None:
    write_sample(tmp_path / "a" / "b" / "ledger")
    assert (tmp_path / "a" / "b" / "ledger" / "clew.yaml").is_file()


def test_nothing_but_the_workspace_remains(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    before = folder.stat().st_ino
    written = write_sample(folder)
    assert folder.stat().st_ino == before
    assert list(written) == files_under(folder)
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_the_current_folder_can_be_named_by_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_sample(Path())
    assert Path("clew.yaml").is_file()


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        write_sample(tmp_path)
    assert caught.value.code == "WorkspaceExists"
    assert files_under(tmp_path) == [Path("notes.txt")]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        write_sample(tmp_path / "ledger")
    assert caught.value.code == "UnwritableFolder"
    assert (tmp_path / "ledger").read_text(encoding="utf-8") == "mine"


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        write_sample(tmp_path / "file" / "ledger")
    assert caught.value.code == "UnwritableFolder"


@pytest.mark.parametrize("exists", [True, False])
def test_a_failure_half_way_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    folder = tmp_path / "ledger"
    if exists:
        folder.mkdir()
    rename = Path.rename

    def full_disk(self: Path, target: Path) -> Path:
        if target.name in {"projects", "ledger"}:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full_disk)
    with pytest.raises(UserError, match="No space left on device") as caught:
        write_sample(folder)
    assert caught.value.code == "UnwritableFolder"
    assert files_under(tmp_path) == []
    assert list(tmp_path.iterdir()) == ([folder] if exists else [])
