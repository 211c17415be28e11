"""Scenarios at compile time: their projects with their datasets."""

from collections.abc import Callable, Mapping

import pytest

from clew.definitions import Project
from clew.plan import Compilation, WorkspaceCompiler
from clew.plan.datasets import DatasetUse
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def scenario(body: str) -> dict[str, str]:
    head = """
name: s
periods: [{identifier: "1", level: all, start_date: 2026-01-01, end_date: 2026-01-31}]
period: "1"
"""
    return {"scenarios/s.yaml": head + body}


ON_X = "- {seq: 1, name: x, type: delete, selector: amount = 1}"


def test_datasets_of_a_scenario_stand_in_for_those_of_the_workspace(check: Check) -> None:
    found = check(
        ON_X,
        files=scenario("""
datasets:
  - {id: orders, main_table: {name: lines, columns: [{name: amount, type: integer}]}, rows: [{amount: 1}]}
project: p
expected_output: {rows: []}
"""),
    )
    assert found.diagnostics == ()
    [written] = found.loaded.workspace.scenarios
    compiler = WorkspaceCompiler(found.loaded.workspace)
    project = compiler.scenario_project(written)
    assert project is not None
    plan = compiler.project_with(project, compiler.scenario_datasets(written)).plan
    assert plan is not None
    assert (plan.input.table, plan.input.resolver_source) == ("lines", "inline")


def test_all_unknown_datasets_of_a_scenario_are_reported(check: Check) -> None:
    check(
        ON_X,
        files=scenario("""
datasets: [{id: orders, rows: []}, {id: «custmers», rows: []}, {id: «nowhere», rows: []}]
project: p
expected_output: {rows: []}
"""),
    ).reports("UnknownDataset", "UnknownDataset")


def test_the_error_that_a_scenario_expects_is_not_an_error(check: Check) -> None:
    body = """
datasets: [{id: orders, rows: []}]
project:
  input_dataset: orders
  operations: [{seq: 1, name: x, type: delete, selector: %s = 1}]
expected_error: {code: %s}
"""
    assert check("", files=scenario(body % ("nothing", "UnknownColumn"))).diagnostics == ()
    check("", files=scenario(body % ("«nothing»", "UnknownDataset"))).reports("UnknownColumn")


def test_a_scenario_may_borrow_a_registered_dataset(check: Check) -> None:
    found = check(
        """
        - seq: 1
          name: publish
          type: output
          arguments: {destination: {location: {path: made.parquet}}, register_as_dataset: made}
        """,
        files=scenario("""
datasets: [{id: made, rows: []}]
project: {input_dataset: made, operations: [{seq: 1, name: x, type: delete, selector: amount = 1}]}
expected_output: {rows: []}
"""),
    )
    assert found.diagnostics == ()


def test_what_a_scenario_expects_has_to_be_there(check: Check) -> None:
    operations = f"""
{ON_X}
- {{seq: 2, name: Write totals, type: output, arguments: {{destination: {{location: {{path: out}}}}}}}}
"""
    found = check(
        operations,
        files=scenario("""
datasets: [{id: orders, rows: [{amount: 1, _period: "1"}, {amuont: 2}]}]
project: p
expected_outputs: {Write total: {rows: []}, "2": {rows: []}, "3": {rows: []}}
expected_trace:
  - {operation_seq: 0, change_type: created}
  - {operation_seq: 5, change_type: deleted}
"""),
    )
    assert [(each.code, each.message, each.hint) for each in found.diagnostics] == [
        ("UnknownColumn", 'no column "amuont" in orders', 'did you mean "amount"?'),
        ("InvalidValue", 'the project has no output "Write total"', 'did you mean "Write totals"?'),
        ("InvalidValue", 'the project has no output "3"', "the outputs are 2, Write totals"),
        ("InvalidValue", "the project has no operation with the seq 5", "its operations are 1, 2, and 0 is loading"),
    ]
    assert all(each.span is not None and each.span.file == "scenarios/s.yaml" for each in found.diagnostics)


def test_an_error_that_does_not_exist_cannot_be_expected(check: Check) -> None:
    found = check(ON_X, files=scenario("project: p\nexpected_error: {code: SchemaMissmatch}\n"))
    [problem] = found.diagnostics
    assert (problem.message, problem.hint) == (
        'no error has the code "SchemaMissmatch"',
        'did you mean "SchemaMismatch"?',
    )


TESTED = """
name: %s
periods: [{identifier: "1", level: all, start_date: 2026-01-01, end_date: 2026-01-31}]
period: "1"
datasets: [%s]
project: p
expected_output: {rows: %s}
"""


def test_scenarios_that_differ_in_rows_alone_share_a_plan(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    own = "{id: orders, main_table: {name: lines, columns: [{name: amount, type: integer}]}, rows: [{amount: 1}]}"
    files = {
        "scenarios/a.yaml": TESTED % ("a", "{id: orders, rows: [{amount: 1}]}", "[]"),
        "scenarios/b.yaml": TESTED % ("b", "{id: orders, rows: [{amount: 2}]}", "[{amount: 2}]"),
        "scenarios/c.yaml": TESTED % ("c", own, "[]"),
        "scenarios/d.yaml": TESTED % ("d", "{id: orders, rows: [{amont: 2}]}", "[]"),
    }
    found = check(ON_X, files=files)
    assert [(each.code, each.span and each.span.file) for each in found.diagnostics] == [
        ("UnknownColumn", "scenarios/d.yaml")
    ]
    compiled, compiling = list[object](), WorkspaceCompiler.project_with

    def counting(self: WorkspaceCompiler, project: Project, inline: Mapping[str, DatasetUse]) -> Compilation:
        compiled.append(inline)
        return compiling(self, project, inline)

    monkeypatch.setattr(WorkspaceCompiler, "project_with", counting)
    compiler = WorkspaceCompiler(found.loaded.workspace)
    for each in found.loaded.workspace.scenarios:
        compiler.scenario(each)
    assert len(compiled) == 2
