"""`clew plan`: a page that a reviewer can approve without reading YAML."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.api.workspace import open_workspace
from clew.plan import plan_from_json
from tests.cli.cli_workspaces import write_workspace
from tests.cli.conftest import Clew

REVIEW = """
id: review
name: Sales review
version: 3
input_dataset: sales
selectors:
  large: amount > 100
  far: '{{large}} AND sales.shop <> "Bern"'
operations:
  - {seq: 60, name: Publish, type: output, arguments: {destination: {location: {path: out/sales, format: parquet}},
     register_as_dataset: reviewed, include_deleted: true}}
  - seq: 10
    name: Find regions
    description: Regions are looked up, never typed in.
    type: update
    selector: "{{far}}"
    arguments:
      joins: [{alias: s, dataset_id: shops, dataset_version: 1, on: s.shop = sales.shop}]
      assignments: [{column: region, expression: s.region}, {column: shop, expression: UPPER(sales.shop)}]
    assign: located
    after_request:
      - {name: peek, tasks: [{filter: amount > 0}, {take: 10}, {project: [shop, region]}, {topk: {column: shop, k: 3}}]}
  - {seq: 20, name: Drop nothing sold, type: delete, selector: amount = 0}
  - seq: 30
    name: Totals
    type: aggregate
    arguments:
      group_by: [region]
      aggregations: [{column: total, expression: SUM(amount)}]
  - seq: 40
    name: Add targets
    type: append
    arguments:
      source: {dataset_id: targets}
      source_selector: amount > 1
      aggregation: {group_by: [shop], aggregations: [{column: amount, expression: MAX_AGG(amount)}]}
"""

FILES = {
    "projects/review.yaml": REVIEW,
    "datasets/shops.yaml": """
id: shops
resolver_id: tables
main_table: {name: shops, columns: [{name: shop, type: string}, {name: region, type: string},
  {name: owner, type: string, privacy: personal}]}
""",
    "datasets/targets.yaml": """
id: targets
main_table:
  name: targets
  temporal_mode: bitemporal
  columns: [{name: shop, type: string}, {name: amount, type: integer}]
""",
}


@pytest.fixture
def review(tmp_path: Path) -> Path:
    return write_workspace(tmp_path, FILES)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_page_of_a_plan(
    clew: Clew, review: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    answer = clew("plan", "review")
    assert answer.code == 0
    assert answer.err == ""
    assert max(map(len, answer.out.splitlines())) <= width
    assert not any(line.endswith(" ") for line in answer.out.splitlines())
    golden(f"plan_page_{width}.txt", re.sub(r"digest [0-9a-f]{12}", "digest ............", answer.out))


def test_a_project_can_be_named_by_its_name(clew: Clew, review: Path) -> None:
    assert clew("plan", "Sales review").out == clew("plan", "review").out


def test_the_sample_projects_have_plans(clew: Clew, sample: Path) -> None:
    for project in ("gl-close", "group-report"):
        answer = clew("plan", project, cwd=sample)
        assert answer.code == 0
        assert answer.out.startswith(project)


def test_json_is_the_plan_itself(clew: Clew, review: Path) -> None:
    document = clew("plan", "review", "--json").json
    assert plan_from_json(document) == open_workspace(review).plan("review")


def test_breakpoints_are_listed_by_qualified_name(clew: Clew, review: Path) -> None:
    lines = clew("plan", "review", "--breakpoints").out.splitlines()
    assert [re.split(r"\s{2,}", line) for line in lines[1:]] == [["review::main::located", "10", "Find regions"]]
    assert clew("plan", "review", "--breakpoints", "--json").json == {
        "project": "review",
        "breakpoints": [
            {"name": "review::main::located", "label": "located", "path": "main", "seq": 10, "step": "Find regions"}
        ],
    }


def test_a_plan_without_breakpoints_says_how_to_make_one(clew: Clew, review: Path) -> None:
    assert "assign: LABEL" in clew("plan", "report", "--breakpoints").out
    assert clew("plan", "report", "--breakpoints", "--json").json["breakpoints"] == []


def test_what_stands_in_the_way_of_a_plan_goes_to_standard_error(clew: Clew, review: Path) -> None:
    path = review / "projects" / "review.yaml"
    path.write_text(REVIEW.replace("UPPER(sales.shop)", "UPER(sales.shop)").replace("SUM(amount)", "SUM(amonut)"))
    answer = clew("plan", "review")
    assert answer.code == 1
    assert answer.out == ""
    assert 'did you mean "UPPER"?' in answer.err
    assert 'did you mean "amount"?' in answer.err
    error = clew("plan", "review", "--json").json["error"]
    assert len(error["diagnostics"]) == 2


def test_a_scenario_that_is_wrong_stands_in_no_ones_way(clew: Clew, review: Path) -> None:
    write_workspace(review, {"scenarios/wrong.yaml": "name: wrong\nproject: review\nnonsense: 1\n"})
    assert clew("plan", "review").code == 0
    assert "scenarios/wrong.yaml:3:1: error UnknownKey" in clew("check", "review").out
    assert clew("check", "report").code == 0


def test_an_unknown_project_is_not_found(clew: Clew, review: Path) -> None:
    answer = clew("plan", "revue")
    assert answer.code == 3
    assert answer.err.startswith('error UnknownProject: no project "revue"\n')


def test_the_project_must_be_named(clew: Clew, review: Path) -> None:
    answer = clew("plan")
    assert answer.code == 2
    assert answer.err.startswith("error WrongUsage: missing argument 'PROJECT'")
    assert "`clew plan --help`" in answer.err


def test_control_characters_of_a_name_do_not_reach_the_terminal(clew: Clew, review: Path) -> None:
    path = review / "projects" / "report.yaml"
    path.write_text(path.read_text().replace("name: Keep amounts", r'name: "Keep\e]0;title\a\e[2J amounts"'))
    out = clew("plan", "report").out
    assert "Keep" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_square_brackets_are_shown_and_not_taken_for_markup(clew: Clew, review: Path) -> None:
    path = review / "projects" / "report.yaml"
    path.write_text(path.read_text().replace("name: Keep amounts", 'name: "[bold]Keep[/bold] :smile:"'))
    assert "[bold]Keep[/bold] :smile:" in clew("plan", "report").out
