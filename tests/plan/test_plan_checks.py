"""Checks that quarantine: where the plan deletes the rows that fail."""

from collections.abc import Callable

from clew.plan.operations import DeleteStep
from tests.plan.plan_workspaces import BASE, Checked

Check = Callable[..., Checked]

CHECKED = (
    BASE["datasets/orders.yaml"]
    + """
        checks:
          - {not_null: amount, severity: quarantine}
"""
)
STEPS = """
- {seq: 10, name: up, type: update, arguments: {assignments: [{column: amount, expression: amount * 2}]}}
- seq: 20
  name: write
  type: output
  arguments:
    destination: {datasource_id: files, path: out.csv}
    columns: [order_id, customer_id, region, status, amount, ordered_on]
"""
AT_THE_END = "checks: [{name: late, not_null: region, severity: quarantine}]\n"


def test_rows_that_fail_at_the_end_are_not_in_the_outputs_that_come_last(check: Check) -> None:
    plan = check(STEPS, more=AT_THE_END).plan
    assert [(step.seq, step.name) for step in plan.steps] == [(10, "up"), (11, "Quarantine: late"), (20, "write")]
    assert [(each.at, each.quarantined_by) for each in plan.checks] == [(10, 11)]


def test_without_a_change_they_are_deleted_when_they_are_loaded(check: Check) -> None:
    only_output = STEPS[STEPS.index("- seq: 20") :]
    plan = check(only_output, more=AT_THE_END).plan
    assert [(step.seq, step.name) for step in plan.steps] == [(1, "Quarantine: late"), (20, "write")]


def test_a_dataset_that_is_read_and_registered_quarantines_in_two_steps_with_ids_of_their_own(check: Check) -> None:
    registering = STEPS + "    register_as_dataset: orders\n"
    plan = check(registering, files={"datasets/orders.yaml": CHECKED}).compiled.plans["p"]
    deletes = [step for step in plan.steps if isinstance(step, DeleteStep)]
    assert [step.seq for step in deletes] == [1, 11]
    assert len({step.id for step in plan.steps}) == len(plan.steps)
    once = check(STEPS, files={"datasets/orders.yaml": CHECKED}).plan
    assert once.steps[0].id == deletes[0].id
