"""From project to plan, as pages: what a reviewer approves, and what changes only on purpose."""

from collections.abc import Callable
from pathlib import Path

from clew.definitions import load_workspace
from clew.plan import compile_workspace
from tests.plan.plan_text import page_of

Golden = Callable[[str, str], None]

SAMPLE = Path(__file__).parents[2] / "src" / "clew" / "sample" / "workspace"
EXAMPLE = Path(__file__).parent / "example"


def test_the_projects_of_the_sample_compile_to_these_plans(golden: Golden) -> None:
    loaded = load_workspace(SAMPLE)
    compiled = compile_workspace(loaded.workspace)
    assert (loaded.diagnostics, compiled.diagnostics) == ((), ())
    assert sorted(compiled.plans) == ["gl-close", "group-report"]
    for name, plan in compiled.plans.items():
        golden(f"plans/{name}.txt", page_of(plan))


def test_the_annotated_example_compiles_against_datasets_written_for_it(golden: Golden) -> None:
    loaded = load_workspace(EXAMPLE)
    compiled = compile_workspace(loaded.workspace)
    assert (loaded.diagnostics, compiled.diagnostics) == ((), ())
    plan = compiled.plans["order-processing"]
    assert [step.type for step in plan.steps] == ["update", "update", "aggregate", "delete", "output"]
    assert [step.id for step in plan.steps] == ["op-001", "op-002", "op-003", "op-004", "op-005"]
    golden("plans/order-processing.txt", page_of(plan))
