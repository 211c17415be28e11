"""The recipes of the cookbook are scenarios that pass, in the workspace that the cookbook describes."""

import re
from pathlib import Path

import pytest

import clew
from clew.scenarios.scenario_results import ScenarioResult
from clew.scenarios.testing import TestReport

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text(encoding="utf-8")

RECIPES = dict(re.findall(r"^### ([^\n]+)\n(?:(?!^#).)*?^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
FILES = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> TestReport:
    """All recipes, run without Spark in one workspace."""
    root = tmp_path_factory.mktemp("cookbook")
    scenarios = {f"scenarios/{number}.yaml": text for number, text in enumerate(RECIPES.values(), start=10)}
    for name, text in {**FILES, **scenarios}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return clew.open(root).test(on="quick")


def test_there_are_at_least_25_recipes_and_each_section_is_one() -> None:
    assert len(RECIPES) >= 25
    assert list(RECIPES) == re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    assert sorted(FILES) == ["calendars/months.yaml", "clew.yaml"]


@pytest.mark.parametrize("name", list(RECIPES))
def test_a_recipe_passes(report: TestReport, name: str) -> None:
    results: dict[str, ScenarioResult] = {each.name: each for each in report.results}
    assert name in results
    assert results[name].status == "pass", results[name].to_json()


def test_every_recipe_is_in_the_contents() -> None:
    anchors = [re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-") for name in RECIPES]
    assert re.findall(r"\]\(#([^)]+)\)", PAGE) == anchors
