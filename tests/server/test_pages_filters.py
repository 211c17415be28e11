"""Filtering by clicking and typing: values lead to exactly their rows, and the checker that filters helps to write."""

import html
import re
from collections import Counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from clew.diagnostics import UserError
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served
from tests.server.test_pages_rows import told

FREQUENT = re.compile(
    r'<tr><th scope="row"><a href="([^"]+)" title="Only these">(.*?)</a></th><td class="num">([\d,]+)</td>'
    r'.*?<a href="([^"]+)">not these</a>'
)


def number_of_rows(page: str) -> int:
    """How many rows a page of rows speaks of."""
    return int(re.sub(r"\D", "", told(page).rpartition(" of ")[2] or told(page)))


@pytest.mark.parametrize(
    ("column", "where"), [("currency", ""), ("cost_center", 'currency = "EUR" OR currency = "USD"')]
)
def test_values_lead_to_exactly_their_rows_and_to_the_others(shared: Served, column: str, where: str) -> None:
    client, run = shared.client("auditor"), f"/runs/{shared.run_id}"
    asked: dict[str, str | int] = {"column": column, "at": 60, "where": where}
    page = as_page(client, f"{run}/values", asked).text
    found = [tuple(map(html.unescape, each)) for each in FREQUENT.findall(page)]
    document = client.get(f"{run}/values.json", params=asked).json()
    assert [int(rows.replace(",", "")) for _, _, rows, _ in found] == [each["rows"] for each in document["top"]]
    assert len(found) == document["distinct"] + bool(document["nulls"])
    assert document["rows"] == sum(each["rows"] for each in document["top"])
    for only, _, rows, without in (found[0], found[-1]):
        count = int(rows.replace(",", ""))
        assert number_of_rows(as_page(client, only).text) == count
        assert number_of_rows(as_page(client, without).text) == document["rows"] - count


def test_the_numbers_are_those_of_the_rows_that_a_search_finds(shared: Served) -> None:
    trace = shared.workspace.find_run(shared.run_id).open_trace()
    for where in (None, 'currency = "EUR"', 'LEN(CONCAT(currency, "")) = 3 AND LEFT(_row_id, 1) <> "%"'):
        for column in ("account_code", "amount_usd", "posting_date", "cost_center", "_deleted"):
            rows = trace.search(where, 60, limit=10_000).rows
            counted = Counter(row.state[column] for row in rows)
            found = trace.values(column, where, 60, most=10_000)
            assert dict(found.top) == dict(counted)
            assert [count for _, count in found.top] == sorted(counted.values(), reverse=True)
            present = [value for value in counted if value is not None]
            assert (found.rows, found.nulls, found.distinct) == (len(rows), counted[None], len(present))
            assert (found.least, found.greatest) == (min(present), max(present))
            assert found.is_whole


def test_a_range_leads_to_the_rows_within_it_and_keeps_the_condition(shared: Served) -> None:
    client, address = shared.client("auditor"), f"/runs/{shared.run_id}/values"
    asked: dict[str, str | int] = {
        "column": "amount_usd",
        "at": 60,
        "where": 'currency = "EUR"',
        "least": "-100",
        "greatest": "250.5",
    }
    answer = as_page(client, address, asked)
    assert answer.status_code == 303
    where = parse_qs(urlsplit(answer.headers["location"]).query)["where"][0]
    assert where == 'currency = "EUR" AND amount_usd >= -100 AND amount_usd <= 250.5'
    dates = as_page(client, address, {"column": "posting_date", "at": 60, "least": "2026-01-30"})
    assert parse_qs(urlsplit(dates.headers["location"]).query)["where"] == ['posting_date >= DATE("2026-01-30")']
    refused = as_page(client, address, {"column": "amount_usd", "least": "1 OR TRUE"})
    assert refused.status_code == 422


def test_a_column_that_does_not_exist_and_a_wrong_condition_are_told(shared: Served) -> None:
    client, address = shared.client("auditor"), f"/runs/{shared.run_id}/values"
    unknown = client.get(f"{address}.json", params={"column": "currncy"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (422, "UnknownColumn")
    wrong = client.get(f"{address}.json", params={"column": "currency", "where": "currncy = 1"})
    assert wrong.json()["error"]["code"] == "UnknownColumn"
    trace = shared.workspace.find_run(shared.run_id).open_trace()
    with pytest.raises(UserError, match="currncy"):
        trace.values("currncy")


def test_a_condition_is_checked_while_it_is_typed(shared: Served) -> None:
    client, address = shared.client("auditor"), f"/runs/{shared.run_id}/condition"

    def typed(where: str, cursor: int | None = None, at: int = 60) -> dict[str, Any]:
        query: dict[str, str | int] = {"where": where, "at": at}
        query |= {} if cursor is None else {"cursor": cursor}
        answer = client.get(address, params=query)
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        return found

    assert typed("")["problem"] is None
    assert typed('currency = "EUR"')["problem"] is None
    problem = typed('currency = "EUR" AND amout_usd > 0')["problem"]
    assert (problem["line"], problem["column"], problem["length"]) == (1, 22, 9)
    assert "amout_usd" in str(problem["message"])
    assert "amount_usd" in str(problem["hint"])
    offered = typed("amount_ = 3", 7)["completions"]
    assert offered["start"] == 0
    assert [each["text"] for each in offered["found"]][:2] == ["amount_local", "amount_usd"]
    assert "total_usd" not in str(typed("tot", at=0)["completions"])


def test_cells_carry_their_values_as_conditions_write_them(shared: Served) -> None:
    page = as_page(shared.client("auditor"), f"/runs/{shared.run_id}/rows", {"at": 60, "where": "TRUE or FALSE"}).text
    assert 'data-narrowing="(TRUE or FALSE) AND "' in page
    carried = {html.unescape(each) for each in re.findall(r'data-is="([^"]*)"', page)}
    assert {'DATE("2026-01-02")', '"USD"', "NULL", "1"} <= carried
    assert re.search(r'data-column="amount_usd" data-ordered', page)
