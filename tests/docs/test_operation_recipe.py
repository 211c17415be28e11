"""The recipe for an operation type in CONTRIBUTING.md: the files that it lists are the files that know the types."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from clew.api.fluent import ProjectBuilder
from clew.cli.views.tables import outcome
from clew.definitions import Operation
from clew.definitions.operations import OPERATION
from clew.definitions.shapes import Tagged
from clew.plan.operations import Step
from tests.docs.source_imports import parsed

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text().partition("**An operation type.**")[2].partition("\n**")[0]
LISTED = re.findall(r"^\| `([^`]+)` \|", RECIPE, re.MULTILINE)

STEPS = {step.__name__: step for step in get_args(Step)}
TYPES = {name.removesuffix("Step").lower(): name for name in STEPS}

ABOUT_OUTPUTS = {
    "src/clew/change/alternative.py": "the outputs of an edited project beside those of a run",
    "src/clew/change/impact.py": "what moves in each output",
    "src/clew/change/step_edits.py": "outputs are not among the edited steps that change rows",
    "src/clew/change/what_if.py": "the outputs that would differ",
    "src/clew/evidence/at_once.py": "the selector of an output is evaluated again",
    "src/clew/evidence/reevaluation.py": "an output holds the rows that its selector takes",
    "src/clew/runs/datasets_now.py": "the dataset that an output registers",
    "src/clew/runs/reuse.py": "outputs are written by every run, also by one that repeats another",
    "src/clew/scenarios/cutting.py": "the output that a scenario is cut for",
    "src/clew/scenarios/quick.py": "the outputs that a quick scenario compares",
    "src/clew/server/pages/output_page.py": "the page of an output",
    "src/clew/change/bulk_cone.py": "an edited output leaves the rows before it as they are",
    "src/clew/engine/output/arranging.py": "the order of the rows of an output, and which of them share a file",
    "src/clew/change/material.py": "the output whose rows are asked about",
    "src/clew/change/points.py": "runs are compared at an output",
    "src/clew/engine/conserving.py": "how many rows an output must have",
    "src/clew/engine/output/conflicts.py": "an output that cannot be written",
    "src/clew/engine/output/places.py": "the place that an output is published to",
    "src/clew/explain/run_lineage.py": "what an output has registered",
    "src/clew/bus/openlineage_events.py": "an output is a dataset of OpenLineage",
    "src/clew/engine/output/destinations.py": "where an output goes",
    "src/clew/engine/output/files.py": "an output as files",
    "src/clew/engine/output/catalog_targets.py": "the table of a catalog that an output goes to",
    "src/clew/engine/output/lake_commits.py": "an output as a commit to a Delta or Iceberg table",
    "src/clew/engine/output/lake_tables.py": "an output that is staged for such a commit",
    "src/clew/engine/output/publishing.py": "an output before it is published",
    "src/clew/engine/output/registering.py": "an output as a version of a dataset",
    "src/clew/engine/output/stored_places.py": "the place of an output in an object store",
    "src/clew/engine/output/tables.py": "an output as a table",
    "src/clew/engine/output_totals.py": "what is added up while an output is written",
    "src/clew/engine/step_groups.py": "an output ends a group of steps",
    "src/clew/explain/why_not.py": "the question is about an output",
    "src/clew/plan/plan.py": "the outputs of a plan",
    "src/clew/plan/group_marks.py": "the groups of control totals at an output",
    "src/clew/plan/recorded_controls.py": "the control totals of an output",
    "src/clew/plan/sources_written.py": "an output over the data of a dataset",
    "src/clew/scenarios/running.py": "the outputs of a scenario are kept in memory",
    "src/clew/server/pages/drawing/plan_picture.py": "an output has a box for the place that it writes to",
    "src/clew/trace/reconciliation.py": "what came into an output and what went out",
    "src/clew/trace/step_records.py": "the one kind of step that leaves rows as they are",
}
"""Files beside those of the recipe that name the step of outputs, and why. They name no other."""
ABOUT_ANOTHER = {
    ("src/clew/change/suppositions.py", "UpdateStep"): "what an update sets is supposed to be something else",
    ("src/clew/plan/check_planning.py", "DeleteStep"): "a check that keeps rows apart deletes them",
}
"""The same for the other steps."""


def files_for(type_: str) -> list[str]:
    """The files of the recipe for one type."""
    return [listed.replace("<type>", type_) for listed in LISTED]


@cache
def named_in(path: Path) -> frozenset[str]:
    """The step classes that a module names."""
    found = set[str]()
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Name(id=name) | ast.ClassDef(name=name) | ast.alias(name=name) | ast.Attribute(attr=name):
                found.add(name)
            case _:
                pass
    return frozenset(found & STEPS.keys())


def modules() -> list[Path]:
    return sorted((ROOT / "src/clew").rglob("*.py"))


def test_the_recipe_lists_one_new_file_per_layer_and_at_most_five() -> None:
    new = [listed for listed in LISTED if "<type>" in listed]
    assert 0 < len(new) <= 5
    assert len({Path(listed).parts[2] for listed in new}) == len(new), "two new files in one package"


@pytest.mark.parametrize("type_", TYPES)
def test_every_file_of_the_recipe_exists_and_mentions_the_type(type_: str) -> None:
    for name in files_for(type_):
        text = (ROOT / name).read_text()
        assert re.search(rf"\b({type_}|{TYPES[type_]}|{type_.capitalize()})\b", text), name


@pytest.mark.slow
def test_step_classes_are_named_only_where_the_recipe_says() -> None:
    """Whoever needs to know something about a step asks the step: `datasets`, `columns_set`, `summary`, ..."""
    strangers = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules()
        for name in named_in(path)
        if (str(path.relative_to(ROOT)), name) not in ABOUT_ANOTHER
        and str(path.relative_to(ROOT)) not in files_for(STEPS[name].__name__.removesuffix("Step").lower())
        and not (name == "OutputStep" and str(path.relative_to(ROOT)) in ABOUT_OUTPUTS)
    }
    assert not strangers


def test_the_list_of_other_files_is_not_longer_than_it_must_be() -> None:
    assert {name for name in ABOUT_OUTPUTS if named_in(ROOT / name) != {"OutputStep"}} == set()


def test_no_match_over_steps_has_a_case_for_all_others() -> None:
    """A wildcard would hide a missing type from the type checker."""
    open_ended = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Match) and _is_over_steps(node) and _ends_in_wildcard(node)
    ]
    assert not open_ended


def _is_over_steps(node: ast.Match) -> bool:
    named = {each.id for case in node.cases for each in ast.walk(case.pattern) if isinstance(each, ast.Name)}
    return any(name.endswith(("Step", "StepBase")) for name in named)


def _ends_in_wildcard(node: ast.Match) -> bool:
    last = node.cases[-1]
    return last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None


def test_definitions_and_steps_have_the_same_types() -> None:
    assert {operation.__name__.lower() for operation in get_args(Operation)} == set(TYPES)
    assert isinstance(OPERATION.otherwise, Tagged)
    assert set(OPERATION.otherwise.members) == set(TYPES)


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_has_a_method_in_python_and_words_for_what_it_did(type_: str) -> None:
    assert callable(getattr(ProjectBuilder, type_))
    assert outcome(type_, {}, ())
