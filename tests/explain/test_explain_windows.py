"""Explanations of calls with OVER: the rows that they looked at, what was computed again, and what packs verify."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from clew.evidence import pack_verifier
from clew.evidence.reevaluation import reevaluate
from clew.explain.explaining import explain, explain_completely, row_named
from clew.explain.tree import Updated
from clew.explain.views import as_json, as_text
from clew.plan.json_form import plan_to_json
from clew.trace.reader import RunTrace
from tests.trace.random_projects import PERIOD, WINDOWS, compiled, interpreted
from tests.trace.trace_writer import TODAY, Style, Writer

_ASSIGNED = [
    ("part", "ROUND(amount / SUM(amount) OVER (PARTITION BY currency), 4)"),
    ("so_far", "SUM(amount) OVER (PARTITION BY currency ORDER BY day)"),
    ("place", "RANK() OVER (PARTITION BY currency ORDER BY amount desc)"),
    ("before", "LAG(amount) OVER (PARTITION BY currency ORDER BY day, k)"),
]


def row(k: int, amount: str | None, currency: str | None, day: int) -> dict[str, Any]:
    cells = {"k": k, "amount": None if amount is None else Decimal(amount), "currency": currency, "flag": k > 2}
    when = {"day": date(2026, 1, day), "at": datetime(2026, 1, k), "share": 0.5, "_period": PERIOD}  # noqa: DTZ001
    return cells | when


ROWS = [
    *(row(1, "10.00", "EUR", 1), row(2, "30.00", "EUR", 2), row(3, "20.00", "EUR", 2), row(4, "9.00", "USD", 3)),
    *(row(5, None, "EUR", 4), row(6, "9.00", "EUR", 5), row(7, "1.00", None, 6), row(8, "2.00", None, 7)),
]


def traced(folder: Path, assigned: list[tuple[str, str]]) -> RunTrace:
    listed = [{"column": column, "expression": text} for column, text in assigned]
    operations = [
        {"seq": 10, "name": "Drop", "type": "delete", "selector": "k = 6"},
        {"seq": 20, "name": "Look", "type": "update", "selector": "k > 0", "arguments": {"assignments": listed}},
    ]
    project = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main"}
    plan = compiled(folder / "workspace", {**project, "operations": operations})
    assert plan is not None
    data = {"main": ROWS, "dim": [], "extra": [], "finer": []}
    return Writer(folder / "storage", interpreted(plan, data, TODAY), Style()).write()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunTrace]:
    with closing(traced(tmp_path_factory.mktemp("windows"), _ASSIGNED)) as trace:
        yield trace


def told(trace: RunTrace, k: int, column: str) -> Updated:
    cause = explain(trace, row_named(trace, f"k = {k}"), column).cause
    assert isinstance(cause, Updated)
    assert cause.recomputed.outcome == "equal"
    return cause


def test_a_share_shows_the_rows_of_the_total_the_largest_first(trace: RunTrace) -> None:
    [window] = told(trace, 1, "part").windows
    assert (window.value, window.group, window.parents.count) == (Decimal("60.00"), {"currency": "EUR"}, 4)
    assert [each.value for each in window.parents.contributors] == [
        *(Decimal("30.00"), Decimal("20.00"), Decimal("10.00"), None),
    ]
    assert window.parents.contributors[0].share == Decimal("0.5")


def test_rows_that_are_equal_in_the_order_are_in_each_others_frame(trace: RunTrace) -> None:
    [window] = told(trace, 2, "so_far").windows
    assert (window.value, window.parents.count, window.order) == (Decimal("60.00"), 3, "day")
    [first] = told(trace, 1, "so_far").windows
    assert (first.value, first.parents.count) == (Decimal("10.00"), 1)


def test_null_is_a_key_like_any_other_and_comes_last_where_the_order_runs_down(trace: RunTrace) -> None:
    [window] = told(trace, 8, "place").windows
    assert (window.value, window.group) == (1, {"currency": None})
    [last] = told(trace, 5, "place").windows
    assert last.value == 4


def test_a_row_before_another_one_is_named_with_its_values(trace: RunTrace) -> None:
    row_id = row_named(trace, "k = 3")
    text = as_text(explain(trace, row_id, "before"))
    assert 'step 20 "Look"' in text
    assert "LAG(t.amount) OVER (PARTITION BY currency ORDER BY day, k) = 30.00 from 1 row" in text
    assert told(trace, 1, "before").windows[0].parents.count == 0


def test_a_value_that_other_rows_do_not_give_is_marked(tmp_path: Path) -> None:
    with closing(traced(tmp_path, _ASSIGNED)) as good:
        plan = good.plan
    data = {"main": [dict(each) for each in ROWS], "dim": [], "extra": [], "finer": []}
    recorded = interpreted(plan, data, TODAY)
    recorded.states[20][0]["so_far"] = Decimal("10.01")
    trace = Writer(tmp_path / "wrong", recorded, Style()).write()
    found = explain(trace, row_named(trace, "k = 1"), "so_far").cause
    assert isinstance(found, Updated)
    assert (found.recomputed.outcome, found.recomputed.recomputed) == ("differs", Decimal("10.00"))
    assert any("so_far" in problem for problem in reevaluate(trace, {}).problems)
    trace.close()


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "cause" in value:
            yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


class StandIn:
    """As much of a pack as values of updates need."""

    def __init__(self, trace: RunTrace) -> None:
        run = {"table": trace.plan.input.table, "today": trace.today.isoformat()}
        self.evidence = {"runs": {trace.run_id: run}}
        self.plans = {trace.run_id: json.loads(json.dumps(plan_to_json(trace.plan)))}
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}


def verified(trace: RunTrace, document: dict[str, Any]) -> list[str]:
    report = pack_verifier.Report()
    tree = pack_verifier.Tree(StandIn(trace), report, "tree")  # type: ignore[arg-type]
    for node in nodes(document):
        if node["cause"]["kind"] == "updated":
            for window in node["cause"].get("windows", ()):
                tree.check_window(node, window)
            tree.check_expression(node)
    assert report.checked["windows"] >= 1
    return report.findings


def complete(trace: RunTrace, k: int, column: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        json.dumps(as_json(explain_completely(trace, row_named(trace, f"k = {k}"), column)))
    )
    return document


def test_the_verifier_of_packs_computes_every_call_again(tmp_path: Path) -> None:
    by_column = dict([*WINDOWS, *_ASSIGNED])
    names = [name for name in by_column if name not in {"amount", "k"}]
    with closing(traced(tmp_path, [(name, by_column[name]) for name in names])) as trace:
        for number, name in enumerate(names):
            for k in (1 + number % 3, 5):
                assert verified(trace, complete(trace, k, name)) == []


@pytest.mark.parametrize("column", ["part", "so_far", "place", "before"])
def test_the_verifier_of_packs_notices_rows_that_do_not_give_the_value(trace: RunTrace, column: str) -> None:
    def edited(edit: str) -> list[str]:
        document = complete(trace, 3, column)
        window = document["cause"]["windows"][0]
        rows = window["parents"]["contributors"]
        if edit == "left out":
            rows.pop()
        elif edit == "of another group":
            next(each for each in rows[0]["inputs"] if each["name"] == "currency")["value"] = "USD"
        else:
            window["value"] = next(each for each in document["cause"]["inputs"] if each["name"] == window["call"])[
                "value"
            ] = 7 if column == "place" else "7.00"
        return verified(trace, document)

    for edit in ("left out", "of another group", "another value"):
        assert edited(edit), edit
