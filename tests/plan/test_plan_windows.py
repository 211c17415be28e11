"""Calls with OVER in updates: what may be written, and what the plan says."""

from collections.abc import Callable

import pytest

from clew.plan.json_form import plan_from_json, plan_to_json
from clew.plan.operations import UpdateStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def setting(expression: str, more: str = "", selector: str = "") -> str:
    chosen = f"selector: '{selector}', " if selector else ""
    assignments = f"assignments: [{{column: found, expression: '{expression}'}}]"
    return f"- {{seq: 1, name: look, type: update, {chosen}arguments: {{{more}{assignments}}}}}"


def test_windows_are_in_the_plan_once_and_come_back_from_json(check: Check) -> None:
    share = "amount / SUM(amount) OVER (PARTITION BY orders.region) + SUM(amount) over (partition by region)"
    plan = check(setting(f"{share} + RANK() OVER (ORDER BY ordered_on DESC, amount)")).plan
    [step] = plan.steps
    assert isinstance(step, UpdateStep)
    assert [each.column for each in step.windows] == [
        "SUM(orders.amount) OVER (PARTITION BY region)",
        "RANK() OVER (ORDER BY ordered_on desc, amount)",
    ]
    assert plan_from_json(plan_to_json(plan)) == plan
    assert step.is_wide
    assert "cap.clew.window.v1" in step.capabilities
    assert {read.column for read in step.reads} == {"amount", "region", "ordered_on"}
    assert "windows" in [detail.label for detail in step.details()]


def test_values_of_other_rows_are_what_the_column_derives_from(check: Check) -> None:
    plan = check(setting("LAG(amount) OVER (PARTITION BY region ORDER BY ordered_on)")).plan
    [found] = [each for each in plan.lineage if each.column == "found"]
    assert {source.column for source in found.derives_from} == {"amount"}
    assert {source.column for source in found.influenced_by} == {"region", "ordered_on"}


def test_an_update_without_windows_has_the_plan_that_it_always_had(check: Check) -> None:
    assert "windows" not in str(plan_to_json(check(setting("amount * 2")).plan))


def test_frames_decide_the_digest(check: Check) -> None:
    texts = ["", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"]
    plans = [check(setting(f"SUM(amount) OVER (ORDER BY order_id {text})")).plan for text in texts]
    assert len({plan.digest for plan in plans}) == 3


JOIN = "joins: [{alias: c, dataset_id: customers, on: c.id = orders.customer_id}], "


@pytest.mark.parametrize(
    ("expression", "code", "message"),
    [
        ("«RANK»()", "SyntaxError", "RANK needs a window"),
        ("«RANK»() OVER (PARTITION BY region)", "SyntaxError", "RANK needs an order"),
        ("«LAG»(amount) OVER ()", "SyntaxError", "LAG needs an order"),
        ("LAG(amount, «order_id») OVER (ORDER BY order_id)", "TypeMismatch", "literal whole number"),
        ("«MEDIAN»(amount) OVER ()", "SyntaxError", "has no window"),
        ("«UPPER»(region) OVER ()", "SyntaxError", "UPPER has no window"),
        ("«IFNULL»(region, status) OVER ()", "SyntaxError", "IFNULL has no window"),
        ("SUM(«SUM»(amount) OVER ()) OVER ()", "SyntaxError", "OVER is not allowed in a window"),
        ("SUM(amount) OVER (PARTITION BY «regoin»)", "UnknownColumn", "regoin"),
        ("SUM(amount) OVER (ORDER BY «_deleted»)", "ReservedColumn", "sorted by"),
        ("SUM(amount) OVER (PARTITION BY UPPER«(»region))", "SyntaxError", "not allowed here"),
        ("SUM(amount) «OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW)»", "SyntaxError", "ends before it begins"),
        ("SUM(amount) «OVER (ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW)»", "SyntaxError", "whole number"),
        ("RANK() «OVER (ORDER BY amount ROWS BETWEEN CURRENT ROW AND CURRENT ROW)»", "SyntaxError", "takes no ROWS"),
        ("SUM(«region») OVER ()", "TypeMismatch", "number"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(check: Check, expression: str, code: str, message: str) -> None:
    found = check(setting(expression))
    found.reports(code)
    assert message in str(found.diagnostics[0].message)


def test_windows_do_not_see_joins(check: Check) -> None:
    found = check(setting("COUNT(«c».tier) OVER ()", JOIN))
    found.reports("UnknownTable")
    assert "a window does not see joins" in str(found.diagnostics[0].hint)


def test_which_rows_are_in_a_window_is_known_before_anything_is_joined(check: Check) -> None:
    text = setting(
        "COUNT_ALL() OVER ()", "joins: [{alias: j, dataset_id: customers, on: j.id = customer_id}], ", "j.tier"
    )
    found = check(text.replace("'j.tier'", "«j.tier IS NULL»"))
    found.reports("InvalidValue")
    assert "reads columns of a join" in str(found.diagnostics[0].message)


@pytest.mark.parametrize(
    "operation",
    [
        "- {seq: 1, name: x, type: delete, selector: «RANK»() OVER (ORDER BY amount) > 1}",
        """
- seq: 1
  name: x
  type: aggregate
  arguments: {group_by: [region], aggregations: [{column: total, expression: «SUM»(amount) OVER ()}]}
""",
    ],
)
def test_only_values_of_updates_have_windows(check: Check, operation: str) -> None:
    found = check(operation)
    found.reports("SyntaxError")
    assert "OVER is not allowed" in str(found.diagnostics[0].message)
