"""The files that every project has: license, workflow and templates say what is true."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GITHUB = ROOT / ".github"


def test_the_license_is_the_whole_of_apache_2_0_and_the_metadata_names_it() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert re.search(r"Apache License\s+Version 2\.0, January 2004", text)
    assert re.findall(r"^   (\d)\. [A-Z]", text, re.MULTILINE) == list("123456789")
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_workflow_runs_make_test_on_pull_requests_with_the_oldest_versions() -> None:
    workflow = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    settings = [step.get("with", {}) for step in steps]
    assert "pull_request" in workflow[True]  # YAML 1.1 reads the key `on` as a boolean
    assert "make test" in [step.get("run") for step in steps]
    assert [each["python-version"] for each in settings if "python-version" in each] == ["3.11"]
    assert [each["java-version"] for each in settings if "java-version" in each] == ["17"]


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_an_issue_template_asks_for_something(name: str) -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert {"name", "description", "body"} <= set(form)
    assert any(part.get("validations", {}).get("required") for part in questions)
    assert len({part["id"] for part in questions}) == len(questions)


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"])
def test_links_of_the_pages_in_the_root_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).is_file(), target


def test_no_page_of_the_root_gives_an_address_of_a_person() -> None:
    for page in ("SECURITY.md", "CODE_OF_CONDUCT.md", "NOTICE"):
        assert "@" not in (ROOT / page).read_text(encoding="utf-8")
