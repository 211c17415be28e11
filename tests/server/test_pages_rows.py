"""Rows behind numbers: each number opens exactly its rows, pages lead on and back, and columns stay in sight."""

import hashlib
import html
import json
import re

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served

ROW = re.compile(r'<th scope="row"><a class="mono" href="[^"]*/rows/([0-9a-f-]{36})')


def row_ids(page: str) -> list[str]:
    return ROW.findall(page)


def links(page: str, pattern: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(pattern, page)]


def header(page: str) -> list[str]:
    head = page.partition("<thead>")[2].partition("</thead>")[0]
    return [re.sub(r"<[^>]*>", "", each) for each in re.findall(r'<th scope="col".*?>(.*?)(?:<span|</th>)', head)]


def step_links(served: Served) -> dict[str, str]:
    page = as_page(served.client("auditor"), f"/runs/{served.run_id}").text
    found = re.findall(r'<tr data-step="(\w+)".*?<td class="what"><a href="([^"]+)">', page, re.DOTALL)
    return {step: html.unescape(address) for step, address in found}


def told(page: str) -> str:
    return page.partition('id="told">')[2].partition("<")[0]


def test_the_numbers_of_a_step_open_exactly_its_rows_with_what_it_set_in_sight(shared: Served) -> None:
    client, addresses = shared.client("auditor"), step_links(shared)
    totals = as_page(client, addresses["40"]).text
    assert told(totals) == "All 4 rows"
    assert len(row_ids(totals)) == 4
    assert set(header(totals)[1:6]) >= {"total_usd", "line_count"}
    deleted = as_page(client, addresses["30"]).text
    assert told(deleted) == "All 17 rows"
    moved = as_page(client, addresses["20"]).text
    assert told(moved) == "All 34 rows"
    assert "account_code" in header(moved)[1:5]
    assert "Sort" not in header(moved)
    assert told(as_page(client, addresses["load"]).text) == "Rows 1 to 50 of 1,455"
    converted = as_page(client, addresses["10"]).text
    assert told(converted) == "Rows 1 to 50 of 943"


def test_an_output_is_a_page_with_the_rows_and_columns_that_it_wrote(shared: Served) -> None:
    client, address = shared.client("auditor"), step_links(shared)["60"]
    assert address == f"/runs/{shared.run_id}/outputs/60"
    page = as_page(client, address).text
    [step] = [step for step in shared.workspace.get_run(shared.run_id).open_trace().plan.outputs if step.seq == 60]
    data = [name for name in step.columns if name != "_row_id"]
    assert header(page) == ["Row", *data]
    assert told(page) == "Rows 1 to 50 of 1,569"
    assert "Publish closed ledger</h1>" in page
    assert "out/60" in page
    document = client.get(address).json()
    assert document["columns"] == list(step.columns)
    assert all(row["_deleted"] is False for row in document["rows"])
    seen, following = list[str](), [address]
    while following:
        page = as_page(client, following[0]).text
        seen += row_ids(page)
        following = links(page, r'href="([^"]+)" rel="next"')
    assert len(seen) == len(set(seen)) == 1569
    refused = as_page(client, f"/runs/{shared.run_id}/outputs/40")
    assert "step 40 is not an output; outputs are 35" in html.unescape(refused.text)
    assert as_page(shared.client("viewer"), address).status_code == 403


def test_pages_lead_back_the_way_they_came(shared: Served) -> None:
    client = shared.client("auditor")
    queries: tuple[dict[str, str], ...] = ({}, {"where": 'currency = "EUR"'}, {"sort": "amount_usd"})
    for query in queries:
        pages = [as_page(client, f"/runs/{shared.run_id}/rows", query).text]
        for _ in range(3):
            [following] = links(pages[-1], r'href="([^"]+)" rel="next"')
            pages.append(as_page(client, following).text)
        total = told(pages[0]).rpartition(" of ")[2]
        assert re.fullmatch(r"[\d,]+", total)
        assert [told(page) for page in pages] == [
            f"Rows {first} to {first + 49} of {total}" for first in (1, 51, 101, 151)
        ]
        for number in (3, 2, 1):
            [previous] = links(pages[number], r'href="([^"]+)" rel="prev"')
            before = as_page(client, previous).text
            assert (row_ids(before), told(before)) == (row_ids(pages[number - 1]), told(pages[number - 1]))
            assert links(before, r'rel="(prev)"') == links(pages[number - 1], r'rel="(prev)"')


def test_a_filter_keeps_the_columns_that_later_steps_add(shared: Served) -> None:
    client, address = shared.client("auditor"), f"/runs/{shared.run_id}/rows"
    page = as_page(client, address, {"at": 0}).text
    form = page.partition('role="search">')[2].partition("</form>")[0]
    own = re.findall(r"<input(?![^>]*form=)[^>]* name=\"(\w+)\"", form)
    assert own == ["at", "where"]
    data = [name for name in header(page) if name != "Row"]
    [everything] = [
        client.get(f"{address}?at=0&{'&'.join(f'columns={name}' for name in data)}", headers={"Accept": "text/html"})
    ]
    assert "columns=" not in everything.text.partition("<footer")[0]
    chosen = as_page(client, address, {"at": 60, "columns": "journal_id"}).text
    assert header(chosen) == ["Row", "journal_id"]
    assert re.search(r"\d+ columns are not shown: <a href=\"([^\"]+)\">show all columns", chosen)


def test_ids_of_rows_on_a_page_are_told_apart(shared: Served) -> None:
    page = as_page(
        shared.client("auditor"),
        f"/runs/{shared.run_id}/rows",
        {"at": 60, "where": 'account_type = "expense" AND row_kind <> "line"'},
    ).text
    short = re.findall(r'title="[0-9a-f-]{36}">…([0-9a-f-]+)</a>', page)
    assert len(short) > 10
    assert len(set(short)) == len(short)


def test_numbers_of_every_type_have_separators_and_null_stands_where_numbers_do(shared: Served) -> None:
    client = shared.client("auditor")
    page = as_page(
        client, f"/runs/{shared.run_id}/rows", {"at": 60, "columns": "line_count", "where": 'row_kind = "total"'}
    ).text
    assert re.search(r'<td class="num"><a [^>]*>\d', page)
    page = as_page(client, f"/runs/{shared.run_id}/rows", {"at": 60, "columns": "line_count"}).text
    assert re.search(r'<td class="num"><a [^>]*><span class="null">NULL', page)


def test_a_row_says_whether_its_file_is_still_what_was_read(served: Served) -> None:
    client = served.client("auditor")
    trace = served.workspace.find_run(served.run_id).open_trace()
    [row] = trace.search('journal_id = "JE-00231"', limit=1).rows
    source = trace.history(row.row_id).entries[0].source
    assert source is not None
    assert source.file is not None
    root = served.workspace.root
    read = root / "data" / source.file
    read.parent.mkdir(parents=True, exist_ok=True)
    read.write_bytes(b"journal_id\nJE-00231\n")
    [described] = (root / ".clew/storage/runs" / served.run_id / "input").glob("journal-lines*/part.json")
    part = json.loads(described.read_text(encoding="utf-8"))
    digest = hashlib.sha256(read.read_bytes()).hexdigest()
    part["sources"] = [{"name": source.file, "size": read.stat().st_size, "digest": f"sha256:{digest}"}]
    described.write_text(json.dumps(part), encoding="utf-8")

    def told_now() -> str:
        return as_page(client, f"/runs/{served.run_id}/rows/{row.row_id}").text

    assert "the file has not changed since it was read" in told_now()
    read.write_bytes(b"journal_id\nJE-99999\n")
    assert "the file has changed since it was read" in told_now()
    read.unlink()
    assert "the file is no longer there" in told_now()
