"""Explanations of random projects: what is computed again is what was stored, for every cell."""

import tempfile
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings

from clew.diagnostics import UserError
from clew.explain.explaining import explain, row_named
from clew.explain.group_totals import look_at_once
from clew.explain.parents import Contribution, keys_of_group, look_at, parents_of
from clew.explain.tree import Appended, Deleted, Explanation, Loaded, Recomputed, Summarised, Unset, Updated
from clew.explain.views import as_html, as_json, as_text
from clew.explain.why_not import InOutput, LeftOut, why_not
from clew.lang.evaluation import Row, evaluator
from clew.plan.operations import CreatingStep, OutputStep
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues
from tests.explain.test_explain_sample import within
from tests.trace.random_projects import PERIOD, compiled, interpreted, projects, tables
from tests.trace.trace_writer import TODAY, Style, Writer


@settings(max_examples=15)
@given(projects(most_steps=5), tables(most_rows=4))
def test_every_cell_is_what_its_explanation_computes(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assume(plan is not None)
        assert plan is not None
        recorded = interpreted(plan, data, TODAY)
        writer = Writer(Path(folder, "storage"), recorded)
        trace = writer.write()
        last = recorded.states[trace.run.last]
        for ordinal, state in zip(writer.ordinals, last, strict=True):
            for column, value in state.items():
                found = explain(trace, trace.row_ids.row_id(ordinal), column, depth=4)
                assert found.value == value
                assert [each for each in within(found, Recomputed) if each.outcome != "equal"] == []
                for each in within(found, Explanation):
                    assert trace.state(each.row_id, each.at).state[each.column] == each.value  # type: ignore[index]
                assert as_text(found)
                assert as_html(found)
                assert as_json(found)["value"] is not None or value is None
        trace.close()


@settings(max_examples=10)
@given(projects(most_steps=4), tables(most_rows=12))
def test_a_group_looked_at_at_once_is_the_group_looked_at_row_by_row(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), with_totals(project))
        assume(plan is not None)
        assert plan is not None
        writer = Writer(Path(folder, "storage"), interpreted(plan, data, TODAY))
        trace = writer.write()
        totals = plan.steps[-1]
        assert isinstance(totals, CreatingStep)
        for row in trace.step_rows(totals.seq).records[:2]:
            keys = keys_of_group(trace, row.row_id, row.after or {})
            for number, filled in enumerate(totals.filled):
                tree, stored = filled.value.tree, (row.after or {}).get(filled.column)
                slow = look_at(parents_of(trace, totals, keys, tree), tree, stored, top=3)
                at_once = look_at_once(
                    trace,
                    totals,
                    keys,
                    tree,
                    stored,
                    shown=slice(0, 3),
                    states=partial(states, trace),
                    sample=1 + number % 2 * 99,
                )
                assert (at_once is None) == (filled.column == "t_doubles")
                if at_once is None:
                    continue
                assert at_once.count == slow.count
                assert [shown(each) for each in at_once.largest] == [shown(each) for each in slow.largest]
                again, told = at_once.recomputed, slow.recomputed
                assert (again.outcome, again.recomputed) == (told.outcome, told.recomputed) == ("equal", stored)
                assert again.rows == slow.count
        trace.close()


_TOTALS = {
    "total": "SUM(amount)",
    "mean": "AVG(amount)",
    "least": "MIN_AGG(amount)",
    "largest": "MAX_AGG(k)",
    "number": "COUNT(amount) + COUNT_ALL()",
    "kinds": "COUNT_DISTINCT(currency)",
    "word": "MAX_AGG(currency)",
    "first_day": "MIN_AGG(day)",
    "chosen": "SUM(IF(flag, amount, COALESCE(amount, 0) * 2))",
    "sums": "SUM(k + 1) - SUM(k)",
    "doubles": "SUM(share)",
}


def with_totals(project: dict[str, Any]) -> dict[str, Any]:
    """The project with totals by currency behind everything that it has."""
    aggregations = [{"column": f"t_{name}", "expression": expression} for name, expression in _TOTALS.items()]
    arguments = {"group_by": ["currency"], "aggregations": aggregations}
    last = {"seq": project["operations"][-1]["seq"] + 1, "name": "totals", "type": "aggregate", "arguments": arguments}
    return {**project, "operations": [*project["operations"], last]}


def states(trace: RunTrace, ordinals: Sequence[int]) -> dict[int, RowValues]:
    at = trace.run.before(trace.run.last)
    found = {ordinal: trace.state(trace.row_ids.row_id(ordinal), at).state for ordinal in ordinals}
    return {ordinal: state for ordinal, state in found.items() if state is not None}


def shown(each: Contribution) -> tuple[object, ...]:
    return each.parent.ordinal, each.parent.label, each.value, each.share


def with_output(project: dict[str, Any]) -> dict[str, Any]:
    """The project with an output behind everything that it has."""
    destination = {"location": {"format": "parquet", "path": "last"}}
    arguments = {"destination": destination, "columns": ["k", "amount"]}
    last = {"seq": project["operations"][-1]["seq"] + 1, "name": "last", "type": "output", "arguments": arguments}
    return {**project, "operations": [*project["operations"], last]}


@settings(max_examples=15)
@given(projects(most_steps=5), tables(most_rows=4))
def test_a_loaded_row_is_in_an_output_or_there_is_a_reason(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), with_output(project))
        assume(plan is not None)
        assert plan is not None
        recorded = interpreted(plan, data, TODAY)
        writer = Writer(Path(folder, "storage"), recorded)
        trace = writer.write()
        for step in plan.steps:
            if isinstance(step, OutputStep):
                answer = why_not(trace, "TRUE", step.seq)
                loaded = [row for row in answer.rows if row.created_by is None]
                assert len(loaded) == len(recorded.states[0])
                states = recorded.before(step)
                for row, state in zip(loaded, states, strict=False):
                    decide = evaluator(step.selector.tree) if step.selector else lambda _row: True
                    is_written = not state["_deleted"] and decide(Row({"t": state}, TODAY)) is True
                    assert isinstance(row.verdict, InOutput) == is_written
                    if isinstance(row.verdict, LeftOut):
                        assert any(each.value is not True for each in row.verdict.decisions)
                assert as_text(answer)
                assert as_html(answer)
        trace.close()


# By hand

PROJECT: dict[str, Any] = {
    "id": "p",
    "name": "p",
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "selectors": {"large": "amount > 4", "euros": 'currency = "EUR"'},
    "operations": [
        {
            "seq": 10,
            "name": "<Convert>",
            "type": "update",
            "arguments": {
                "joins": [{"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}],
                "assignments": [{"column": "converted", "expression": "ROUND(amount * dim.rate, 2)"}],
            },
        },
        {"seq": 20, "name": "Drop", "type": "delete", "selector": "{{large}} AND {{euros}} OR k = 0"},
        {"seq": 30, "name": "Add", "type": "append", "arguments": {"source": {"dataset_id": "extra"}}},
        {
            "seq": 40,
            "name": "Write",
            "type": "output",
            "selector": "converted > 1 AND {{euros}}",
            "arguments": {"destination": {"location": {"format": "parquet", "path": "o"}}, "columns": ["k", "amount"]},
        },
    ],
}


def row(k: int, amount: str | None, currency: str | None) -> dict[str, Any]:
    value = None if amount is None else Decimal(amount)
    empty = {"flag": None, "day": None, "at": None, "share": None, "_period": PERIOD}
    return {"k": k, "amount": value, "currency": currency, **empty}


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    plan = compiled(tmp_path / "workspace", PROJECT)
    assert plan is not None
    data = {
        "main": [row(1, "2.00", "EUR"), row(2, "9.00", "EUR"), row(3, "3.00", "JPY"), row(4, None, '<b>"')],
        "dim": [{"code": "EUR", "rate": Decimal("1.092000"), "label": "euro"}],
        "extra": [row(7, "1.00", "x"), row(8, "2.00", "x"), row(8, "2.00", "x")],
    }
    return Writer(tmp_path / "storage", interpreted(plan, data, TODAY), Style())


@pytest.fixture
def trace(writer: Writer) -> RunTrace:
    return writer.write()


def test_a_value_without_a_match_in_the_joined_dataset_says_so(trace: RunTrace) -> None:
    found = explain(trace, row_named(trace, "k = 3"), "converted")
    assert found.value is None
    assert isinstance(found.cause, Updated)
    assert (found.cause.step.seq, found.cause.recomputed.outcome) == (10, "equal")
    assert [(join.alias, join.matches) for join in found.cause.joins] == [("dim", 0)]
    matched = explain(trace, row_named(trace, "k = 1"), "converted")
    assert isinstance(matched.cause, Updated)
    [join] = matched.cause.joins
    assert (join.alias, join.matches) == ("dim", 1)
    assert join.source is not None
    assert (join.source.file, join.source.line) == ("dim.csv", 2)


def test_a_value_that_an_update_left_empty_is_explained_by_it(tmp_path: Path) -> None:
    quotient = {"assignments": [{"column": "each", "expression": "amount / (k - k)"}]}
    operations = [
        {"seq": 10, "name": "Drop", "type": "delete", "selector": "k = 1"},
        {"seq": 20, "name": "Divide", "type": "update", "selector": "k <> 2", "arguments": quotient},
    ]
    plan = compiled(tmp_path / "workspace", {**PROJECT, "operations": operations})
    assert plan is not None
    data = {"main": [row(1, "1.00", "EUR"), row(2, "2.00", "EUR"), row(3, "3.00", "EUR")], "dim": [], "extra": []}
    trace = Writer(tmp_path / "storage", interpreted(plan, data, TODAY), Style()).write()
    untouched = Unset('step 20 "Divide" added the column, and no step has set it in this row')
    assert explain(trace, row_named(trace, "k = 1"), "each").cause == untouched
    left_out = f'{untouched.reason}; the selector of step 20 "Divide", k <> 2, was FALSE for it'
    assert explain(trace, row_named(trace, "k = 2"), "each").cause == Unset(left_out)
    divided = explain(trace, row_named(trace, "k = 3"), "each")
    assert divided.value is None
    assert isinstance(divided.cause, Updated)
    assert divided.cause.recomputed.outcome == "equal"
    assert [(each.name, each.value) for each in divided.cause.inputs] == [("amount", Decimal("3.00")), ("k", 3)]
    trace.close()


def test_rows_behind_a_quotient_of_sums_come_with_the_values_of_both(tmp_path: Path) -> None:
    total = {"column": "amount", "expression": "SUM(amount) / SUM(k)"}
    arguments = {"group_by": ["currency"], "aggregations": [total]}
    operations = [{"seq": 10, "name": "Mean", "type": "aggregate", "arguments": arguments}]
    plan = compiled(tmp_path / "workspace", {**PROJECT, "operations": operations})
    assert plan is not None
    data = {"main": [row(1, "1.00", "EUR"), row(2, "2.00", "EUR")], "dim": [], "extra": []}
    trace = Writer(tmp_path / "storage", interpreted(plan, data, TODAY), Style()).write()
    [summary] = [found.row_id for found in trace.search("k IS NULL").rows]
    cause = explain(trace, summary, "amount").cause
    assert isinstance(cause, Summarised)
    inputs = [{each.name: each.value for each in one.inputs} for one in cause.parents.contributors]
    assert sorted(each["k"] for each in inputs) == [1, 2]  # type: ignore[type-var]
    assert {each["amount"] for each in inputs} == {Decimal("1.00"), Decimal("2.00")}
    trace.close()


def test_an_appended_row_knows_the_very_line_it_came_from(trace: RunTrace) -> None:
    lines = list[int | None]()
    for found in trace.search("k = 8").rows:
        cause = explain(trace, found.row_id, "amount").cause
        assert isinstance(cause, Appended)
        assert cause.source is not None
        assert cause.recomputed.outcome == "equal"
        lines.append(cause.source.line)
    assert lines == [3, 4]
    missing = explain(trace, row_named(trace, "k = 7"), "day")
    assert missing.cause == Unset('step 30 "Add" created the row without filling this column')


def test_why_a_row_was_deleted_names_what_decided(trace: RunTrace) -> None:
    answer = why_not(trace, "k = 2")
    [missing] = answer.rows
    assert isinstance(missing.verdict, Deleted)
    assert [(each.condition, each.value, each.values) for each in missing.verdict.decisions] == [
        ("t.amount > 4", True, {"amount": Decimal("9.00")}),
        ('t.currency = "EUR"', True, {"currency": "EUR"}),
    ]
    assert 'deleted in step 20 "Drop" by its selector {{large}} AND {{euros}} OR k = 0' in as_text(answer)


def test_why_a_row_was_left_out_names_only_what_was_not_true(trace: RunTrace) -> None:
    [missing] = why_not(trace, "k = 3").rows
    assert isinstance(missing.verdict, LeftOut)
    assert missing.verdict.selector == "converted > 1 AND {{euros}}"
    assert [(each.condition, each.value) for each in missing.verdict.decisions] == [
        ("t.converted > 1", None),
        ('t.currency = "EUR"', False),
    ]
    [written] = why_not(trace, "k = 1").rows
    assert isinstance(written.verdict, InOutput)


def test_a_row_that_was_never_loaded_is_said_to_be_missing_from_the_source(trace: RunTrace) -> None:
    answer = why_not(trace, "k = 99")
    assert answer.rows == ()
    assert "no row with k = 99 was loaded from main for period 2026-01" in as_text(answer)


def test_a_stored_value_that_cannot_be_computed_again_is_marked(writer: Writer) -> None:
    writer.recorded.states[10][0]["converted"] = Decimal("2.19")
    trace = writer.write()
    found = explain(trace, row_named(trace, "k = 1"), "converted")
    assert isinstance(found.cause, Updated)
    assert found.cause.recomputed == Recomputed("differs", Decimal("2.19"), Decimal("2.18"))
    assert "recomputed: differs (stored 2.19, recomputed 2.18)" in as_text(found)


def test_a_condition_that_names_several_rows_or_none_is_refused(trace: RunTrace) -> None:
    with pytest.raises(UserError, match="3 rows match") as caught:
        row_named(trace, "k < 4")
    assert caught.value.code == "AmbiguousRow"
    assert "1, 2, 3" in caught.value.diagnostic.message
    with pytest.raises(UserError, match="no row matches k = 99") as caught:
        row_named(trace, "k = 99")
    assert caught.value.code == "RowNotFound"


def test_a_column_a_row_and_a_step_that_do_not_exist_are_refused(trace: RunTrace) -> None:
    known = row_named(trace, "k = 1")
    for ask, code in (
        (lambda: explain(trace, known, "amuont"), "UnknownColumn"),
        (lambda: explain(trace, known, "converted", at=0), "UnknownColumn"),
        (lambda: explain(trace, "x", "amount"), "RowNotFound"),
        (lambda: explain(trace, known, "amount", at=15), "StepOutOfRange"),
        (lambda: why_not(trace, "TRUE", 10), "NotAnOutput"),
        (lambda: why_not(trace, "TRUE", 15), "StepOutOfRange"),
    ):
        with pytest.raises(UserError) as caught:
            ask()
        assert caught.value.code == code
    with pytest.raises(UserError) as caught:
        explain(trace, known, "amuont")
    assert caught.value.diagnostic.hint == 'did you mean "amount"?'


def test_everything_that_users_wrote_is_escaped_on_a_page(trace: RunTrace) -> None:
    for answer in (explain(trace, row_named(trace, "k = 4"), "currency"), why_not(trace, "k > 0 AND k < 5")):
        page = as_html(answer)
        assert "<b>" not in page
        assert "&lt;b&gt;" in page


def test_characters_that_would_move_the_cursor_are_not_printed(writer: Writer) -> None:
    writer.recorded.data["main"][0]["currency"] = "E\x1b[2J\nUR"  # type: ignore[index]
    writer.recorded.states[0][0]["currency"] = "E\x1b[2J\nUR"
    trace = writer.write()
    text = as_text(explain(trace, row_named(trace, "k = 1"), "currency", at=0))
    assert "\x1b" not in text
    assert text.count("\n") == 1


def test_a_loaded_value_ends_at_its_source(trace: RunTrace) -> None:
    found = explain(trace, row_named(trace, "k = 2"), "amount")
    assert isinstance(found.cause, Loaded)
    assert (found.cause.source.file, found.cause.source.line) == ("t.csv", 3)
