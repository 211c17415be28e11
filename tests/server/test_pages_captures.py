"""Pages of captures: in numbers, as rows, compared, and on record."""

import re

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served
from tests.server.test_server_captures import capture


def test_a_capture_is_shown_in_numbers_and_rows(served: Served) -> None:
    capture_id = capture(served, 10, 20, 60)
    client = served.client("auditor")
    assert capture_id in as_page(client, "/captures").text
    page = as_page(client, f"/captures/{capture_id}").text
    assert "gl-close::fx::converted" in page
    assert page.count('class="hist"') == 1
    assert len(re.findall(r"<rect [^>]*><title>", page)) > 1
    assert "60.00" in page
    assert "JE-2" in page
    assert "Compare" not in page
    records = served.client("admin").get("/api/v1/audit", params={"subject": "capture"}).json()["records"]
    assert (records[0]["subject"], records[0]["subject_id"]) == ("capture", capture_id)


def test_numbers_of_a_capture_are_written_as_on_every_page(served: Served) -> None:
    before = capture(served, 1234567, 20)
    after = capture(served, 7654321, 20, 1000001, slot="two")
    client = served.client("auditor")
    page = as_page(client, f"/captures/{before}").text
    assert '<th scope="col" class="num">amount_usd</th>' in page
    assert '<td class="num">1,234,567.00</td>' in page
    assert '<td class="num">617,293.50</td>' in page
    compared = as_page(client, f"/captures/{after}", {"other": before}).text
    assert re.search(r'"old">1,234,567.00</span>.*"new">7,654,321.00</span>', compared)
    assert '<td class="num">1,000,001.00</td>' in compared


def test_two_captures_are_compared(served: Served) -> None:
    before = capture(served, 10, 20, 60)
    after = capture(served, 10, 25, 60, 7, slot="two")
    client = served.client("auditor")
    assert f'value="{before}"' in as_page(client, f"/captures/{after}").text
    page = as_page(client, f"/captures/{after}", {"other": before}).text
    figures = re.findall(r"<dt>Rows ([\w ]+)</dt><dd>(\d+)</dd>", page)
    assert figures == [("the same", "2"), ("changed", "1"), ("added", "1"), ("removed", "0")]
    assert "20.00" in page
    assert "25.00" in page
    assert "<h1>Two captures of gl-close::fx::converted</h1>" in page


def test_captures_of_two_breakpoints_are_told_apart(served: Served) -> None:
    before, after = capture(served, 10), capture(served, 12, slot="two", point="gl-close::main::cleaned")
    page = as_page(served.client("auditor"), f"/captures/{after}", {"other": before}).text
    assert "<h1>gl-close::fx::converted and gl-close::main::cleaned</h1>" in page
    assert re.search(r"<dt>before</dt><dd><a [^>]*>gl-close::fx::converted, run", page)
    assert re.search(r"<dt>after</dt><dd><a [^>]*>gl-close::main::cleaned, run", page)


def test_who_may_not_read_captures_is_not_offered_them(served: Served) -> None:
    capture_id = capture(served, 10)
    client = served.client("operator")
    assert 'href="/captures"' not in as_page(client, "/runs").text
    assert as_page(client, "/captures").status_code == 403
    refused = as_page(client, f"/captures/{capture_id}")
    assert refused.status_code == 403
    assert "10.00" not in refused.text


def test_captures_of_another_tenant_do_not_exist(served: Served) -> None:
    capture_id = capture(served, 10, tenant="another")
    client = served.client("admin")
    assert capture_id not in as_page(client, "/captures").text
    assert as_page(client, f"/captures/{capture_id}").status_code == 404
    assert as_page(served.client("admin", "another"), "/captures").status_code == 403
