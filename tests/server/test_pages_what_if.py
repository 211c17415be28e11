"""From an explanation to what another rate would change, and from an output to its file."""

import csv
import html
import re
from decimal import Decimal

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served


def test_an_explanation_leads_to_the_question_what_another_rate_would_change(shared: Served) -> None:
    client, run = shared.client("auditor"), f"/runs/{shared.run_id}"
    trace = shared.workspace.find_run(shared.run_id).open_trace()
    [row] = trace.search('journal_id = "JE-00231" AND line_number = 2', 60, limit=1).rows
    page = as_page(client, f"{run}/explain", {"row": row.row_id, "column": "amount_usd"}).text
    [draft, *_] = map(html.unescape, re.findall(r'href="([^"]*/what-if\?draft=[^"]+)"', page))
    form = as_page(client, draft).text
    [asked] = map(html.unescape, re.findall(r'name="set" value="([^"]+)"', form))
    assert re.fullmatch(r'.+ where .*currency = "EUR".*: rate = [\d.]+', asked)
    assert "Change the value" in form
    head, _, rate = asked.rpartition(" = ")
    answer = as_page(client, f"{run}/what-if", {"set": f"{head} = {rate} * 2"}).text
    assert re.search(r"<h2>[\d,]+ rows? would change", answer)
    moved = re.findall(r'<td>amount_usd</td><td class="num">([\d,.-]+)</td><td class="num">([\d,.-]+)</td>', answer)
    assert moved
    for now, then in (map(Decimal, (old.replace(",", ""), new.replace(",", ""))) for old, new in moved):
        assert abs(then - 2 * now) <= Decimal("0.01")
    assert "No total moves." in answer, "debits and credits double alike"
    file = client.get(f"{run}/explain.html", params={"row": row.row_id, "column": "amount_usd"}).text
    assert "what-if" not in file


def test_what_an_output_has_written_can_be_downloaded_from_its_page(shared: Served) -> None:
    client = shared.client("auditor")
    page = as_page(client, f"/runs/{shared.run_id}/outputs/60").text
    [address] = map(html.unescape, re.findall(r'href="([^"]+format=csv[^"]*)" download', page))
    found = client.get(address)
    assert found.status_code == 200
    assert len(list(csv.reader(found.text.splitlines()))) == 1569 + 1
