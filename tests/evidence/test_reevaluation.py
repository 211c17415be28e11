"""Deep verification: a second engine agrees with what a run stored, for every row, and says where it does not."""

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings

from clew.evidence.reevaluation import reevaluate
from tests.trace.random_projects import PERIOD, compiled, interpreted, projects, tables
from tests.trace.trace_writer import TODAY, Writer


@settings(max_examples=40)
@given(projects(most_steps=6), tables(most_rows=8))
def test_random_runs_are_what_the_second_engine_gives(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]]
) -> None:
    with TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assume(plan is not None)
        assert plan is not None
        recorded = interpreted(plan, data, TODAY)
        trace = Writer(Path(folder, "storage"), recorded).write()
        written = {step.seq: len(recorded.outputs[step.name]) for step in plan.outputs}
        found = reevaluate(trace, written)
        assert found.problems == []
        assert found.steps == len(plan.steps)
        trace.close()


def step(seq: int, type_: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": type_, "type": type_, **chosen, "arguments": arguments}


JOIN = {"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}
PROJECT = {
    "id": "p",
    "name": "p",
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "operations": [
        step(
            10,
            "update",
            "amount > 1",
            joins=[JOIN],
            assignments=[{"column": "amount", "expression": "ROUND(amount * dim.rate, 2)"}],
        ),
        step(20, "delete", "amount > 60"),
        step(
            30,
            "aggregate",
            "k > 1",
            group_by=["currency"],
            aggregations=[
                {"column": "total", "expression": "SUM(amount)"},
                {"column": "mean", "expression": "AVG(amount)"},
                {"column": "kinds", "expression": "COUNT_DISTINCT(k)"},
            ],
        ),
        step(40, "append", source={"dataset_id": "extra"}, source_selector="x.amount > 1"),
        step(
            50, "output", "total IS NULL", destination={"location": {"format": "parquet", "path": "o"}}, columns=["k"]
        ),
    ],
}
DATA: dict[str, list[dict[str, Any]]] = {
    "main": [
        {
            "k": k,
            "amount": Decimal(10 * k),
            "currency": ("EUR", "USD")[k % 2],
            "flag": True,
            "day": date(2026, 1, k),
            "at": None,
            "share": 0.5,
            "_period": PERIOD,
        }
        for k in range(1, 8)
    ],
    "dim": [
        {"code": "EUR", "rate": Decimal("1.1"), "label": "e"},
        {"code": "USD", "rate": Decimal(1), "label": "u"},
    ],
    "extra": [{"k": k, "amount": Decimal(k), "currency": "EUR"} for k in range(4)],
    "finer": [],
}

Edit = Callable[[list[dict[str, Any]]], None]


def edited(index: int, **changes: Any) -> Edit:
    def edit(operations: list[dict[str, Any]]) -> None:
        for name, value in changes.items():
            place = operations[index] if name == "selector" else operations[index]["arguments"]
            place[name] = value

    return edit


AGGREGATIONS: Any = PROJECT["operations"][2]["arguments"]["aggregations"]  # type: ignore[index]
OTHERWISE = {
    "another expression": (
        edited(0, assignments=[{"column": "amount", "expression": "ROUND(amount * dim.rate, 1) + 1"}]),
        'step 10 "update": amount of row',
    ),
    "another selector of an update": (edited(0, selector="amount > 30"), 'step 10 "update": amount of row'),
    "another join": (
        edited(0, joins=[{**JOIN, "on": 'dim.code = t.currency AND dim.label = "u"'}]),
        'step 10 "update": amount of row',
    ),
    "another selector of a deletion": (edited(1, selector="amount > 40"), 'step 20 "delete": row'),
    "another sum": (
        edited(2, aggregations=[{"column": "total", "expression": "SUM(amount + 1)"}, *AGGREGATIONS[1:]]),
        'step 30 "aggregate": total of the group currency = ',
    ),
    "fewer groups": (edited(2, selector='currency = "EUR"'), 'step 30 "aggregate": there is no group with'),
    "more groups": (edited(2, selector="TRUE"), 'step 30 "aggregate"'),
    "other rows of a source": (edited(3, source_selector="x.amount > 2"), 'step 40 "append": a row with'),
    "an output that leaves out others": (edited(4, selector="k > 3"), 'step 50 "output": 7 rows were written'),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_a_run_did_otherwise_than_its_plan_says_is_noticed(tmp_path: Path, case: str) -> None:
    """The run followed one plan; the plan that is on record says something else in one place."""
    edit, problem = OTHERWISE[case]
    plan = compiled(tmp_path / "workspace", PROJECT)
    assert plan is not None
    recorded = interpreted(plan, DATA, TODAY)
    trace = Writer(tmp_path / "storage", recorded).write()
    written = {step.seq: len(recorded.outputs[step.name]) for step in plan.outputs}
    assert reevaluate(trace, written).problems == []
    other = copy.deepcopy(PROJECT)
    edit(other["operations"])  # type: ignore[arg-type]
    said = compiled(tmp_path / "other", other)
    assert said is not None
    found = reevaluate(replace(trace, plan=said), written)
    assert found.problems
    assert found.problems[0].startswith(problem)
    trace.close()
