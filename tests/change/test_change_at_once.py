"""Suppositions that reach many rows are evaluated for all of them at once, as if one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from clew.change import what_if
from clew.change.bulk_answer import differences_at_once
from clew.change.comparing import CompareQuestion
from clew.change.what_if import WhatIf
from clew.plan import Plan
from clew.trace.reader import RunTrace
from tests.change.random_pairs import Data
from tests.change.test_change_what_if import OUTPUT, SETS, answered, supposed, updated_columns, without_work
from tests.tiers import examples
from tests.trace.random_projects import compiled, interpreted, projects, tables
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import TODAY, Style, Writer


@contextmanager
def at_once() -> Iterator[list[bool]]:
    """Every question is answered for all rows at once, if that is possible; whether it was."""
    tried = list[bool]()

    def differences(*asked: Any) -> Any:
        found = differences_at_once(*asked)
        tried.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(what_if, "MOST_SINGLE", 0)
        patch.setattr(what_if, "differences_at_once", differences)
        yield tried


def compares_rows(operation: dict[str, Any]) -> bool:
    return "keep" in operation.get("arguments", {}) or " OVER " in str(operation)


@st.composite
def simple(draw: st.DrawFn) -> tuple[dict[str, Any], Data]:
    """Projects in which no row is compared with others but in summaries."""
    project = draw(projects(most_steps=8))
    project["operations"] = [each for each in project["operations"] if not compares_rows(each)]
    for operation in project["operations"]:
        aggregations = operation.get("arguments", {}).get("aggregations", [])
        aggregations[2:] = [{"column": "most", "expression": draw(st.sampled_from(MOST))}] if aggregations else []
    seqs = sorted(draw(st.lists(st.integers(1, 60), min_size=3, max_size=3, unique=True)))
    project["operations"] = [each for each in project["operations"] if each["seq"] not in seqs]
    total = {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]}
    project["operations"] += [
        {
            "seq": seqs[0],
            "name": "rate",
            "type": "update",
            "arguments": RATE,
            "selector": draw(st.sampled_from(CHOSEN)),
        },
        {"seq": seqs[1], "name": "totals", "type": "aggregate", "arguments": total},
        {"seq": seqs[2], "name": "label", "type": "update", "arguments": LABEL},
        OUTPUT,
    ]
    project["operations"].sort(key=lambda each: int(each["seq"]))
    data = draw(tables(most_rows=20))
    for number, row in enumerate(data["main"]):
        row["k"] = number
    return project, data


MOST = [
    "MAX_AGG(day)",
    "AVG(amount)",
    "COUNT_DISTINCT(k)",
    "SUM(k) + COUNT(amount)",
    "MAX_AGG(share)",
    "MIN_AGG(currency)",
]
CHOSEN = ["TRUE", "dim.rate < 1.093", 'currency <> "x" AND (dim.rate > 0 OR flag)']
RATE = {
    "joins": [{"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}],
    "assignments": [
        {"column": "amount", "expression": "ROUND(amount * COALESCE(dim.rate, 1), 2)"},
        {"column": "share", "expression": "share * 2"},
    ],
}
LABEL = {
    "assignments": [
        {"column": "_labels", "expression": 'IF(amount > 2 OR total > 2, "large", _labels)'},
        {"column": "currency", "expression": "UPPER(currency)"},
    ]
}
WHERES = [None, None, 'currency = "EUR"', "amount > 1", "LEN(_labels) > 1 OR flag"]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(simple(), STYLES, st.lists(st.sampled_from(SETS), max_size=2), st.booleans(), st.data())
def test_it_is_what_evaluating_one_row_after_the_other_gives(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[dict[str, Any], Data],
    style: Style,
    chosen: list[Any],
    rewrites: bool,
    draw: st.DataObject,
) -> None:
    project, data = case
    folder: Path = tmp_path_factory.mktemp("once")
    plan = compiled(folder / "w", project)
    assume(plan is not None)
    assert plan is not None
    read = {use.dataset_id for use in plan.datasets_read}
    chosen = [each for each in chosen if each[1] in read and each[1] not in {"extra", "finer"}]
    places = updated_columns(project)[:1] if rewrites else []
    assume(chosen or places)
    texts = {
        "sets": [text for kind, _, text, _ in chosen if kind == "set"],
        "drops": [text for kind, _, text, _ in chosen if kind == "drop"],
        "expressions": [f"{seq}.{column} = COALESCE(amount, 0) + 1" for seq, column in places],
    }
    at = draw.draw(st.none() | st.sampled_from([step.seq for step in plan.steps]))
    question = CompareQuestion(
        at=at,
        where=draw.draw(st.sampled_from(WHERES)),
        sort=draw.draw(st.sampled_from([None, "amount"])),
        limit=draw.draw(st.sampled_from([None, 3])),
        offset=draw.draw(st.integers(0, 2)),
    )
    trace = Writer(folder / "storage", interpreted(plan, data, TODAY), style).write()
    found = answered(lambda: supposed(trace, plan, question, **texts))
    with at_once() as tried:
        again = answered(lambda: supposed(trace, plan, question, **texts))
    event(f"at once: {all(tried)}")
    trace.close()
    assert without_work(again) == without_work(found)


PROJECT: dict[str, Any] = {
    "id": "p",
    "name": "p",
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "operations": [
        {"seq": 10, "name": "rate", "type": "update", "selector": 'currency <> "x"', "arguments": RATE},
        {"seq": 20, "name": "note", "type": "update", "selector": "amount > 3", "arguments": {
            "assignments": [{"column": "note", "expression": 'CONCAT(currency, " large")'}]}},
        {"seq": 30, "name": "drop", "type": "delete", "selector": "amount > 8"},
        {"seq": 40, "name": "totals", "type": "aggregate", "arguments": {"group_by": ["flag"], "aggregations": [
            {"column": "total", "expression": "SUM(amount)"}, {"column": "rows", "expression": "COUNT_ALL()"}]}},
        {"seq": 1000, "name": "out", "type": "output", "arguments": {
            "destination": {"location": {"format": "parquet", "path": "out"}},
            "columns": ["k", "amount", "note", "total"]}},
    ],
}  # fmt: skip


@pytest.fixture
def many(tmp_path: Path) -> Iterator[tuple[RunTrace, Plan]]:
    plan = compiled(tmp_path / "w", PROJECT)
    assert plan is not None
    codes = ("EUR", "USD", "x")
    rows: list[dict[str, Any]] = [
        {
            **dict.fromkeys(("day", "at")),
            "k": number,
            "amount": Decimal(number % 7),
            "currency": codes[number % 3],
            "flag": number % 2 == 0,
            "share": 0.5,
            "_period": "2026-01",
        }
        for number in range(60)
    ]
    dim = [
        {"code": code, "rate": Decimal(rate), "label": code}
        for code, rate in zip(codes, ("1.5", "1", "3"), strict=True)
    ]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    trace = Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write()
    yield trace, plan
    trace.close()


@pytest.mark.parametrize(
    "texts",
    [
        {"sets": ['dim where code = "EUR": rate = 2']},
        {"sets": ["dim: rate = rate + 1"]},
        {"sets": ['main where currency = "USD": amount = amount * 2']},
        {"sets": ['main where k < 30: flag = NULL', 'main where k > 10: currency = "EUR"']},
        {"drops": ["main where k < 20"]},
        {"drops": ["main where flag"]},
        {"expressions": ["10.amount = amount + 1"]},
        {"expressions": ['20.note = LPAD(currency, 5, "-")']},
        {"expressions": ["10.share = share / 3"], "sets": ['dim where code = "EUR": rate = 9']},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("question", [{}, {"at": 30, "sort": "amount", "limit": 5}, {"where": "amount > 2"}], ids=str)
def test_what_people_suppose_is_evaluated_at_once(
    many: tuple[RunTrace, Plan], texts: dict[str, Any], question: dict[str, Any]
) -> None:
    one_by_one: WhatIf = supposed(*many, CompareQuestion(**question), **texts)
    with at_once() as tried:
        found = supposed(*many, CompareQuestion(**question), **texts)
    assert tried == [True]
    assert without_work(found) == without_work(one_by_one)
    assert found.changed + found.gone + found.new > 0


def test_what_it_cannot_do_is_left_to_evaluating_one_by_one(many: tuple[RunTrace, Plan]) -> None:
    """The sum does not fit its type: the evaluator says so, in its own words."""
    texts: dict[str, Any] = {"expressions": ["10.amount = amount * 9999999999"]}
    with at_once() as tried, pytest.raises(Exception, match=r"9999999999|fit|large"):
        supposed(*many, CompareQuestion(), **texts)
    assert tried == [False]
