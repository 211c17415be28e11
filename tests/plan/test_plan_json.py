"""Plans as JSON and back, and what holds for the plan of any project."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.definitions import Settings, WorkspaceDefinitions, load_workspace, project_from_data
from clew.diagnostics import UserError
from clew.plan import Compilation, Plan, WorkspaceCompiler, compile_workspace, plan_from_json, plan_to_json
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AppendStep, OutputStep, UpdateStep
from tests.plan.plan_projects import Data, projects, right_projects, tables

HERE = Path(__file__).parent
FOLDERS = [HERE.parents[1] / "src" / "clew" / "sample" / "workspace", HERE / "example"]


def compiled(data: Data, *uses: DatasetUse) -> Compilation:
    compiler = WorkspaceCompiler(WorkspaceDefinitions(Path(), Settings(name="none")))
    return compiler.project_with(project_from_data(data, "<generated>"), {use.name: use for use in uses})


@cache
def stored_plans() -> dict[str, Plan]:
    return {
        name: plan for root in FOLDERS for name, plan in compile_workspace(load_workspace(root).workspace).plans.items()
    }


def through_json(plan: Plan) -> Plan:
    return plan_from_json(json.loads(json.dumps(plan_to_json(plan))))


def sources_of(plan: Plan) -> set[tuple[str, str]]:
    uses = [plan.input]
    for step in plan.steps:
        match step:
            case UpdateStep():
                uses += [join.dataset for join in step.joins]
            case AppendStep():
                uses.append(step.source)
            case _:
                pass
    return {(use.dataset_id, column.name) for use in uses for column in use.columns}


def assert_consistent(plan: Plan) -> None:
    assert through_json(plan) == plan
    assert [step.seq for step in plan.steps] == sorted(step.seq for step in plan.steps)
    known = [column.name for column in plan.columns_after(0)]
    for step in plan.steps:
        readable = {*known, "_period", "_labels", "_deleted", "_row_id"}
        assert {
            read.column for read in step.reads if read.table == plan.input.table and step.type != "append"
        } <= readable
        known += [column.name for column in step.adds]
        assert [column.name for column in plan.columns_after(step.seq)] == known
        if isinstance(step, OutputStep):
            assert set(step.columns) <= readable
    assert [column.name for column in plan.columns] == known
    assert len({name.casefold() for name in known}) == len(known)
    assert [lineage.column for lineage in plan.lineage] == known
    sources = {
        (source.dataset, source.column)
        for lineage in plan.lineage
        for source in (*lineage.derives_from, *lineage.influenced_by)
    }
    assert sources <= sources_of(plan)


@pytest.mark.parametrize("name", ["gl-close", "group-report", "order-processing"])
def test_stored_plans_survive_json(name: str) -> None:
    assert_consistent(stored_plans()[name])


@given(projects(), tables("work"), tables("other"))
def test_compiling_never_raises_and_gives_a_plan_or_a_reason(data: Data, work: DatasetUse, other: DatasetUse) -> None:
    compilation = compiled(data, work, other)
    assert (compilation.plan is None) == bool(compilation.diagnostics)
    if compilation.plan is not None:
        assert_consistent(compilation.plan)


@given(right_projects())
def test_the_plan_of_a_right_project_is_consistent(project: tuple[Data, DatasetUse]) -> None:
    data, work = project
    compilation = compiled(data, work)
    assert compilation.diagnostics == ()
    assert compilation.plan is not None
    assert len(compilation.plan.steps) == len(data["operations"])
    assert_consistent(compilation.plan)


@given(right_projects(), st.randoms(use_true_random=False))
def test_the_order_in_the_file_makes_no_difference(project: tuple[Data, DatasetUse], random: Any) -> None:
    data, work = project
    shuffled = list(data["operations"])
    random.shuffle(shuffled)
    first, second = compiled(data, work).plan, compiled({**data, "operations": shuffled}, work).plan
    assert first is not None
    assert first == second


def test_the_deepest_expression_that_can_be_written_survives_json() -> None:
    work = DatasetUse(
        "work", "work", "work", "none", stored_plans()["gl-close"].input.columns, resolver_source="inline"
    )
    for expression in (
        "+".join(["(1.5 + amount_local)"] * 140),
        "(" * 95 + "amount_local" + " + 1)" * 95,
        "NOT " * 95 + "(amount_local = 1)",
    ):
        operation = {
            "seq": 1,
            "name": "deep",
            "type": "update",
            "arguments": {"assignments": [{"column": "deep", "expression": expression}]},
        }
        plan = compiled({"input_dataset": "work", "operations": [operation]}, work).plan
        assert plan is not None
        assert_consistent(plan)


BROKEN: list[Any] = [
    {},
    {"format": 1},
    {"format": "one"},
    [],
    "plan",
    None,
]


@pytest.mark.parametrize("data", BROKEN)
def test_what_is_no_plan_is_refused(data: Any) -> None:
    with pytest.raises(UserError, match="UnreadablePlan"):
        plan_from_json(data)


def test_a_plan_of_a_newer_clew_is_refused() -> None:
    data = {**plan_to_json(stored_plans()["gl-close"]), "format": 2}
    with pytest.raises(UserError, match="format 2"):
        plan_from_json(data)


@given(st.data())
def test_a_damaged_plan_is_refused_or_read_and_never_crashes(data: st.DataObject) -> None:
    plain = json.loads(json.dumps(plan_to_json(stored_plans()["gl-close"])))
    holder: Any = plain
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.integers(0, 3)) == 0:
            break
        holder = holder[key]
    holder[key] = data.draw(st.sampled_from([None, 1, "x", [], {}, True, ["apply"], [["constant", "integer", "x"]]]))
    try:
        plan = plan_from_json(plain)
    except UserError as error:
        assert error.code == "UnreadablePlan"  # noqa: PT017 - either outcome is right
    else:
        assert through_json(plan) == plan
