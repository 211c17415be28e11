"""Breakpoints: labels, the qualified names that they make, and the aliases of fragments in them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clew.definitions import project_from_data
from clew.plan import WorkspaceCompiler
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

FRAGMENT = """
    id: f
    operations:
      - {seq: 1, name: one, type: delete, selector: amount = 0, assign: point}
      - {seq: 2, name: two, type: delete, selector: amount = 1}
"""
OUTER = """
    id: g
    operations:
      - {seq: 1, use: {fragment: f, as: inner}}
      - {seq: 3, name: three, type: delete, assign: outer}
"""


def names_of(found: Checked) -> list[tuple[str, int]]:
    return [(point.name, point.seq) for point in found.plan.breakpoints]


def test_a_label_tags_the_point_behind_its_step_and_changes_nothing_else(check: Check) -> None:
    operation = "- {seq: 3, name: drop, type: delete, selector: amount = 0%s}"
    plain, tagged = check(operation % "").plan, check(operation % ", assign: after_drop").plan
    assert [step.breakpoint for step in tagged.steps] == ["p::main::after_drop"]
    assert [replace(step, breakpoint=None) for step in tagged.steps] == list(plain.steps)
    assert (tagged.columns, tagged.lineage, tagged.selectors) == (plain.columns, plain.lineage, plain.selectors)


def test_a_name_is_plan_path_and_label(check: Check) -> None:
    found = check(
        "- {seq: 1, name: x, type: delete, assign: a.b-C_1}\n- {seq: 2, use: {fragment: g, as: outer}}",
        files={"fragments/f.yaml": FRAGMENT, "fragments/g.yaml": OUTER},
    )
    assert names_of(found) == [("p::main::a.b-C_1", 1), ("p::outer/inner::point", 2), ("p::outer::outer", 4)]


def test_two_uses_of_one_fragment_are_told_apart_by_their_aliases(check: Check) -> None:
    found = check(
        "- {seq: 1, use: {fragment: f, as: a}}\n- {use: {fragment: f, as: b}}", files={"fragments/f.yaml": FRAGMENT}
    )
    assert names_of(found) == [("p::a::point", 1), ("p::b::point", 3)]
    assert len({step.id for step in found.plan.steps}) == 4


def test_uses_without_an_alias_get_one_by_their_place_that_comments_do_not_change(check: Check) -> None:
    files = {"fragments/f.yaml": FRAGMENT, "fragments/g.yaml": OUTER.replace(", as: inner", "")}
    first = check("- {seq: 1, use: {fragment: f}}\n- {seq: 9, use: {fragment: g}}", files=files)
    moved = check("# moved\n\n- seq: 1\n  use: {fragment: f}\n# more\n- {use: {fragment: g}, seq: 9}", files=files)
    assert names_of(first) == [
        ("p::__callsite_S1::point", 1),
        ("p::__callsite_S2/__callsite_S1::point", 9),
        ("p::__callsite_S2::outer", 11),
    ]
    assert first.plan.digest == moved.plan.digest


def test_a_generated_alias_counts_the_uses_and_not_the_operations(check: Check) -> None:
    files = {"fragments/f.yaml": FRAGMENT}
    found = check(
        "- {seq: 50, name: x, type: delete}\n- {seq: 1, use: {fragment: f, as: a}}\n- {seq: 9, use: {fragment: f}}",
        files=files,
    )
    assert names_of(found) == [("p::a::point", 1), ("p::__callsite_S2::point", 9)]


@pytest.mark.parametrize("label", ["a::b", "a b", "ä", "a/b", "", "__step_3", "__callsite_S1", "a:b"])
def test_a_label_of_other_characters_is_refused(check: Check, label: str) -> None:
    text = f'"{label}"'
    check(f"- {{seq: 1, name: x, type: delete, assign: «{text}»}}").reports("InvalidLabel")


@pytest.mark.parametrize("alias", ["a::b", "a/b", "", "__callsite_S1"])
def test_an_alias_of_other_characters_is_refused_and_nothing_else_is_said(check: Check, alias: str) -> None:
    text = f'"{alias}"'
    check(f"- {{seq: 1, use: {{fragment: f, as: «{text}»}}}}", files={"fragments/f.yaml": FRAGMENT}).reports(
        "InvalidLabel"
    )


def test_an_alias_is_unique_and_its_clash_is_the_only_thing_reported(check: Check) -> None:
    found = check(
        "- {seq: 1, use: {fragment: f, as: a}}\n- {seq: 5, use: {fragment: f, as: «a»}}",
        files={"fragments/f.yaml": FRAGMENT.replace("{seq: 1,", "{id: op, seq: 1,")},
    )
    found.reports("DuplicateAlias")


def test_the_alias_main_is_taken(check: Check) -> None:
    check("- {seq: 1, use: {fragment: f, as: «main»}}", files={"fragments/f.yaml": FRAGMENT}).reports("DuplicateAlias")


def test_names_are_unique_in_a_plan(check: Check) -> None:
    found = check("""
        - {seq: 1, name: x, type: delete, assign: here}
        - {seq: 2, name: y, type: delete, assign: «here»}
    """)
    found.reports("DuplicateBreakpoint")
    assert found.diagnostics[0].message == 'the breakpoint "p::main::here" exists already, at step 1'


def test_the_same_label_may_stand_in_two_instances(check: Check) -> None:
    found = check(
        "- {seq: 1, name: x, type: delete, assign: point}\n- {seq: 5, use: {fragment: f, as: a}}",
        files={"fragments/f.yaml": FRAGMENT},
    )
    assert names_of(found) == [("p::main::point", 1), ("p::a::point", 5)]


def test_a_plan_without_a_name_gets_one_from_what_it_does(check: Check) -> None:
    compiler = WorkspaceCompiler(check("").loaded.workspace)

    def plan(selector: str, origin: str) -> tuple[str, str]:
        operation = {"seq": 1, "name": "x", "type": "delete", "selector": selector, "assign": "here"}
        project = project_from_data({"input_dataset": "orders", "operations": [operation]}, origin)
        compiled = compiler.project_with(project, {}).plan
        assert compiled is not None
        assert compiled.title == compiled.name
        return compiled.name, compiled.breakpoints[0].name

    name, point = plan("amount = 0", "one.py")
    assert name.startswith("plan_")
    assert point == f"{name}::main::here"
    assert plan("amount = 0", "two.py") == (name, point)
    assert plan("amount = 1", "one.py")[0] != name


def test_uses_in_a_project_without_a_file_are_told_apart(check: Check) -> None:
    compiler = WorkspaceCompiler(check("", files={"fragments/f.yaml": FRAGMENT}).loaded.workspace)
    uses = [{"seq": seq, "use": {"fragment": "f"}} for seq in (1, 5)]
    project = project_from_data({"id": "fluent", "input_dataset": "orders", "operations": uses}, "fluent.py")
    compilation = compiler.project_with(project, {})
    assert compilation.diagnostics == ()
    assert compilation.plan is not None
    assert len({point.name for point in compilation.plan.breakpoints}) == 2


def test_the_project_of_a_scenario_needs_no_id(check: Check) -> None:
    found = check(
        "",
        files={
            "scenarios/s.yaml": """
                name: inline
                periods: [{identifier: "1", level: all, start_date: 2026-01-01, end_date: 2026-01-31}]
                period: "1"
                datasets: [{id: orders, rows: []}]
                project:
                  input_dataset: orders
                  operations: [{seq: 1, name: x, type: delete, assign: here}]
                expected_output: {rows: []}
            """
        },
    )
    assert found.diagnostics == ()
    [scenario] = found.loaded.workspace.scenarios
    compiler = WorkspaceCompiler(found.loaded.workspace)
    project = compiler.scenario_project(scenario)
    assert project is not None
    plan = compiler.project_with(project, compiler.scenario_datasets(scenario)).plan
    assert plan is not None
    assert plan.name.startswith("plan_")
