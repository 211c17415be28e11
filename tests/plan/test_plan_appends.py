"""Append: incoming columns must exist; those that do not come in stay empty."""

from collections.abc import Callable

import pytest

from clew.plan.operations import AppendStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def appending(dataset: str, more: str = "") -> str:
    return f"""
        - seq: 1
          name: more
          type: append
          arguments:
            source: {{dataset_id: {dataset}}}
            {more}
    """


def test_raw_rows_fill_the_columns_that_they_have(check: Check) -> None:
    [step] = check(appending("targets")).plan.steps
    assert isinstance(step, AppendStep)
    assert step.group_by is None
    assert [(each.column, each.value.text, str(each.value.tree.type)) for each in step.columns] == [
        ("region", "targets.region", "string"),
        ("amount", "targets.amount", "decimal(12,2)"),
        ("_period", "targets._period", "string"),
    ]


def test_an_incoming_column_that_the_working_dataset_lacks_is_refused(check: Check) -> None:
    found = check(appending("«customers»"))
    assert [(each.code, each.message) for each in found.diagnostics] == [
        ("AppendColumnMismatch", f'the working dataset has no column "{name}"') for name in ("email", "id", "tier")
    ]
    assert {each.span for each in found.diagnostics} == set(found.marks)
    assert found.plans == {}


def test_an_update_before_makes_room(check: Check) -> None:
    found = check("""
        - seq: 1
          name: room
          type: update
          arguments:
            assignments:
              - {column: id, expression: customer_id}
              - {column: tier, expression: TO_STRING(NULL)}
              - {column: email, expression: TO_STRING(NULL)}
        - {seq: 2, name: more, type: append, arguments: {source: {dataset_id: customers}}}
    """)
    assert found.diagnostics == ()


def test_an_incoming_column_of_another_type_is_refused(check: Check) -> None:
    found = check(
        appending("«odd»"),
        files={"datasets/odd.yaml": "{id: odd, main_table: {name: odd, columns: [{name: region, type: date}]}}"},
    )
    found.reports("AppendColumnMismatch")
    assert found.diagnostics[0].message == (
        'the column "region" comes in as date, the working dataset has it as string'
    )


@pytest.mark.parametrize(
    ("aggregation", "code"),
    [
        ("{group_by: [«tier»], aggregations: [{column: amount, expression: COUNT(id)}]}", "AppendColumnMismatch"),
        ("{group_by: [status], aggregations: [{column: «total», expression: COUNT(id)}]}", "AppendColumnMismatch"),
        ("{group_by: [status], aggregations: [{column: «status», expression: MAX_AGG(tier)}]}", "DuplicateColumn"),
        ("{group_by: [«amount»], aggregations: [{column: amount, expression: COUNT(id)}]}", "UnknownColumn"),
        ("{group_by: [«orders».status], aggregations: [{column: amount, expression: COUNT(id)}]}", "UnknownTable"),
        ("{group_by: [], aggregations: [{column: amount, expression: «MAX_AGG(tier)»}]}", "TypeMismatch"),
        ("{group_by: [], aggregations: [{column: «_period», expression: MAX_AGG(tier)}]}", "ReservedColumn"),
    ],
)
def test_an_aggregated_append_follows_the_same_rule(check: Check, aggregation: str, code: str) -> None:
    check(appending("customers", f"aggregation: {aggregation}")).reports(code)


def test_columns_say_what_the_new_rows_have(check: Check) -> None:
    columns = 'columns: {region: UPPER(region), amount: "IF(amount > 0, amount, 0.00)"}'
    [step] = check(appending("targets", columns)).plan.steps
    assert isinstance(step, AppendStep)
    assert [(each.column, each.value.text, str(each.value.tree.type)) for each in step.columns] == [
        ("region", "UPPER(region)", "string"),
        ("amount", "IF(amount > 0, amount, 0.00)", "decimal(12,2)"),
        ("_period", "targets._period", "string"),
    ]
    assert [(read.column, read.because) for read in step.reads] == [
        ("region", "column region"),
        ("amount", "column amount"),
        ("_period", "column _period"),
    ]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ("{«tier»: region}", "AppendColumnMismatch"),
        ("{«amount»: region}", "AppendColumnMismatch"),
        ("{«amount»: amount * 0.125}", "AppendColumnMismatch"),
        ("{«_period»: region}", "ReservedColumn"),
        ("{region: «orders».region}", "UnknownTable"),
        ("{region: «nothing»}", "UnknownColumn"),
        ("{region: «SUM»(amount)}", "AggregateNotAllowed"),
    ],
)
def test_what_columns_cannot_be(check: Check, columns: str, code: str) -> None:
    check(appending("targets", f"columns: {columns}")).reports(code)


def test_columns_and_an_aggregation_exclude_each_other(check: Check) -> None:
    both = "«columns»: {region: region}\n            aggregation: {group_by: [region], aggregations: []}"
    text = both.replace("aggregations: []", "aggregations: [{column: amount, expression: SUM(amount)}]")
    check(appending("targets", text)).reports("InvalidValue")


def test_a_source_selector_sees_the_source_only(check: Check) -> None:
    found = check(appending("targets", "source_selector: targets.amount > «orders».amount"))
    found.reports("UnknownTable")
    assert found.hints == ["only the rows of the source are visible here"]


def test_bitemporal_rows_come_in_without_the_columns_that_say_when_they_count(check: Check) -> None:
    [step] = check(appending("rates")).plan.steps
    assert isinstance(step, AppendStep)
    assert [each.column for each in step.columns] == ["region", "amount"]


def test_bitemporal_rows_keep_them_among_their_own(check: Check) -> None:
    [step] = check(appending("rates"), input_dataset="rates").plan.steps
    assert isinstance(step, AppendStep)
    assert [each.column for each in step.columns] == ["region", "amount", "_period_from", "_period_to"]


def test_a_project_may_append_its_own_input(check: Check) -> None:
    plan = check(appending("orders", 'source_selector: orders.region = "N"')).plan
    [amount] = [lineage for lineage in plan.lineage if lineage.column == "amount"]
    assert [str(source.column) for source in amount.derives_from] == ["amount"]
    assert [(source.dataset, source.column) for source in amount.influenced_by] == [("orders", "region")]


def test_an_unknown_source_does_not_hide_what_else_is_wrong(check: Check) -> None:
    check(
        appending(
            "«nowhere»",
            """source_selector: any.column > «SUMM»(1)
            aggregation: {group_by: [region], aggregations: [{column: amount, expression: «(»x}]}""",
        )
    ).reports("UnknownDataset", "UnknownFunction", "SyntaxError")


def test_the_selector_of_a_source_sees_the_period_of_its_rows_and_no_other_system_column(check: Check) -> None:
    text = """
- seq: 1
  name: x
  type: append
  arguments:
    source: {dataset_id: targets}
    source_selector: %s
    aggregation: {group_by: [], aggregations: [{column: amount, expression: COUNT_ALL()}]}
"""
    assert check(text % "targets._period IS NOT NULL").plan.steps
    for column in ("_labels", "_deleted", "_row_id"):
        assert [found.code for found in check(text % f"targets.{column} IS NULL").diagnostics] == ["UnknownColumn"]
