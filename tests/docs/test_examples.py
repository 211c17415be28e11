"""The examples in the documents are what Clew takes and what it says."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

import clew
from clew.definitions.kinds import FILE_KINDS
from clew.definitions.nodes import SourceText
from clew.definitions.schemas import schema_of
from clew.definitions.shapes import problems_in
from clew.definitions.yaml_nodes import read_yaml
from clew.diagnostics import render
from clew.sample import write_sample

ROOT = Path(__file__).parents[2]
WORKSPACE = (ROOT / "docs" / "workspace.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^## (\S+)\n\n```yaml\n(.*?)```", WORKSPACE, re.DOTALL | re.MULTILINE)
KIND_OF_HEADING = {"clew.yaml": "workspace"} | {f"{name.capitalize()}s": name for name in FILE_KINDS}
ENVIRONMENT_KEYS = list(cast("Any", schema_of("workspace"))["$defs"]["Environment"]["properties"])


def test_every_kind_of_file_has_an_example() -> None:
    assert {KIND_OF_HEADING[heading] for heading, _ in EXAMPLES} == set(FILE_KINDS)


@pytest.mark.parametrize(("heading", "text"), EXAMPLES, ids=[heading for heading, _ in EXAMPLES])
def test_an_example_of_a_file_can_be_read(heading: str, text: str) -> None:
    tree = read_yaml(SourceText("example.yaml", text))
    assert tree.diagnostics == ()
    assert tree.root is not None
    assert list(problems_in(FILE_KINDS[KIND_OF_HEADING[heading]].shape.read(tree.root))) == []


@pytest.mark.parametrize("name", ENVIRONMENT_KEYS)
def test_every_key_of_an_environment_is_named(name: str) -> None:
    table = WORKSPACE.partition("| key | what it sets |")[2].partition("\n\n")[0]
    assert f"`{name}`" in table


@pytest.mark.parametrize("folder", [kind.folder for kind in FILE_KINDS.values() if kind.folder])
def test_every_folder_is_named(folder: str) -> None:
    assert f"\n    {folder}/" in WORKSPACE


def test_the_project_of_the_readme_compiles_and_its_mistake_is_reported_as_shown(tmp_path: Path) -> None:
    [project] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    [shown] = re.findall(r"A mistake looks like this:\n\n((?:    .*\n)+)", README)
    write_sample(tmp_path / "ledger")
    path = tmp_path / "ledger" / "projects" / "gl-close.yaml"
    path.write_text(project, encoding="utf-8")
    assert clew.open(tmp_path / "ledger").plan("gl-close").name == "gl-close"

    path.write_text(project.replace("amount_local * fx.rate", "amount_lcoal * fx.rate"), encoding="utf-8")
    workspace = clew.open(tmp_path / "ledger")
    found = [each for each in workspace.check("gl-close").diagnostics if each.code == "UnknownColumn"]
    assert render(found[0], workspace.source_of).splitlines() == [line[4:] for line in shown.splitlines()]


def test_the_project_that_the_readme_writes_in_python_has_the_steps_that_it_says(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    [code] = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "clew.project" in block]
    assert "# three steps, with seq 10, 20 and 30" in code
    names: dict[str, Any] = {"clew": clew, "workspace": clew.open(tmp_path / "ledger")}
    exec(compile(code, "README.md", "exec"), names)
    plan = clew.open(tmp_path / "ledger").plan(names["draft"])
    assert [step.seq for step in plan.steps] == [10, 20, 30]


PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / page).parent / target).is_file(), target


def test_the_architecture_names_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = [path.name for path in (ROOT / "src" / "clew").iterdir() if (path / "__init__.py").is_file()]
    for name in packages:
        assert f"| `{name}` |" in page, name


def test_every_file_that_the_architecture_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py)?)`", page)
    assert len(named) > 15
    assert [path for path in named if not (ROOT / "src" / "clew" / path).exists()] == []


def test_the_architecture_names_every_dependency() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").lower()
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in re.findall(r'^    "([A-Za-z-]+)[\[>=]', pyproject, re.MULTILINE):
        assert name.lower().removeprefix("types-") in page.replace("pytest with xdist", "pytest-xdist pytest"), name
