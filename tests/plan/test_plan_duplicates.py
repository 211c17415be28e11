"""Deletes that let one of several rows stay: what may be written, and what the plan says."""

from collections.abc import Callable

import pytest

from clew.plan.json_form import plan_from_json, plan_to_json
from clew.plan.keeping import Keeping
from clew.plan.operations import DeleteStep
from clew.plan.sort_keys import SortKey
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def deleting(arguments: str) -> str:
    return f"- {{seq: 1, name: once, type: delete, arguments: {arguments}}}"


def test_keys_order_and_directions_are_in_the_plan_and_come_back_from_json(check: Check) -> None:
    plan = check(deleting('{keep: last, keys: [orders.region, status], order: ["amount DESC", "order_id asc"]}')).plan
    [step] = plan.steps
    assert isinstance(step, DeleteStep)
    assert step.keeping == Keeping("last", ("region", "status"), (SortKey("amount", True), SortKey("order_id")))
    assert plan_from_json(plan_to_json(plan)) == plan
    assert step.summary == "every row, all but the last by region, status"
    assert [detail.label for detail in step.details()] == ["rows", "keeps"]


def test_what_decides_which_row_stays_influences_later_summaries(check: Check) -> None:
    found = check(
        deleting("{keep: first, keys: [region], order: [order_id]}")
        + """
- seq: 2
  name: total
  type: aggregate
  arguments: {group_by: [], aggregations: [{column: total, expression: SUM(amount)}]}
"""
    )
    [total] = [each for each in found.plan.lineage if each.column == "total"]
    assert {source.column for source in total.influenced_by} == {"region", "order_id"}


def test_a_delete_without_keep_has_the_plan_that_it_always_had(check: Check) -> None:
    plain = check("- {seq: 1, name: once, type: delete}").plan
    assert "keeping" not in str(plan_to_json(plain))
    assert plain.digest == check(deleting("{}")).plan.digest
    assert plain.digest != check(deleting("{keep: first, keys: [region]}")).plan.digest


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("{keep: «first»}", "InvalidValue", "keep needs keys"),
        ("{keep: «newest», keys: [region]}", "InvalidValue", "expected first or last"),
        ("{«keys»: [region]}", "InvalidValue", "keys is for keep only"),
        ("{«order»: [region]}", "InvalidValue", "order is for keep only"),
        ("{keep: first, keys: [«regoin»]}", "UnknownColumn", "regoin"),
        ('{keep: first, keys: [region], order: ["«amuont» desc"]}', "UnknownColumn", "amuont"),
        ("{keep: first, keys: [region, «region»]}", "DuplicateColumn", "region"),
        ('{keep: first, keys: [region], order: [order_id, "«order_id desc»"]}', "DuplicateColumn", "order_id"),
        ("{keep: first, keys: [region], order: [«_deleted»]}", "ReservedColumn", "sorted by"),
        ('{keep: first, keys: [region], order: ["«amount * 2»"]}', "SyntaxError", "only columns can be sorted by"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(check: Check, arguments: str, code: str, message: str) -> None:
    found = check(deleting(arguments))
    found.reports(code)
    assert message in str(found.diagnostics[0].message)
