"""Columns that an update renames or drops: later operations do not have them, rows keep what they had."""

from collections.abc import Callable

import pytest

from clew.plan import Plan
from clew.plan.json_form import plan_from_json, plan_to_json
from clew.plan.operations import OutputStep, UpdateStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

RENAMING = """
    - seq: 10
      name: tidy
      type: update
      arguments:
        assignments: [{column: large, expression: amount > 100}]
        rename: {orders.amount: paid, region: area}
        drop: [customer_id]
    - seq: 20
      name: mark
      type: update
      selector: large
      arguments: {assignments: [{column: status, expression: area}]}
    - {seq: 30, name: out, type: output, arguments: {destination: {location: {path: o.csv}}}}
"""


def written(plan: Plan) -> tuple[str, ...]:
    step = plan.steps[-1]
    assert isinstance(step, OutputStep)
    return step.columns


def test_a_column_with_another_name_has_the_values_of_the_one_that_is_gone(check: Check) -> None:
    plan = check(RENAMING).plan
    step = plan.steps[0]
    assert isinstance(step, UpdateStep)
    assert [(each.column, each.value.text) for each in step.assignments] == [
        ("large", "amount > 100"),
        ("paid", "amount"),
        ("area", "region"),
    ]
    assert step.drops == ("amount", "region", "customer_id")
    assert step.summary == "sets large, paid, area, drops amount, region, customer_id"
    assert written(plan)[:6] == ("order_id", "status", "ordered_on", "large", "paid", "area")
    origins = {each.column: [source.column for source in each.derives_from] for each in plan.lineage}
    assert (origins["paid"], origins["status"]) == (["amount"], ["region", "status"])
    assert plan_from_json(plan_to_json(plan)) == plan


def test_an_update_may_drop_columns_and_nothing_else(check: Check) -> None:
    plan = check(
        """
        - {seq: 10, name: tidy, type: update, arguments: {drop: [amount, region]}}
        - {seq: 30, name: out, type: output, arguments: {destination: {location: {path: o.csv}}}}
        """
    ).plan
    assert {"amount", "region"} & {*written(plan)} == set()


SETTING = "{{seq: 20, name: a, type: update, arguments: {{assignments: [{{column: «{}», expression: '1'}}]}}}}"
APPENDING = "{seq: 20, name: a, type: append, arguments: {source: {dataset_id: targets}, columns: {«amount»: amount}}}"
SUMMING = (
    "{seq: 20, name: a, type: aggregate, arguments: {group_by: [«region»], aggregations: "
    "[{column: status, expression: MAX_AGG(status)}]}}"
)


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("{seq: 20, name: a, type: delete, selector: «amount» > 1}", "UnknownColumn"),
        (SETTING.format("amount"), "InvalidValue"),
        (SETTING.format("Amount"), "InvalidValue"),
        ("{seq: 20, name: a, type: update, arguments: {drop: [«amount»]}}", "UnknownColumn"),
        ("{seq: 20, name: a, type: update, arguments: {rename: {status: «region»}}}", "InvalidValue"),
        (APPENDING, "AppendColumnMismatch"),
        (SUMMING, "UnknownColumn"),
    ],
)
def test_later_operations_do_not_have_it(check: Check, after: str, code: str) -> None:
    found = check(f"- {{seq: 10, name: tidy, type: update, arguments: {{drop: [amount, region]}}}}\n- {after}")
    found.reports(code)
    [problem] = found.diagnostics
    assert code == "AppendColumnMismatch" or "an update before has dropped it" in f"{problem.message} {problem.hint}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("«{}»", "MissingKey"),
        ("{drop: [«nothing»]}", "UnknownColumn"),
        ("{drop: [«_period»]}", "ReservedColumn"),
        ("{rename: {amount: x}, drop: [«amount»]}", "DuplicateColumn"),
        ("{rename: {amount: «status»}}", "InvalidValue"),
        ("{rename: {amount: x, region: «x»}}", "DuplicateColumn"),
        ("{rename: {amount: «_deleted»}}", "InvalidValue"),
    ],
)
def test_what_cannot_be_renamed_or_dropped_is_said(check: Check, arguments: str, code: str) -> None:
    check(f"- {{seq: 10, name: tidy, type: update, arguments: {arguments}}}").reports(code)


def test_names_are_for_all_rows(check: Check) -> None:
    check("- {seq: 10, name: t, type: update, selector: amount > 1, arguments: {«drop»: [amount]}}").reports(
        "InvalidValue"
    )
