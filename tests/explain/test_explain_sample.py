"""The sample's totals, followed back to the journal."""

import dataclasses
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from clew.explain.explaining import explain, row_named
from clew.explain.pinned import UpstreamByOrigin
from clew.explain.tree import Explanation, JoinedRow, Loaded, Recomputed, Summarised, Updated
from clew.explain.views import as_html, as_json, as_text
from clew.explain.why_not import why_not
from clew.trace.reader import RunTrace
from tests.explain.sample_traces import write_close, write_report
from tests.trace.trace_writer import Writer

EXPENSES = 'row_kind = "total" AND account_type = "expense"'


@pytest.fixture(scope="module")
def close(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    writer = write_close(tmp_path_factory.mktemp("storage"))
    writer.write()
    return writer


@pytest.fixture
def trace(close: Writer) -> RunTrace:
    return close.trace()


def within(value: object, kind: type) -> Iterator[Any]:
    """All records of a kind in a tree."""
    if isinstance(value, kind):
        yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from within(getattr(value, field.name), kind)
    elif isinstance(value, tuple):
        for item in value:
            yield from within(item, kind)


@pytest.mark.slow
def test_the_expense_total_comes_from_484_rows_and_most_of_it_from_one(trace: RunTrace) -> None:
    found = explain(trace, row_named(trace, EXPENSES), "total_usd")
    assert found.value == Decimal("737127.41")
    assert isinstance(found.cause, Summarised)
    assert found.cause.recomputed.outcome == "equal"
    assert found.cause.parents.count == 484
    largest = found.cause.parents.contributors[0]
    assert (largest.label, largest.value) == ("JE-00017/1", Decimal("61200.00"))
    assert largest.share is not None
    assert round(largest.share, 3) == Decimal("0.083")
    [amount] = largest.inputs
    assert isinstance(amount.explanation, Explanation)
    converted = amount.explanation.cause
    assert isinstance(converted, Updated)
    assert converted.step.name == "Convert to USD"
    assert [(each.name, each.value) for each in converted.inputs] == [
        ("amount_local", Decimal("56043.96")),
        ("fx.rate", Decimal("1.092000")),
    ]
    rate = converted.inputs[1].explanation
    assert isinstance(rate, JoinedRow)
    assert rate.label == "EUR/USD/closing from 2026-01-01"
    assert rate.row is not None
    assert rate.row["remark"] == "restated: replaces 1.085000"
    assert all(each.outcome == "equal" for each in within(found, Recomputed))


def test_all_rows_behind_a_total_can_be_had_and_add_up_to_it(trace: RunTrace) -> None:
    found = explain(trace, row_named(trace, EXPENSES), "total_usd", top=None, depth=0)
    assert isinstance(found.cause, Summarised)
    contributors = found.cause.parents.contributors
    assert len(contributors) == 484
    assert sum(each.value for each in contributors) == found.value  # type: ignore[misc]
    sizes: list[Any] = [abs(each.value) for each in contributors]  # type: ignore[arg-type]
    assert sizes == sorted(sizes, reverse=True)


def test_the_text_of_an_explanation(trace: RunTrace, golden: Callable[[str, str], None]) -> None:
    golden("explain/total_usd.txt", as_text(explain(trace, row_named(trace, EXPENSES), "total_usd", top=2)))


def test_the_text_of_why_a_row_is_missing(trace: RunTrace, golden: Callable[[str, str], None]) -> None:
    golden("explain/why_not_test_entry.txt", as_text(why_not(trace, 'journal_id = "JE-00099"')))


def test_the_page_of_an_explanation_needs_no_script(trace: RunTrace) -> None:
    page = as_html(explain(trace, row_named(trace, EXPENSES), "total_usd"))
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "737,127.41" in page
    assert "JE-00017/1" in page


def test_the_json_of_an_explanation_has_values_that_lose_nothing(trace: RunTrace) -> None:
    data: Any = as_json(explain(trace, row_named(trace, EXPENSES), "total_usd", top=1))
    assert (data["column"], data["value"], data["at"]) == ("total_usd", "737127.41", 60)
    cause = data["cause"]
    assert (cause["kind"], cause["step"]["seq"], cause["recomputed"]["outcome"]) == ("summarised", 40, "equal")
    [contributor] = cause["parents"]["contributors"]
    assert contributor["value"] == "61200.00"
    assert contributor["inputs"][0]["explanation"]["cause"]["kind"] == "updated"


def test_a_budget_leads_to_the_lines_of_the_budget_file(trace: RunTrace) -> None:
    where = 'row_kind = "budget" AND account_code = "4000" AND cost_center = "C200"'
    found = explain(trace, row_named(trace, where), "amount_usd")
    assert isinstance(found.cause, Summarised)
    assert found.cause.of == "budgets"
    assert found.cause.recomputed.outcome == "equal"
    sources = [each.source for each in found.cause.parents.contributors]
    assert all(source is not None and source.dataset == "budgets" and source.line for source in sources)


def test_an_explanation_crosses_from_the_report_to_the_journal(close: Writer, tmp_path: Path) -> None:
    report = write_report(tmp_path, close).write()
    row = report.search('row_kind = "report" AND account_type = "expense"', limit=1).rows[0]
    upstream = UpstreamByOrigin(lambda path: (close.trace(), 60) if "gl-closed" in path else None)
    found = explain(report, row.row_id, "actual_usd", upstream=upstream, top=2)
    journal = [
        each.source for each in within(found, Loaded) if each.source.dataset == "journal-lines" and each.source.line
    ]
    assert journal
    assert {each.run_id for each in within(found, Explanation)} == {"group-report-run", close.run_id}
    assert all(each.outcome == "equal" for each in within(found, Recomputed))
    alone = explain(report, row.row_id, "actual_usd", top=2)
    assert {each.source.dataset for each in within(alone, Loaded)} == {"gl-closed"}
