"""A plan names what it needs, and an engine that lacks something refuses it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import clew.plan
from clew.diagnostics import UserError
from clew.engine.opening import ENGINE_CAPABILITIES
from clew.plan import require_capabilities
from clew.plan.compiler import DEBUG_CAPABILITY
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

PLAIN = """
    - {seq: 1, name: a, type: update, arguments: {assignments: [{column: x, expression: amount}]}}
    - {seq: 2, name: b, type: delete, selector: x = 0}
"""


def test_a_plan_names_each_capability_with_the_steps_that_need_it(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: a
          type: update
          arguments:
            joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
            assignments: [{column: x, expression: c.tier}]
        - {seq: 2, name: b, type: update, arguments: {assignments: [{column: x, expression: NULL}]}}
        - {seq: 3, name: c, type: aggregate, arguments: {group_by: [], aggregations: [{column: n, expression: SUM(1)}]}}
        - {seq: 4, name: d, type: append, arguments: {source: {dataset_id: targets}}}
        - seq: 5
          name: e
          type: output
          arguments: {destination: {location: {path: out.csv}}, register_as_dataset: made}
    """).plan
    assert {capability.name: capability.needed_by for capability in plan.capabilities} == {
        "cap.clew.aggregate.v1": (3,),
        "cap.clew.append.v1": (4,),
        "cap.clew.output.v1": (5,),
        "cap.clew.register_dataset.v1": (5,),
        "cap.clew.runtime_join.v1": (1,),
        "cap.clew.update.v1": (1, 2),
    }


def test_an_engine_without_a_capability_refuses_the_plan_and_names_all_that_is_missing(check: Check) -> None:
    plan = check(PLAIN).plan
    require_capabilities(plan, {"cap.clew.update.v1", "cap.clew.delete.v1", "cap.other.v9"})
    with pytest.raises(UserError) as caught:
        require_capabilities(plan, ["cap.clew.update.v2"])
    assert [each.code for each in caught.value.diagnostics] == ["UnknownCapability", "UnknownCapability"]
    assert caught.value.diagnostics[0].hint == "needed by step 2"


def test_a_plan_without_breakpoints_and_jobs_does_not_need_the_debug_capability(check: Check) -> None:
    assert DEBUG_CAPABILITY not in {capability.name for capability in check(PLAIN).plan.capabilities}


@pytest.mark.parametrize("feature", ["assign: here", "after_request: [{take: 1}]"])
def test_a_plan_with_one_of_them_does(check: Check, feature: str) -> None:
    plan = check(PLAIN.replace("selector: x = 0", f"selector: x = 0, {feature}")).plan
    assert {each.name: each.needed_by for each in plan.capabilities}[DEBUG_CAPABILITY] == (2,)
    everything_else = [each.name for each in plan.capabilities if each.name != DEBUG_CAPABILITY]
    with pytest.raises(UserError, match="UnknownCapability"):
        require_capabilities(plan, everything_else)


def test_the_engine_has_every_capability_that_a_plan_can_need() -> None:
    folder = Path(clew.plan.__file__).parent
    named = {
        name for path in folder.rglob("*.py") for name in re.findall(r'"(cap\.[a-z0-9_.]+)"', path.read_text("utf-8"))
    }
    assert "cap.clew.window.v1" in named
    assert named == ENGINE_CAPABILITIES
