"""Columns: which ones exist where, their types, and what is said about those that do not."""

from collections.abc import Callable

import pytest

from clew.lang.typed import Convert
from clew.plan.operations import UpdateStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def updating(column: str, expression: str, seq: int = 1) -> str:
    return (
        f"- {{seq: {seq}, name: u{seq}, type: update, "
        f"arguments: {{assignments: [{{column: {column}, expression: '{expression}'}}]}}}}"
    )


@pytest.mark.parametrize(
    ("expression", "code", "hint"),
    [
        ("«amout» + 1", "UnknownColumn", 'did you mean "amount"?'),
        ("orders.«amout»", "UnknownColumn", 'did you mean "amount"?'),
        ("«AMOUNT»", "UnknownColumn", 'did you mean "amount"?'),
        ("«order».amount", "UnknownTable", 'did you mean "orders"?'),
        ("«x» + 1", "UnknownColumn", "this same operation adds it; its expressions all see the row as it was before"),
    ],
)
def test_a_reference_that_means_nothing_is_refused(check: Check, expression: str, code: str, hint: str) -> None:
    found = check(updating("x", expression))
    found.reports(code)
    assert found.hints == [hint]


LOOKED_UP = (
    "type: update, arguments: {joins: [{alias: c, dataset_id: customers, on: %s}],"
    " assignments: [{column: x, expression: %s}]}"
)
SUMMED_UP = (
    "type: append, arguments: {source: {dataset_id: targets}, aggregation:"
    " {group_by: [region], aggregations: [{column: amount, expression: SUM(«amout»)}]}}"
)


@pytest.mark.parametrize(
    "operation",
    [
        "type: delete, selector: «amout» = 0",
        "type: update, selector: «amout» = 0, arguments: {assignments: [{column: x, expression: amount}]}",
        "type: output, selector: «amout» = 0, arguments: {destination: {location: {path: out.csv}}}",
        "type: aggregate, arguments: {group_by: [], aggregations: [{column: n, expression: SUM(«amout»)}]}",
        "type: append, arguments: {source: {dataset_id: targets}, source_selector: targets.«amout» = 0}",
        SUMMED_UP,
        LOOKED_UP % ("c.«idd» = customer_id", "c.tier"),
        LOOKED_UP % ("c.id = customer_id", "c.«tear»"),
    ],
)
def test_columns_are_checked_wherever_an_expression_stands(check: Check, operation: str) -> None:
    found = check(f"- {{seq: 1, name: x, {operation}}}")
    found.reports("UnknownColumn")
    assert found.plans == {}


def test_a_column_that_a_later_operation_adds_is_not_there_yet(check: Check) -> None:
    found = check(updating("x", "orders.«total» + 1") + "\n" + updating("total", "amount", seq=9))
    found.reports("UnknownColumn")
    assert found.hints == ['it is added later, by step 9 "u9"']


def test_a_column_that_a_fragment_adds_later_is_not_there_yet(check: Check) -> None:
    found = check(
        "- {seq: 1, name: x, type: delete, selector: «y» = 1}\n- {seq: 5, use: {fragment: f}}",
        files={"fragments/f.yaml": "id: f\noperations:\n  " + updating("y", "1")},
    )
    found.reports("UnknownColumn")
    assert found.hints == ['it is added later, by step 5 "u1"']


def test_columns_are_checked_in_output_columns_and_group_keys(check: Check) -> None:
    check("""
        - seq: 1
          name: sum
          type: aggregate
          arguments: {group_by: [«regio», orders.region], aggregations: [{column: n, expression: COUNT_ALL()}]}
        - seq: 2
          name: out
          type: output
          arguments:
            destination: {location: {path: out.csv}}
            columns: [region, «amout», amount, «region»]
    """).reports("UnknownColumn", "UnknownColumn", "DuplicateColumn")


def test_a_column_that_is_wrong_is_not_reported_again_where_it_is_used(check: Check) -> None:
    check("""
        - {seq: 1, name: a, type: update, arguments: {assignments: [{column: x, expression: «nothing»}]}}
        - {seq: 2, name: b, type: update, arguments: {assignments: [{column: y, expression: x * 2}]}}
        - {seq: 3, name: c, type: update, arguments: {assignments: [{column: x, expression: "5"}]}}
        - {seq: 4, name: d, type: delete, selector: x = "five" AND LEN(x) > y}
    """).reports("UnknownColumn")


def test_the_type_of_an_existing_column_is_kept_and_values_are_converted(check: Check) -> None:
    plan = check(updating("amount", "1")).plan
    [step] = plan.steps
    assert isinstance(step, UpdateStep)
    assert step.adds == ()
    assert not step.assignments[0].adds_column
    value = step.assignments[0].value.tree
    assert isinstance(value, Convert)
    assert str(value.type) == "decimal(12,2)"


def test_a_value_of_another_kind_cannot_be_assigned(check: Check) -> None:
    check(updating("amount", '«"much"»')).reports("TypeMismatch")


def test_a_new_column_takes_the_type_of_its_expression(check: Check) -> None:
    plan = check(updating("x", "ordered_on")).plan
    assert [(column.name, str(column.type)) for column in plan.steps[0].adds] == [("x", "date")]
    assert plan.columns[-1] == plan.steps[0].adds[0]


@pytest.mark.parametrize("expression", ["NULL", "IF(amount > 1, NULL, NULL)"])
def test_a_new_column_cannot_be_only_null(check: Check, expression: str) -> None:
    found = check(updating("x", f"«{expression}»"))
    found.reports("TypeMismatch")
    assert "TO_STRING(NULL)" in str(found.hints[0])


def test_null_can_be_assigned_to_a_column_that_has_a_type(check: Check) -> None:
    assert check(updating("amount", "NULL")).diagnostics == ()


def test_columns_after_a_step_are_those_loaded_and_those_added_so_far(check: Check) -> None:
    plan = check(updating("x", "1", seq=10) + "\n" + updating("y", "x", seq=20)).plan
    loaded = ["order_id", "customer_id", "region", "status", "amount", "ordered_on"]
    names = {seq: [column.name for column in plan.columns_after(seq)] for seq in (0, 9, 10, 19, 20, 99)}
    assert names == {
        0: loaded,
        9: loaded,
        10: [*loaded, "x"],
        19: [*loaded, "x"],
        20: [*loaded, "x", "y"],
        99: [*loaded, "x", "y"],
    }


@pytest.mark.parametrize("column", ["_row_id", "_deleted", "_period", "_trace_id", "_period_from"])
def test_columns_that_clew_keeps_cannot_be_set(check: Check, column: str) -> None:
    check(updating(f"«{column}»", '"x"')).reports("ReservedColumn")


def test_whoever_sets_that_a_row_is_deleted_is_told_how(check: Check) -> None:
    [problem] = check(updating("_deleted", "TRUE")).diagnostics
    assert problem.hint == "an operation of type delete marks rows as deleted"


def test_labels_can_be_set(check: Check) -> None:
    plan = check(updating("_labels", 'CONCAT(_labels, "{a}")')).plan
    assert plan.steps[0].adds == ()


@pytest.mark.parametrize("columns", [("«Amount»", "x"), ("Total", "«total»"), ("total", "«total»")])
def test_columns_that_differ_in_case_only_cannot_stand_side_by_side(check: Check, columns: tuple[str, str]) -> None:
    check(f"""
        - seq: 1
          name: set
          type: update
          arguments:
            assignments:
              - {{column: {columns[0]}, expression: amount}}
              - {{column: {columns[1]}, expression: amount}}
        - {{seq: 2, name: use, type: delete, selector: {columns[0].strip("«»")} = 1}}
    """).reports("DuplicateColumn")


def test_the_same_holds_for_the_columns_of_an_aggregate(check: Check) -> None:
    check("""
        - seq: 1
          name: sum
          type: aggregate
          arguments:
            group_by: [region]
            aggregations:
              - {column: Total, expression: SUM(amount)}
              - {column: «total», expression: SUM(amount)}
              - {column: «region», expression: MAX_AGG(region)}
    """).reports("DuplicateColumn", "DuplicateColumn")


def test_the_own_table_may_stand_before_a_column_that_is_set_or_written(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: set
          type: update
          arguments:
            assignments: [{column: orders.amount, expression: orders.amount + 1}, {column: Orders.x, expression: 1}]
        - seq: 2
          name: sum up
          type: aggregate
          arguments:
            group_by: [orders.region]
            aggregations: [{column: orders.amount, expression: SUM(orders.amount)}]
        - seq: 3
          name: add
          type: append
          arguments:
            source: {dataset_id: targets}
            aggregation:
              group_by: [targets.region]
              aggregations: [{column: orders.amount, expression: SUM(targets.amount)}]
        - seq: 4
          name: write
          type: output
          arguments: {destination: {location: {path: out}}, columns: [orders.region, orders.amount, orders._period, x]}
    """).plan
    names = [column.name for column in plan.columns]
    assert "x" in names
    assert not [name for name in names if "." in name]
    assert plan.steps[3].columns == ("region", "amount", "_period", "x")  # type: ignore[union-attr]


def test_a_column_of_a_joined_dataset_cannot_be_set(check: Check) -> None:
    check("""
        - seq: 1
          name: set
          type: update
          arguments:
            joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
            assignments: [{column: «c.tier», expression: '"gold"'}]
    """).reports("InvalidValue")


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("1000000.00 * (30 / 365)", "30 / 365 is rounded to 6 digits after the decimal point before"),
        ("amount * (order_id / 365)", "orders.order_id / 365 is rounded to 6 digits"),
        ("ROUND((30 / 365) * amount, 2)", "multiplied by orders.amount: multiply first"),
        ("amount * 30 / 365", None),
        ("amount * (amount / (amount + 1))", None),
        ("amount / 3 * 100", None),
        ("30 / 365", None),
    ],
)
def test_a_quotient_that_is_rounded_before_it_is_multiplied_by_an_amount_is_noted(
    check: Check, expression: str, named: str | None
) -> None:
    found = check(
        f"- {{seq: 7, name: x, type: update, arguments: {{assignments: [{{column: x, expression: '{expression}'}}]}}}}"
    )
    assert found.diagnostics == ()
    notes = [note for note in found.compiled.notes if "rounded" in note]
    assert len(notes) == (named is not None)
    assert all(named is not None and named in note and note.startswith("projects/p.yaml:") for note in notes)
