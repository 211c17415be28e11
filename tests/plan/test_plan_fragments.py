"""Fragments: the operations of another file in the place of their use."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from clew.lang import text_of
from clew.plan.operations import UpdateStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def fragment(name: str, *entries: str, more: str = "") -> dict[str, str]:
    listed = "".join(f"\n  - {entry}" for entry in entries)
    return {f"fragments/{name}.yaml": f"id: {name}\n{more}operations:{listed}\n"}


def delete(seq: int, name: str) -> str:
    return f"{{seq: {seq}, name: {name}, type: delete}}"


def order_of(found: Checked) -> list[tuple[int, str, str]]:
    return [(step.seq, step.path, step.name) for step in found.plan.steps]


def test_a_use_takes_as_many_seqs_as_the_fragment_has_operations_in_their_own_order(check: Check) -> None:
    found = check(
        f"- {delete(20, 'last')}\n- {{seq: 9, use: {{fragment: f, as: x}}}}\n- {delete(8, 'first')}",
        files=fragment("f", delete(7, "b"), delete(3, "a"), delete(90, "c")),
    )
    assert order_of(found) == [
        (8, "main", "first"),
        (9, "x", "a"),
        (10, "x", "b"),
        (11, "x", "c"),
        (20, "main", "last"),
    ]


def test_a_use_without_seq_follows_the_entry_before_it(check: Check) -> None:
    found = check(
        f"- {{use: {{fragment: f, as: x}}}}\n- {delete(8, 'own')}\n- {{use: {{fragment: f, as: y}}}}",
        files=fragment("f", delete(1, "a"), delete(2, "b")),
    )
    assert order_of(found) == [(1, "x", "a"), (2, "x", "b"), (8, "main", "own"), (9, "y", "a"), (10, "y", "b")]


def test_fragments_may_use_fragments(check: Check) -> None:
    files = fragment("inner", delete(1, "a"), delete(2, "b")) | fragment(
        "outer", delete(5, "before"), "{seq: 6, use: {fragment: inner, as: in}}", delete(8, "after")
    )
    found = check("- {seq: 1, use: {fragment: outer, as: out}}", files=files)
    assert order_of(found) == [(1, "out", "before"), (2, "out/in", "a"), (3, "out/in", "b"), (4, "out", "after")]


def test_a_use_that_runs_into_another_entry_is_refused_once(check: Check) -> None:
    found = check(
        f"- {{seq: 1, use: {{fragment: f, as: x}}}}\n- {{seq: «2», use: {{fragment: f, as: y}}}}\n- {delete(9, 'z')}",
        files=fragment("f", delete(1, "a"), delete(2, "b"), delete(3, "c")),
    )
    found.reports("DuplicateSeq")
    assert "leave room" in str(found.hints[0])


def test_clashes_within_a_fragment_are_reported_there_whoever_uses_it(check: Check) -> None:
    files = fragment("f", delete(1, "a"), delete(2, "b")) | fragment(
        "g", "{seq: 1, use: {fragment: f}}", "{seq: «2», name: c, type: delete}", "{seq: «2», name: d, type: delete}"
    )
    check("- {seq: 1, use: {fragment: g, as: x}}\n- {seq: 50, use: {fragment: g, as: y}}", files=files).reports(
        "DuplicateSeq", "DuplicateSeq"
    )


def test_an_unknown_fragment_is_reported_and_what_it_may_have_added_is_not(check: Check) -> None:
    found = check(
        """
        - {seq: 1, name: before, type: delete, selector: «nothing» = 1}
        - {seq: 2, use: {fragment: «claen», as: x}}
        - {seq: 3, name: after, type: delete, selector: added = 1 AND LEN(amount, «») > 1}
        - {seq: 4, name: out, type: output, arguments: {destination: {location: {path: o.csv}}, columns: [added]}}
        - {seq: 5, name: more, type: append, arguments: {source: {dataset_id: customers}}}
        - {seq: 6, name: job, type: delete, after_request: [{project: [added]}, {filter: added > 1}]}
        """.replace(", «»", ""),
        files=fragment("clean", delete(1, "a")),
    )
    assert [(each.code, each.span.line if each.span else 0) for each in found.diagnostics] == [
        ("UnknownColumn", 4),
        ("UnknownFragment", 5),
        ("TypeMismatch", 6),
    ]
    assert found.diagnostics[1].hint == 'did you mean "clean"?'


def test_a_broken_fragment_leaves_no_plan_behind_and_is_blamed_alone(check: Check) -> None:
    found = check(
        "- {seq: 1, use: {fragment: f}}\n- {seq: 2, name: x, type: delete, selector: added = 1}",
        files=fragment("f", "{seq: 1, name: a, typo: delete}").copy()
        | {"fragments/f.yaml": "id: f\noperations:\n  - {seq: 1, name: a, «typ»: delete}\n"},
    )
    found.reports("UnknownKey")
    assert found.plans == {}


def test_fragments_in_a_circle_are_refused_once(check: Check) -> None:
    files = {
        "fragments/f.yaml": "id: f\noperations: [{seq: 1, use: {fragment: g}}]",
        "fragments/g.yaml": "id: g\noperations: [{seq: 1, use: {fragment: «f»}}]",
    }
    found = check("- {seq: 1, use: {fragment: f}}", files=files)
    found.reports("FragmentCycle")
    assert found.diagnostics[0].message == "the fragment uses itself: f -> g -> f"


@pytest.mark.slow
def test_fragments_that_multiply_are_refused_instead_of_filling_the_memory(check: Check) -> None:
    files = dict[str, str]()
    for level in range(30):
        files |= fragment(
            f"f{level}", f"{{seq: 1, use: {{fragment: f{level + 1}}}}}", f"{{use: {{fragment: f{level + 1}}}}}"
        )
    found = check("- {seq: 1, use: {fragment: f0}}", files=files | fragment("f30", delete(1, "a")))
    assert {each.code for each in found.diagnostics} == {"InvalidValue"}
    assert found.plans == {}


def test_fragments_that_are_nested_without_end_are_refused(check: Check) -> None:
    files = dict[str, str]()
    for level in range(400):
        files |= fragment(f"f{level}", f"{{seq: 1, use: {{fragment: f{level + 1}}}}}")
    found = check("- {seq: 1, use: {fragment: f0}}", files=files | fragment("f400", delete(1, "a")))
    assert {each.code for each in found.diagnostics} == {"InvalidValue"}


def test_what_is_wrong_in_a_fragment_is_reported_once_for_all_its_uses(check: Check) -> None:
    check(
        "- {seq: 1, use: {fragment: f, as: a}}\n- {seq: 5, use: {fragment: f, as: b}}",
        files={
            "fragments/f.yaml": """
                id: f
                operations:
                  - {seq: 1, name: x, type: delete, selector: «amout» = 1}
                  - {seq: 2, name: y, type: delete, assign: «a::b»}
            """
        },
    ).reports("UnknownColumn", "InvalidLabel")


def test_a_fragment_that_nobody_uses_is_checked_as_far_as_that_goes(check: Check) -> None:
    check(
        "",
        files={
            "fragments/f.yaml": """
                id: f
                selectors: {here: any_column > 1}
                operations:
                  - {seq: 1, name: x, type: delete, selector: "«SUMM»(amount) = 1 OR any.table = {{of_the_project}}"}
                  - {seq: «1», name: y, type: delete, selector: "{{here}} AND "}
                  - {seq: 3, name: z, type: update, arguments: {assignments: [{column: c, expression: unknown}]}}
                  - {seq: 4, name: j, type: append, arguments: {source: {dataset_id: «nowhere»}}}
            """.replace(' AND "', '"')
        },
    ).reports("UnknownFunction", "DuplicateSeq", "UnknownDataset")


def test_a_fragment_may_be_named_by_its_name(check: Check) -> None:
    found = check(
        "- {seq: 1, use: {fragment: Clean up, as: x}}", files=fragment("f", delete(1, "a"), more="name: Clean up\n")
    )
    assert order_of(found) == [(1, "x", "a")]


def test_operation_ids_of_a_fragment_are_unique_in_each_instance(check: Check) -> None:
    found = check(
        "- {id: op, seq: 1, name: own, type: delete}\n- {use: {fragment: f, as: a}}\n- {use: {fragment: f, as: b}}",
        files=fragment("f", "{id: op, seq: 1, name: own, type: delete}"),
    )
    assert [step.id for step in found.plan.steps] == ["op", "a/op", "b/op"]


RATED = """
    arguments:
      amount: {description: What is taxed.}
      rate: {default: 1 / 4, description: The part that is due.}
      within: {default: region}
"""


def taxed(**more: str) -> dict[str, str]:
    update = (
        "{seq: 1, name: tax, type: update, selector: 'arg.amount > 0 AND {{due}}', arguments: {assignments: ["
        "{column: tax, expression: 'ROUND(arg.amount * arg.rate, 2)'}, "
        "{column: part, expression: arg.amount / SUM(arg.amount) OVER (PARTITION BY arg.within)}]}}"
    )
    listed = dedent(RATED) + "selectors: {due: arg.rate <> 0}\n"
    return fragment("f", update, more=listed) | more


def test_arguments_of_a_fragment_are_expressions_that_stand_where_they_are_read(check: Check) -> None:
    found = check(
        "- {seq: 1, use: {fragment: f, as: x, arguments: {amount: amount + 1, rate: 'IF({{north}}, 0.1, 0.2)'}}}",
        selectors='north: region = "N"',
        files=taxed(),
    )
    (step,) = found.plan.steps
    assert isinstance(step, UpdateStep)
    tax, part = step.assignments
    whole = '(amount + 1) * IF(region = "N", 0.1, 0.2)'
    assignment = f"{{column: tax, expression: 'ROUND({whole}, 2)'}}"
    same = check(f"- {{seq: 1, name: t, type: update, arguments: {{assignments: [{assignment}]}}}}")
    (other,) = same.plan.steps
    assert isinstance(other, UpdateStep)
    assert tax.value.tree == other.assignments[0].value.tree
    assert tax.value.text == 'ROUND((amount + 1) * (IF((region = "N"), 0.1, 0.2)), 2)'
    assert part.value.text == "(amount + 1) / SUM((amount + 1)) OVER (PARTITION BY region)"
    assert step.windows[0].keys == ("region",)
    assert step.selector is not None
    assert text_of(step.selector.tree).startswith("((orders.amount + 1) > 0) AND ")


def test_arguments_go_on_into_fragments_within_and_defaults_count_where_none_is_given(check: Check) -> None:
    files = taxed() | fragment(
        "g", "{seq: 1, use: {fragment: f, arguments: {amount: arg.amount * 2}}}", more="arguments: {amount: {}}\n"
    )
    found = check("- {seq: 1, use: {fragment: g, as: x, arguments: {amount: amount}}}", files=files)
    (step,) = found.plan.steps
    assert isinstance(step, UpdateStep)
    assert step.assignments[0].value.text == "ROUND((amount * 2) * (1 / 4), 2)"


def test_arguments_that_are_missing_unknown_or_wrong_are_reported_where_they_are(check: Check) -> None:
    found = check(
        """
        - {seq: 1, use: {fragment: «f», as: x}}
        - {seq: 10, use: {fragment: f, as: y, arguments: {amount: amount, «reat»: 0.1}}}
        - {seq: 20, use: {fragment: f, as: z, arguments: {amount: «amuont»}}}
        """,
        files=taxed(),
    )
    assert {each.code for each in found.diagnostics} == {"MissingParameter", "UnknownParameter", "UnknownColumn"}
    assert 'did you mean "rate"?' in found.hints
    assert 'did you mean "amount"?' in found.hints


def test_a_fragment_reads_only_arguments_that_it_declares(check: Check) -> None:
    files = fragment(
        "f",
        "{seq: 1, name: t, type: delete, selector: «arg.amuont» > 0}",
        more="arguments: {amount: {default: amount}}\n",
    )
    found = check("- {seq: 1, use: {fragment: f, as: x}}", files=files)
    found.reports("UnknownParameter")
    assert found.hints == ['did you mean "amount"?']


def test_names_in_arguments_mean_the_working_dataset_also_where_the_fragment_joins_one_with_such_columns(
    check: Check,
) -> None:
    update = (
        "{seq: 1, name: t, type: update, arguments: {"
        "joins: [{alias: r, dataset_id: rates, on: r.region = arg.region}], "
        "assignments: [{column: x, expression: arg.amount * r.amount}]}}"
    )
    listed = "arguments: {region: {default: region}, amount: {}}\n"
    found = check(
        "- {seq: 1, use: {fragment: f, as: x, arguments: {amount: amount}}}", files=fragment("f", update, more=listed)
    )
    (step,) = found.plan.steps
    assert isinstance(step, UpdateStep)
    assert text_of(step.assignments[0].value.tree) == "orders.amount * r.amount"
    assert text_of(step.joins[0].on.tree) == "r.region = orders.region"
