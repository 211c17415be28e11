"""Named selectors: what `{{NAME}}` stands for, and what is wrong where it stands for nothing."""

from collections.abc import Callable

import pytest

from clew.lang import text_of
from clew.plan.operations import UpdateStep
from clew.plan.steps import Assignment
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def deleting(selector: str) -> str:
    return f"- {{seq: 1, name: drop, type: delete, selector: '{selector}'}}"


def selector_of(found: Checked) -> str:
    selector = found.plan.steps[0].selector
    assert selector is not None
    return text_of(selector.tree)


def test_a_selector_stands_for_its_expression(check: Check) -> None:
    found = check(deleting("{{big}}"), selectors="big: amount > 100")
    assert selector_of(found) == selector_of(check(deleting("amount > 100")))


def test_a_selector_is_substituted_as_a_whole_so_that_precedence_is_kept(check: Check) -> None:
    found = check(deleting("{{a}} AND amount > 1"), selectors='a: region = "N" OR region = "S"')
    assert selector_of(found) == selector_of(check(deleting('(region = "N" OR region = "S") AND amount > 1')))
    assert selector_of(found) != selector_of(check(deleting('region = "N" OR region = "S" AND amount > 1')))


def test_selectors_are_kept_verbatim(check: Check) -> None:
    plan = check(deleting("{{ a }}   AND amount>1"), selectors='b: "  amount   >  2 "\na: "{{b}}  or TRUE"').plan
    assert [(each.path, each.name, each.expression) for each in plan.selectors] == [
        ("main", "a", "{{b}}  or TRUE"),
        ("main", "b", "  amount   >  2 "),
    ]
    assert plan.steps[0].selector is not None
    assert plan.steps[0].selector.text == "{{ a }}   AND amount>1"


def test_selectors_may_use_selectors(check: Check) -> None:
    found = check(deleting("{{c}}"), selectors="a: amount > 1\nb: '{{a}} AND status IS NULL'\nc: NOT ({{b}})")
    assert selector_of(found) == selector_of(check(deleting("NOT (amount > 1 AND status IS NULL)")))


def test_an_undefined_selector_is_refused_in_a_selector(check: Check) -> None:
    found = check(deleting("«{{smal}}» OR amount = 0"), selectors="small: amount < 1")
    found.reports("UnknownSelector")
    assert found.hints == ['did you mean "small"?']


def test_an_undefined_selector_is_refused_in_a_source_selector(check: Check) -> None:
    check("""
        - seq: 1
          name: more
          type: append
          arguments: {source: {dataset_id: targets}, source_selector: "«{{nowhere}}»"}
    """).reports("UnknownSelector")


def test_an_undefined_selector_is_refused_in_a_selector_that_nobody_uses(check: Check) -> None:
    check("", selectors='a: "«{{b}}» AND TRUE"').reports("UnknownSelector")


def test_a_source_selector_may_use_a_named_selector(check: Check) -> None:
    plan = check(
        """
        - seq: 1
          name: more
          type: append
          arguments: {source: {dataset_id: targets}, source_selector: "{{north}}"}
        """,
        selectors='north: region = "N"',
    ).plan
    [step] = plan.steps
    assert step.type == "append"
    assert step.source_selector is not None
    assert [(read.table, read.column) for read in step.reads if read.because == "source_selector"] == [
        ("targets", "region")
    ]


@pytest.mark.parametrize("first_use", ["a", "b", "c"])
def test_a_circle_is_reported_once_whoever_uses_it_first(check: Check, first_use: str) -> None:
    found = check(
        deleting("{{" + first_use + "}}"),
        selectors='a: "{{b}} AND TRUE"\nb: "{{c}}"\nc: "NOT «{{a}}»"',
    )
    found.reports("SelectorCycle")
    assert found.diagnostics[0].message == "the selector refers to itself: a -> b -> c -> a"


def test_a_selector_that_uses_itself_is_a_circle(check: Check) -> None:
    check("", selectors='a: "amount = 0 OR «{{a}}»"').reports("SelectorCycle")


def test_what_is_wrong_in_a_selector_is_reported_once_and_where_it_is_defined(check: Check) -> None:
    check(
        """
        - {seq: 1, name: one, type: delete, selector: "{{bad}}"}
        - {seq: 2, name: two, type: delete, selector: "{{bad}} AND {{typed}}"}
        - {seq: 3, name: three, type: delete, selector: "{{typed}}"}
        """,
        selectors="bad: «amout» > 1\ntyped: «amount» OR TRUE",
    ).reports("UnknownColumn", "TypeMismatch")


def test_a_selector_that_is_no_condition_is_refused(check: Check) -> None:
    check(deleting("{{a}}"), selectors="a: «amount + 1»").reports("TypeMismatch")


@pytest.mark.parametrize("value", ["{{a}}", "IF({{a}}, 1, 2)", "IF(NOT {{a}}, amount, SUM(amount) OVER ())"])
def test_selectors_stand_for_their_conditions_in_values_too(check: Check, value: str) -> None:
    def assigned(value: str) -> Assignment:
        text = (
            f"- {{seq: 1, name: x, type: update, arguments: {{assignments: [{{column: x, expression: '{value}'}}]}}}}"
        )
        (step,) = check(text, selectors="a: amount > 1").plan.steps
        assert isinstance(step, UpdateStep)
        return step.assignments[0]

    found, written = assigned(value), value.replace("{{a}}", "(amount > 1)")
    assert found == assigned(written)
    assert found.value.text == written, "explanations show what stands there"


def test_selectors_stand_in_aggregations_and_conditions_of_joins(check: Check) -> None:
    found = check(
        """
        - seq: 1
          name: sum
          type: aggregate
          arguments: {group_by: [region], aggregations: [{column: amount, expression: "SUM_IF(amount, {{a}})"}]}
        - seq: 2
          name: look up
          type: update
          arguments:
            joins: [{alias: c, dataset_id: customers, on: "c.id = customer_id AND {{a}}"}]
            assignments: [{column: status, expression: c.status}]
        """,
        selectors="a: amount > 1",
    )
    assert [str(step.type) for step in found.plan.steps] == ["aggregate", "update"]


def test_a_long_chain_of_selectors_is_fine(check: Check) -> None:
    chain = "\n".join(f'"s{n}": "{{{{s{n + 1}}}}}"' for n in range(2000))
    found = check(deleting("{{s0}}"), selectors=f"{chain}\ns2000: amount > 1")
    assert selector_of(found) == selector_of(check(deleting("amount > 1")))


def test_selectors_that_grow_too_deep_are_refused_cleanly(check: Check) -> None:
    nested = "NOT (" * 45 + "{{%s}}" + ")" * 45
    chain = "\n".join(f's{n}: "{nested % f"s{n + 1}"}"' for n in range(30))
    found = check(deleting("{{s0}}"), selectors=f"{chain}\ns30: amount > 1")
    assert {each.code for each in found.diagnostics} == {"SyntaxError"}
    assert "too large" in found.diagnostics[0].message


def test_selectors_that_double_at_each_step_are_refused_cleanly(check: Check) -> None:
    chain = "\n".join(f's{n}: "{{{{s{n + 1}}}}} AND {{{{s{n + 1}}}}}"' for n in range(60))
    found = check(deleting("{{s0}}"), selectors=f"{chain}\ns60: amount > 1")
    assert {each.code for each in found.diagnostics} == {"SyntaxError"}


FRAGMENT = """
    id: f
    selectors:
      a: region = "fragment"
      own: '{{outer}} AND {{a}}'
    operations:
      - {seq: 1, name: in fragment, type: delete, selector: "{{%s}}"}
"""


@pytest.mark.parametrize(
    ("used", "meaning"),
    [
        ("a", 'region = "fragment"'),
        ("outer", 'region = "project"'),
        ("own", 'region = "project" AND region = "fragment"'),
    ],
)
def test_a_fragment_sees_its_own_selectors_first_and_each_means_what_it_means_at_home(
    check: Check, used: str, meaning: str
) -> None:
    found = check(
        "- {seq: 1, use: {fragment: f, as: x}}",
        selectors="a: region = \"project\"\nouter: '{{a}}'",
        files={"fragments/f.yaml": FRAGMENT % used},
    )
    assert selector_of(found) == selector_of(check(deleting(meaning)))


def test_the_selectors_of_fragments_are_kept_with_their_path(check: Check) -> None:
    plan = check(
        "- {seq: 1, use: {fragment: f, as: x}}",
        selectors="outer: amount > 1",
        files={"fragments/f.yaml": FRAGMENT % "a"},
    ).plan
    assert [(each.path, each.name) for each in plan.selectors] == [("main", "outer"), ("x", "a"), ("x", "own")]


def test_a_broken_selector_of_a_fragment_is_found_though_nobody_uses_it(check: Check) -> None:
    check(
        "- {seq: 1, use: {fragment: f}}",
        files={
            "fragments/f.yaml": """
                id: f
                selectors: {a: "amount > «{{c}}»", b: "«(»amount"}
                operations: [{seq: 1, name: x, type: delete}]
            """
        },
    ).reports("UnknownSelector", "SyntaxError")
