"""Conditions on groups: what may be written, and what the plan says."""

from collections.abc import Callable

import pytest

from clew.lang import text_of
from clew.plan.json_form import plan_from_json, plan_to_json
from clew.plan.operations import AggregateStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def summing(having: str | None) -> str:
    condition = "" if having is None else f"\n    having: '{having}'"
    return f"""
- seq: 1
  name: totals
  type: aggregate
  arguments:
    group_by: [region]
    aggregations: [{{column: total, expression: SUM(amount)}}]{condition}
"""


def test_a_condition_reads_aggregates_and_keys(check: Check) -> None:
    plan = check(summing('COUNT(customer_id) > 1 AND region <> "X"')).plan
    [step] = plan.steps
    assert isinstance(step, AggregateStep)
    assert step.having is not None
    assert text_of(step.having.tree) == '(COUNT(orders.customer_id) > 1) AND (orders.region <> "X")'
    assert plan_from_json(plan_to_json(plan)) == plan
    [total] = [each for each in plan.lineage if each.column == "total"]
    assert {source.column for source in total.influenced_by} == {"region", "customer_id"}


def test_an_aggregate_without_it_has_the_plan_that_it_always_had(check: Check) -> None:
    plan = check(summing(None)).plan
    assert "group_condition" not in str(plan_to_json(plan))
    assert plan.digest != check(summing("SUM(amount) > 0")).plan.digest


@pytest.mark.parametrize(
    ("having", "code"),
    [
        ("SUM(«amuont») > 0", "UnknownColumn"),
        ("«SUM(amount)»", "TypeMismatch"),
        ("«amount» > 0", "AggregateRequired"),
        ("«total» > 0", "UnknownColumn"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(check: Check, having: str, code: str) -> None:
    check(summing(having)).reports(code)
