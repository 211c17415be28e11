"""Questions to runs of a workspace: rows of other periods, rules, columns, every parent of a total; from Python too."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import clew
from clew.api.run import Run
from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.explain.tree import Deleted, Recomputed, Summarised
from clew.explain.why_not import Elsewhere, InOutput, LeftOut, MadeLater, RuleOutcome
from tests.trace.interpreted_shop import Ran, ran_shop


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def answer(ran: Ran, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(ran.shop.root)

    def call(*arguments: str) -> Any:
        assert command(list(arguments)) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    return call


def a_run(ran: Ran, run_id: str) -> Run:
    return clew.open(ran.shop.root).get_run(run_id)


# Why not


@pytest.mark.slow
def test_a_row_of_another_period_is_found_in_what_another_run_has_loaded(ran: Ran, answer: Callable[..., Any]) -> None:
    text = answer("explain", ran.january, "--why-not", "id = 203")
    assert "no row with id = 203 was loaded from orders for period 2026-01" in text
    assert 'the run read orders.csv, by the rule "a"' in text
    assert f"there is 203 of period 2026-02, orders v1, orders.csv line 4, loaded by run {ran.february[:8]}" in text


def test_a_row_of_another_period_is_found_in_the_very_files_that_a_run_has_read(ran: Ran) -> None:
    found = a_run(ran, ran.report).why_not("id = 203")
    assert found.rows == ()
    assert found.never_loaded is not None
    [there] = found.never_loaded.elsewhere
    assert isinstance(there, Elsewhere)
    assert (there.period, there.run_id) == ("2026-02", None)
    assert there.source is not None
    assert (there.source.dataset, there.source.version) == ("closed", 2)


def test_a_row_that_was_lost_in_the_project_before_is_followed_there(ran: Ran, answer: Callable[..., Any]) -> None:
    """The close has dropped it, so the report never had it."""
    found = a_run(ran, ran.report).why_not("id = 101")
    assert found.rows == ()
    assert found.never_loaded is not None
    [before] = found.never_loaded.upstream
    assert (before.run_id, before.output.seq) == (ran.january, 30)
    [row] = before.rows
    assert isinstance(row.verdict, Deleted)
    assert (row.verdict.step.seq, row.source.line if row.source else None) == (20, 2)
    text = answer("explain", ran.report, "--why-not", "id = 101")
    assert (
        f"in run {ran.january[:8]}, which registered it: 1 row with id = 101, seen from the output of step 30" in text
    )
    assert 'deleted in step 20 "Drop small" by its selector' in text
    assert answer("explain", ran.report, "--why-not", "id = 101", "--json")["never_loaded"]["upstream"][0]["rows"]


def test_where_no_project_before_has_had_the_row_the_way_ends_at_its_files(ran: Ran) -> None:
    found = a_run(ran, ran.report).why_not("id = 999").never_loaded
    assert found is not None
    [before] = found.upstream
    assert before.never_loaded is not None
    assert before.never_loaded.rules == (RuleOutcome("a", None),)
    assert before.never_loaded.upstream == ()


def test_a_column_that_the_project_before_lacks_ends_the_way_there(ran: Ran) -> None:
    found = a_run(ran, ran.report).why_not('currency = "EUR" AND usd < 0').never_loaded
    assert found is not None
    assert [each.run_id for each in found.upstream] == [ran.january], "a step of it sets the column"


def test_a_row_that_is_nowhere_is_said_to_be_nowhere(ran: Ran) -> None:
    found = a_run(ran, ran.january).why_not("id = 999").never_loaded
    assert found is not None
    assert found.elsewhere == ()
    assert found.rules == (RuleOutcome("a", None),)


def test_a_rule_that_did_not_apply_says_which_condition_decided(ran: Ran, answer: Callable[..., Any]) -> None:
    strategy = {"type": "path", "datasource_id": "data", "path": "{table}.csv", "format": "csv"}
    rules = [
        {"name": "the new place", "when": 'period.start_date >= DATE("2026-06-01")', "strategy": strategy},
        {"name": "by year", "data_level": "year", "strategy": strategy},
        {"name": "a", "strategy": strategy},
    ]
    before = (ran.shop.root / "resolvers/r.yaml").read_text(encoding="utf-8")
    ran.shop.write({"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": rules}})
    try:
        with clew.open(ran.shop.root) as workspace:  # a version keeps the rules that it was made with
            run = workspace.run("close", "2026-01", with_current_definitions=True)
        told = answer("explain", run.id, "--why-not", "id = 999", "--json")["never_loaded"]["rules"]
    finally:
        ran.shop.write({"resolvers/r.yaml": before})
    assert told == [
        {"rule": "the new place", "reason": 'its condition period.start_date >= DATE("2026-06-01") is FALSE'},
        {"rule": "by year", "reason": "its data is kept by year, which is coarser than a month"},
        {"rule": "a", "reason": None},
    ]


@pytest.mark.slow
def test_an_output_can_be_named_and_its_selector_tells_the_values_that_decided(ran: Ran) -> None:
    run = a_run(ran, ran.report)
    [totals] = run.why_not("id = 103", output=20).rows
    assert isinstance(totals.verdict, LeftOut)
    assert [(each.condition, each.value, each.values) for each in totals.verdict.decisions] == [
        ("NOT(orders.total IS NULL)", False, {"total": None})
    ]
    [lines] = run.why_not("id = 103", output=30).rows
    assert isinstance(lines.verdict, LeftOut)
    assert [each.values for each in lines.verdict.decisions] == [{"currency": "USD"}]
    with pytest.raises(UserError, match="NotAnOutput"):
        run.why_not("id = 103", output=10)


def test_columns_that_an_output_does_not_write_are_named_with_their_values(ran: Ran) -> None:
    [line] = a_run(ran, ran.report).why_not("id = 104").rows
    assert isinstance(line.verdict, InOutput)
    assert line.verdict.state == {"id": 104, "usd": Decimal("4.40")}
    assert line.verdict.not_written == {"currency": "EUR", "total": None}


def test_a_row_that_a_step_made_is_looked_for_too(ran: Ran, answer: Callable[..., Any]) -> None:
    found = a_run(ran, ran.report).why_not('currency = "EUR" AND total > 0', output=30)
    [total] = found.rows
    assert isinstance(total.verdict, LeftOut)
    assert total.created_by is not None
    assert total.created_by.seq == 10
    assert 'EUR: created in step 10 "Totals", left out by its selector' in answer(
        "explain", ran.report, "--why-not", 'currency = "EUR" AND total > 0', "--output", "30"
    )


def test_a_row_that_is_made_after_an_output_says_so(ran: Ran, answer: Callable[..., Any]) -> None:
    early = {"destination": {"datasource_id": "reports", "path": "early"}, "columns": ["id"]}
    totals = {"group_by": ["currency"], "aggregations": [{"column": "n", "expression": "COUNT_ALL()"}]}
    ran.shop.project(
        "early",
        {"seq": 10, "name": "Early", "type": "output", "arguments": early},
        {"seq": 20, "name": "Totals", "type": "aggregate", "arguments": totals},
    )
    view = ran.shop.run("early")
    assert view.snapshot.status.value == "COMPLETED", view.failure
    found = a_run(ran, view.record.run_id).why_not("n > 0")
    assert {type(row.verdict) for row in found.rows} == {MadeLater}
    text = answer("explain", view.record.run_id, "--why-not", "n > 0")
    assert 'created in step 20 "Totals", which is after the output' in text


# Parents


def test_every_row_behind_a_total_is_a_line_of_a_table(ran: Ran) -> None:
    run = a_run(ran, ran.report)
    [total] = run.trace(where='currency = "EUR" AND total IS NOT NULL').rows
    found = run.explain(total.row_id, "total", top=None)
    assert found.parents is not None
    table = found.parents.to_arrow()
    assert table.num_rows == found.parents.count == 3
    assert table["value"].to_pylist() == [Decimal("6.60"), Decimal("4.40"), Decimal("2.20")]
    assert sum(table["value"].to_pylist()) == found.value
    assert sum(table["share"].to_pylist()) == pytest.approx(1)
    frame = found.parents.to_pandas()
    assert list(frame["row_id"]) == table["row_id"].to_pylist()
    assert frame["value"].sum() == Decimal("13.20")
    top = run.explain(total.row_id, "total", top=1).parents
    assert top is not None
    assert (top.count, len(top.contributors)) == (3, 1)
    loaded = run.explain(table["row_id"][0].as_py(), "usd")
    assert loaded.parents is None


def test_all_of_them_are_shown_on_request(ran: Ran, answer: Callable[..., Any]) -> None:
    where = ("--where", 'currency = "EUR" AND total IS NOT NULL', "total")
    shown = answer("explain", ran.report, *where, "--all", "--json")
    assert len(shown["cause"]["parents"]["contributors"]) == 3


@pytest.mark.slow
def test_every_cell_of_the_outputs_is_computed_again_and_equal(ran: Ran) -> None:
    """Through both projects: the report's totals from the lines that the close published."""
    for run_id in (ran.january, ran.report):
        run = a_run(ran, run_id)
        for row in run.trace(where="TRUE").rows:
            for column, value in row.state.items():
                found = run.explain(row.row_id, column, top=None)
                assert found.value == value
                assert all(each.outcome == "equal" for each in recomputed(found))


def recomputed(found: object) -> Iterator[Recomputed]:
    if isinstance(found, Recomputed):
        yield found
    elif isinstance(found, tuple):
        for each in found:
            yield from recomputed(each)
    elif hasattr(found, "__dataclass_fields__"):
        for name in found.__dataclass_fields__:
            yield from recomputed(getattr(found, name))


# From Python


def test_a_run_answers_from_python_and_hands_tables_to_pandas(ran: Ran) -> None:
    run = a_run(ran, ran.january)
    found = run.trace(where="id = 103")
    frame = found.to_pandas()
    assert list(frame["id"]) == [103]
    history = run.trace(found.rows[0].row_id)
    assert [entry.operation_seq for entry in history.entries] == [0, 10]
    assert list(history.to_pandas()["usd"]) == [None, Decimal("3.00")]
    assert run.trace(found.rows[0].row_id, at=0).state == {
        "id": 103,
        "currency": "USD",
        "amount": Decimal("3.00"),
        "_period": "2026-01",
        "_labels": "",
        "_deleted": False,
    }
    deleted = run.trace(step=20).to_pandas()
    assert list(deleted["change_type"]) == ["deleted"]
    assert [(each.operation_seq, each.updated, each.deleted) for each in run.trace()] == [
        (10, 7, 0),
        (20, 0, 1),
        (30, 0, 0),
    ]
    explanation = run.explain(found.rows[0].row_id, "usd")
    assert explanation.value == Decimal("3.00")
    assert "ROUND(amount * r.rate, 2)" in explanation._repr_html_()
    assert not isinstance(explanation.cause, Summarised)
