"""An operation has id, seq, name, description, type, selector and arguments; each one is checked at its place."""

from collections.abc import Callable

import pytest

from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

UPDATE = """
    - seq: 1
      name: mark
      type: update
      arguments: {assignments: [{column: x, expression: "1"}]}
"""


def test_all_attributes_reach_the_plan(check: Check) -> None:
    step = check("""
        - id: op-1
          seq: 7
          name: drop
          description: nobody wants these
          type: delete
          selector: amount = 0
          arguments: {}
    """).plan.steps[0]
    assert (step.id, step.seq, step.name, step.description, step.type) == (
        "op-1",
        7,
        "drop",
        "nobody wants these",
        "delete",
    )
    assert step.selector is not None
    assert step.selector.text == "amount = 0"


def test_an_operation_without_an_id_gets_one_that_stays_when_it_is_moved(check: Check) -> None:
    before = check(UPDATE).plan.steps[0].id
    after = check(UPDATE.replace("seq: 1", "seq: 40")).plan.steps[0].id
    assert before == after


def test_namesakes_without_ids_are_refused_because_reordering_would_swap_their_ids(check: Check) -> None:
    found = check("""
        - {seq: 1, name: x, type: delete}
        - {seq: 2, name: «x», type: delete}
    """)
    found.reports("DuplicateId")
    assert "line 4" in found.diagnostics[0].message
    assert "another name or an `id`" in str(found.hints[0])


def test_a_namesake_with_an_id_of_its_own_changes_no_other_id(check: Check) -> None:
    alone = check("- {seq: 1, name: x, type: delete}").plan.steps[0].id
    before = check("""
        - {seq: 1, name: x, type: delete}
        - {id: second, seq: 2, name: x, type: delete, selector: amount = 0}
    """).plan
    after = check("""
        - {seq: 3, name: x, type: delete}
        - {id: second, seq: 2, name: x, type: delete, selector: amount = 0}
    """).plan
    assert [step.id for step in before.steps] == [alone, "second"]
    assert [step.id for step in after.steps] == ["second", alone]


def test_two_operations_cannot_have_one_id(check: Check) -> None:
    found = check("""
        - {id: a, seq: 1, name: x, type: delete}
        - {id: «a», seq: 2, name: y, type: delete}
    """)
    found.reports("DuplicateId")
    assert "line 4" in found.diagnostics[0].message


@pytest.mark.parametrize("kept", ["name: x, type: delete", "seq: 1, type: delete", "seq: 1, name: x"])
def test_a_missing_attribute_is_reported_at_the_operation(check: Check, kept: str) -> None:
    check("- «{" + kept + "}»").reports("MissingKey")


@pytest.mark.parametrize("type_", ["update", "aggregate", "append", "output"])
def test_arguments_are_missing_only_from_a_delete(check: Check, type_: str) -> None:
    check(f"- «{{seq: 1, name: x, type: {type_}}}»").reports("MissingKey")
    assert check("- {seq: 1, name: x, type: delete}").compiled.plans["p"].steps


@pytest.mark.parametrize(
    "attributes",
    [
        'id: «""», seq: 1, name: x, type: delete',
        "id: «5», seq: 1, name: x, type: delete",
        "seq: «», name: x, type: delete",
        "seq: «0», name: x, type: delete",
        "seq: «-1», name: x, type: delete",
        "seq: «1.5», name: x, type: delete",
        "seq: «true», name: x, type: delete",
        'seq: «"1"», name: x, type: delete',
        "seq: «[1]», name: x, type: delete",
        'seq: 1, name: «""», type: delete',
        "seq: 1, name: «12», type: delete",
        "seq: 1, name: «{a: b}», type: delete",
        "seq: 1, name: x, type: «remove»",
        'seq: 1, name: x, type: «""»',
        "seq: 1, name: x, type: «[delete]»",
        "seq: 1, name: x, type: delete, description: «[a]»",
        "seq: 1, name: x, type: delete, selector: «[a]»",
        'seq: 1, name: x, type: delete, selector: «""»',
        "seq: 1, name: x, type: delete, arguments: «[a]»",
        "seq: 1, name: x, type: delete, arguments: «all»",
    ],
)
def test_an_empty_or_wrongly_typed_attribute_is_reported_at_its_value(check: Check, attributes: str) -> None:
    check("- {" + attributes + "}").reports("InvalidValue")


@pytest.mark.parametrize("nothing", ["null", "NULL", "~"])
@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("selector", "remove the key to choose all rows, or write FALSE for none"),
        ("arguments", "write a mapping with the keys keep, keys, order"),
    ],
)
def test_a_selector_and_arguments_without_a_value_are_refused_alike(
    check: Check, key: str, remedy: str, nothing: str
) -> None:
    found = check(f"- {{seq: 1, name: x, type: delete, {key}: «{nothing}»}}")
    found.reports("InvalidValue")
    assert found.hints == [remedy]


def test_a_source_selector_without_a_value_is_refused_too(check: Check) -> None:
    source = "source: {dataset_id: targets}, source_selector: «null»"
    check(f"- {{seq: 1, name: x, type: append, arguments: {{{source}}}}}").reports("InvalidValue")


def test_a_delete_takes_no_arguments(check: Check) -> None:
    check("- {seq: 1, name: x, type: delete, arguments: {«rows»: all}}").reports("UnknownKey")


def test_an_unknown_attribute_is_reported_at_its_key(check: Check) -> None:
    found = check("- {seq: 1, name: x, type: delete, «selectr»: amount = 0}")
    found.reports("UnknownKey")
    assert found.hints == ['did you mean "selector"?']


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("«{joins: []}»", "MissingKey"),
        ("{assignments: «[]»}", "InvalidValue"),
        ("{assignments: [«{column: x}»]}", "MissingKey"),
        ('{assignments: [«{expression: "1"}»]}', "MissingKey"),
        ('{assignments: [{column: x, expression: «""»}]}', "InvalidValue"),
        ('{assignments: [{column: x, expression: "1"}], joins: [«{alias: a, dataset_id: customers}»]}', "MissingKey"),
    ],
)
def test_every_assignment_and_join_is_complete(check: Check, arguments: str, code: str) -> None:
    check(f"- {{seq: 1, name: x, type: update, arguments: {arguments}}}").reports(code)


def test_an_append_takes_a_source_selector_rather_than_a_selector(check: Check) -> None:
    found = check("""
        - seq: 1
          name: x
          type: append
          «selector»: amount = 0
          arguments: {source: {dataset_id: targets}}
    """)
    found.reports("InvalidValue")
    assert "source_selector" in str(found.hints[0])
