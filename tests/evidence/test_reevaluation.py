"""Deep verification: a second engine agrees with what a run stored, for every row, and says where it does not."""

import copy
import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.evidence import reevaluation
from clew.evidence.reevaluation import reevaluate
from clew.trace.reader import RunTrace
from tests.tiers import examples
from tests.trace.random_projects import PERIOD, compiled, interpreted, projects, tables
from tests.trace.trace_writer import TODAY, Style, Writer


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


def planted(trace: RunTrace, root: Path, draw: st.DataObject) -> RunTrace | None:
    """The trace with one value of one file changed, and a description that fits; None where there is no value."""
    places = [
        (part, file, column)
        for part in trace.parts
        if part.kind in {"changes", "created"}
        for file in part.files
        for column in pq.read_schema(root / file.path).names
        if file.rows and column != "__ordinal" and not column.startswith("__source")
    ]
    if not places:
        return None
    part, file, column = draw.draw(st.sampled_from(places))
    table = pq.read_table(root / file.path)
    values, index = table[column].to_pylist(), draw.draw(st.integers(0, file.rows - 1))
    others: dict[type, list[object]] = {
        str: ["EUR", "forged", None],
        bool: [True, False, None],
        int: [0, 1, None],
        Decimal: [Decimal(1), Decimal("99.99"), None],
        date: [date(2026, 1, 15), None],
        float: [0.25, 0.75, None],
    }
    kind = next((type(value) for value in values if value is not None), None)
    if kind not in others:
        return None
    values[index] = draw.draw(st.sampled_from([each for each in others[kind] if each != values[index]]))
    field = table.schema.field(column)
    changed = table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))
    pq.write_table(changed, root / file.path)
    data = (root / file.path).read_bytes()
    forged = replace(file, size=len(data), sha256=hashlib.sha256(data).hexdigest(), blocks=())
    files = tuple(forged if each is file else each for each in part.files)
    return replace(trace, parts=tuple(replace(each, files=files) if each is part else each for each in trace.parts))


@settings(max_examples=examples(60))
@given(projects(most_steps=5), tables(most_rows=8), st.data())
def test_a_value_planted_anywhere_is_found_at_once_as_it_is_row_by_row(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], draw: st.DataObject
) -> None:
    """The evaluator alone is the oracle for DuckDB: both name the same rows, and count the same."""
    with TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assume(plan is not None)
        assert plan is not None
        recorded, root = interpreted(plan, data, TODAY), Path(folder, "storage")
        style = Style(longest_part=2, states=draw.draw(st.frozensets(st.integers(0, 3))))
        trace = planted(Writer(root, recorded, style).write(), root, draw)
        assume(trace is not None)
        assert trace is not None
        written = {step.seq: len(recorded.outputs[step.name]) for step in plan.outputs}
        found = reevaluate(trace, written)
        with ExitStack() as stack:
            for name in ("changed_at_once", "created_at_once", "written_at_once"):
                stack.enter_context(patch.object(reevaluation, name, lambda *_: None))
            expected = reevaluate(trace, written)
        assert found.problems == expected.problems
        assert found.rows == expected.rows
        trace.close()


def test_a_large_run_is_evaluated_by_duckdb_and_one_wrong_row_is_found(tmp_path: Path) -> None:
    """Of 20,000 rows the evaluator looks at a sample, and at the one row that was changed."""
    rows = [{**DATA["main"][0], "k": k, "amount": Decimal(k % 97), "currency": "EUR"} for k in range(20_000)]
    plan = compiled(tmp_path / "workspace", PROJECT)
    assert plan is not None
    recorded = interpreted(plan, {**DATA, "main": rows}, TODAY)
    trace = Writer(tmp_path / "storage", recorded).write()
    written = {step.seq: len(recorded.outputs[step.name]) for step in plan.outputs}
    whole = reevaluate(trace, written)
    assert whole.problems == []
    assert whole.rows > 60_000
    assert whole.in_python < 5_000
    [part] = [part for part in trace.parts if part.kind == "changes"]
    [file] = part.files
    path = tmp_path / "storage" / file.path
    table = pq.read_table(path)
    amounts = table["__s10_a0"].to_pylist()
    row = next(index for index in range(12_345, len(amounts)) if amounts[index] is not None)
    amounts[row] += Decimal("0.01")
    field = table.schema.field("__s10_a0")
    pq.write_table(
        table.set_column(table.schema.get_field_index("__s10_a0"), field, pa.array(amounts, field.type)), path
    )
    data = path.read_bytes()
    forged = replace(file, size=len(data), sha256=hashlib.sha256(data).hexdigest(), blocks=())
    parts = tuple(replace(each, files=(forged,)) if each is part else each for each in trace.parts)
    trace.close()
    found = reevaluate(replace(trace, parts=parts), written)
    ordinal = table["__ordinal"][row].as_py()
    assert found.problems[0].startswith(
        f'step 10 "update": amount of row {trace.row_ids.row_id(ordinal)} is {amounts[row]}'
    )
    assert found.in_python < 5_000 + 20_000  # the sum that it belongs to is evaluated again row by row


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
