"""Column lineage between two steps is what a project that ends there would have."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from clew.definitions import Settings, WorkspaceDefinitions, project_from_data
from clew.plan import Plan, WorkspaceCompiler
from clew.plan.datasets import DatasetUse
from clew.plan.plan import lineage_after
from tests.plan.plan_projects import Data, right_projects
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

OPERATIONS = """
    - seq: 1
      name: tiers
      type: update
      selector: region = "N"
      arguments:
        joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
        assignments: [{column: x, expression: "CONCAT(c.tier, orders.status)"}]
    - {seq: 2, name: drop, type: delete, selector: amount < 0}
    - {seq: 3, name: sums, type: aggregate, selector: x = "y", arguments: {group_by: [region], aggregations:
        [{column: amount, expression: SUM(amount)}]}}
    - {seq: 4, name: more, type: append, arguments: {source: {dataset_id: targets}, source_selector: amount > 1}}
    - {seq: 5, name: total, type: append, arguments: {source: {dataset_id: targets}, aggregation: {group_by: [region],
        aggregations: [{column: amount, expression: SUM(amount)}]}}}
"""


def at_the_end(plan: Plan) -> int:
    return plan.steps[-1].seq if plan.steps else 0


@pytest.mark.slow
@given(right_projects())
def test_after_the_last_step_it_is_the_lineage_of_the_plan(project: tuple[Data, DatasetUse]) -> None:
    data, work = project
    compiler = WorkspaceCompiler(WorkspaceDefinitions(Path(), Settings(name="none")))
    plan = compiler.project_with(project_from_data(data, "<generated>"), {work.name: work}).plan
    assert plan is not None
    assert lineage_after(plan, at_the_end(plan)) == plan.lineage


def test_before_the_first_step_every_column_comes_from_itself(check: Check) -> None:
    for lineage in lineage_after(check(OPERATIONS).plan, 0):
        assert [source.column for source in lineage.derives_from] == [lineage.column]
        assert lineage.influenced_by == ()


def test_after_each_step_it_is_that_of_a_project_which_ends_there(check: Check) -> None:
    whole = check(OPERATIONS).plan
    operations = OPERATIONS.split("    - ")[1:]
    for count in range(len(operations) + 1):
        shorter = check("".join(f"    - {operation}" for operation in operations[:count])).plan
        assert lineage_after(whole, at_the_end(shorter)) == shorter.lineage
        assert lineage_after(replace(whole, lineage=()), at_the_end(shorter)) == shorter.lineage
