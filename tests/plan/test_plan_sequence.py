"""The order of operations is that of seq: positive, unique, with gaps, whatever the order in the file."""

from collections.abc import Callable

from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def test_operations_run_in_the_order_of_seq_and_not_of_the_file(check: Check) -> None:
    plan = check("""
        - {seq: 30, name: third, type: delete, selector: b = 2}
        - {seq: 4, name: first, type: update, arguments: {assignments: [{column: a, expression: "1"}]}}
        - {seq: 7, name: second, type: update, arguments: {assignments: [{column: b, expression: a + 1}]}}
    """).plan
    assert [(step.seq, step.name) for step in plan.steps] == [(4, "first"), (7, "second"), (30, "third")]


def test_two_operations_with_one_seq_are_refused_at_the_second(check: Check) -> None:
    found = check("""
        - {seq: 1, name: first, type: delete}
        - {seq: «1», name: second, type: delete}
        - {seq: 2, name: third, type: delete}
        - {seq: «1», name: fourth, type: delete}
    """)
    found.reports("DuplicateSeq", "DuplicateSeq")
    assert found.diagnostics[0].message == 'seq 1 is already taken by "first" in line 4'


def test_a_seq_that_makes_no_sense_does_not_hide_what_else_is_wrong(check: Check) -> None:
    check("""
        - {seq: 1, name: one, type: update, arguments: {assignments: [{column: a, expression: "1"}]}}
        - {seq: «0», name: none, type: update, arguments: {assignments: [{column: b, expression: a + «nix»}]}}
        - {seq: 2, name: two, type: delete, selector: b = «later»}
        - {seq: 3, name: three, type: update, arguments: {assignments: [{column: later, expression: "1"}]}}
    """).reports("InvalidValue", "UnknownColumn", "UnknownColumn")


def test_an_empty_project_has_a_plan_that_loads_and_nothing_more(check: Check) -> None:
    plan = check("").plan
    assert plan.steps == ()
    assert [column.name for column in plan.columns] == [column.name for column in plan.columns_after(0)]
    assert "amount" in [column.name for column in plan.columns]


def test_a_project_with_outputs_only_has_a_plan(check: Check) -> None:
    plan = check("""
        - seq: 1
          name: out
          type: output
          arguments: {destination: {location: {path: out.parquet}}}
    """).plan
    [step] = plan.steps
    assert step.type == "output"
    assert step.columns[-3:] == ("_period", "_labels", "_row_id")
    assert step.destination.format == "parquet"
