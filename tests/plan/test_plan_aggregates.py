"""Aggregate functions: where they may stand, and what rows they add."""

from collections.abc import Callable

import pytest

from clew.plan.operations import AggregateStep, AppendStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def test_an_aggregate_adds_columns_for_its_summary_rows(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: sum
          type: aggregate
          selector: amount > 0
          arguments:
            group_by: [orders._period, region]
            aggregations:
              - {column: total, expression: SUM(orders.amount)}
              - {column: n, expression: COUNT(order_id)}
              - {column: mean, expression: AVG(amount)}
              - {column: least, expression: MIN_AGG(amount)}
              - {column: last, expression: MAX_AGG(ordered_on)}
              - {column: kinds, expression: "COUNT_DISTINCT(status) + COUNT_ALL()"}
    """).plan
    [step] = plan.steps
    assert isinstance(step, AggregateStep)
    assert step.group_by == ("_period", "region")
    assert [(column.name, str(column.type)) for column in step.adds] == [
        ("total", "decimal(22,2)"),
        ("n", "integer"),
        ("mean", "decimal(16,6)"),
        ("least", "decimal(12,2)"),
        ("last", "date"),
        ("kinds", "integer"),
    ]


def test_a_group_of_everything_has_no_keys(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: sum
          type: aggregate
          arguments: {group_by: [], aggregations: [{column: amount, expression: SUM(amount)}]}
    """).plan
    [step] = plan.steps
    assert isinstance(step, AggregateStep)
    assert (step.group_by, step.adds) == ((), ())


X = "[{column: x, expression: '1'}]"
OUTSIDE = [
    "type: delete, selector: «SUM»(amount) > 1",
    f"type: update, selector: «COUNT_ALL»() > 1, arguments: {{assignments: {X}}}",
    "type: update, arguments: {assignments: [{column: x, expression: 'amount / «SUM»(amount)'}]}",
    f"type: update, arguments: {{joins: [{{alias: t, dataset_id: targets, on: «AVG»(1) = 1}}], assignments: {X}}}",
    "type: output, selector: NOT («AVG»(amount) = 1), arguments: {destination: {location: {path: out.csv}}}",
    "type: aggregate, selector: «SUM»(1)=1, arguments: {group_by: [], aggregations: [{column: n, expression: SUM(1)}]}",
    "type: append, arguments: {source: {dataset_id: targets}, source_selector: «SUM»(amount) = 1}",
    "type: aggregate, arguments: {group_by: [], aggregations: [{column: x, expression: SUM(«MAX_AGG»(amount))}]}",
]


@pytest.mark.parametrize("operation", OUTSIDE)
def test_an_aggregate_function_outside_of_aggregations_is_refused(check: Check, operation: str) -> None:
    check(f"- {{seq: 1, name: x, {operation}}}").reports("AggregateNotAllowed")


def test_an_aggregate_within_an_aggregate_is_refused_in_an_append_too(check: Check) -> None:
    check("""
        - seq: 1
          name: more
          type: append
          arguments:
            source: {dataset_id: targets}
            aggregation: {group_by: [], aggregations: [{column: amount, expression: SUM(«SUM»(amount))}]}
    """).reports("AggregateNotAllowed")


def test_an_aggregate_function_in_a_named_selector_is_refused_there(check: Check) -> None:
    check("- {seq: 1, name: x, type: delete, selector: '{{big}}'}", selectors="big: amount > «AVG»(amount)").reports(
        "AggregateNotAllowed"
    )


def test_an_aggregation_needs_an_aggregate_function(check: Check) -> None:
    check("""
        - seq: 1
          name: sum
          type: aggregate
          arguments:
            group_by: [region]
            aggregations:
              - {column: x, expression: «amount»}
              - {column: y, expression: region}
              - {column: z, expression: SUM(amount) + «amount»}
    """).reports("AggregateRequired", "AggregateRequired")


def test_a_wrong_group_key_is_not_held_against_the_aggregations(check: Check) -> None:
    check("""
        - seq: 1
          name: sum
          type: aggregate
          arguments:
            group_by: [«regoin»]
            aggregations: [{column: x, expression: 'IF(region = "N", SUM(amount), 0)'}]
    """).reports("UnknownColumn")


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("«_row_id»", "ReservedColumn"),
        ("«_deleted»", "ReservedColumn"),
        ("«UPPER(region)»", "SyntaxError"),
        ("«1»", "SyntaxError"),
        ("«other».region", "UnknownTable"),
    ],
)
def test_only_columns_with_a_meaning_for_groups_can_be_grouped_by(check: Check, key: str, code: str) -> None:
    check(f"""
        - seq: 1
          name: sum
          type: aggregate
          arguments: {{group_by: ["{key}"], aggregations: [{{column: x, expression: SUM(amount)}}]}}
    """).reports(code)


def test_an_append_may_aggregate_its_source(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: more
          type: append
          arguments:
            source: {dataset_id: targets}
            source_selector: targets.amount > 1
            aggregation:
              group_by: [targets._period, targets.region]
              aggregations: [{column: amount, expression: SUM(targets.amount)}]
    """).plan
    [step] = plan.steps
    assert isinstance(step, AppendStep)
    assert step.group_by == ("_period", "region")
    assert [assignment.column for assignment in step.columns] == ["_period", "region", "amount"]
    assert str(step.columns[-1].value.tree.type) == "decimal(12,2)"
