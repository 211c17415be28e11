"""What people come for, from the start page on, in few clicks, in front of a server on PostgreSQL.

A manager, an auditor, an engineer, and someone who filters rows. The operator is in `test_pages_in_a_browser`.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from clew.server.pages.drawing.graph import Graph, GraphNode
from clew.server.pages.lineage_page import lineage_page
from clew.server.pages.rendering import Shell, Templates
from tests.server.pages_browser import PATIENCE_MS, WIDE, Visitor, server_process, visitor_of
from tests.server.server_engine import WRONG_RATE
from tests.server.server_fixtures import MONTH, serving, write_ledger
from tests.store.store_fixtures import new_schema
from tests.store.store_postgres import PostgresServer

CLICKS = (
    "addEventListener('click', () => sessionStorage.setItem('clicks', +sessionStorage.getItem('clicks') + 1), true)"
)
CLOSED = "gl-close 2026-01: current, ties"


@pytest.fixture(scope="module")
def auditor(chromium: Browser, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A user of a workspace whose January was closed with a wrong rate at first, and then with the right one."""
    folder = write_ledger(tmp_path_factory.mktemp("journeys") / "ledger", store=new_schema(postgres))
    with pytest.MonkeyPatch.context() as patch, serving(folder, patch, run_id="") as served:
        for is_wrong in (True, False):
            served.engine.has_wrong_rate = is_wrong
            served.finish(served.starter.submit("gl-close", MONTH).run_id)
        with server_process(folder) as link, closing(chromium.new_context(viewport=WIDE)) as context:
            yield visitor_of(context, link)


def clicks(page: Page) -> int:
    return int(page.evaluate("+sessionStorage.getItem('clicks')"))


def test_a_manager_sees_which_months_are_closed_and_tie(auditor: Visitor) -> None:
    page = auditor.open("/")
    expect(page.get_by_text("The one result is current and ties.")).to_be_visible()
    page.get_by_role("link", name=CLOSED).click()
    expect(page.locator("h1 .status")).to_have_text("completed")
    assert auditor.complaints == []


def test_an_auditor_gets_from_the_start_page_to_a_total_its_source_line_and_verified_evidence(
    auditor: Visitor, tmp_path: Path
) -> None:
    page = auditor.page
    page.add_init_script(CLICKS)
    auditor.open("/")
    page.evaluate("sessionStorage.removeItem('clicks')")
    page.get_by_role("link", name=CLOSED).click()
    page.locator('tr[data-step="40"] .what a').click()
    page.locator("table.rows td a", has_text="737,127.41").click()
    expect(page.locator(".verdict")).to_contain_text("all equal")
    page.get_by_role("button", name="Unfold all").click()
    expect(page.locator("#tree .place").first).to_have_text(re.compile(r"line [\d,]+"))
    expect(page.locator("#tree")).to_contain_text("transactions.csv")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Evidence").click()
    assert clicks(page) <= 6
    pack = tmp_path / "pack.zip"
    downloading.value.save_as(pack)
    with zipfile.ZipFile(pack) as archive:
        archive.extract("verify.py", tmp_path)
    command = [sys.executable, "-I", str(tmp_path / "verify.py"), str(pack)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert auditor.complaints == []


def test_an_engineer_gets_from_a_changed_total_to_the_rate_that_changed(auditor: Visitor) -> None:
    page = auditor.open("/")
    page.get_by_role("link", name=CLOSED).click()
    page.get_by_role("link", name="Why changed?").click()
    page.get_by_label("Total of").select_option("total_usd")
    page.get_by_role("button", name="Ask").click()
    cause = page.get_by_role("row").filter(has_text="exchange rates")
    expect(cause).to_have_count(1)
    expect(cause).to_contain_text(f"rate 1.092000 → {WRONG_RATE}")
    expect(page.get_by_role("img", name=re.compile("to .* by 1 cause"))).to_be_visible()
    cause.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    expense = page.locator("tbody tr").filter(has_text="total_usd").filter(has_text="737,127.41")
    expense.get_by_role("link", name="737,127.41").click()
    expect(page.locator(".verdict")).to_contain_text("all equal")
    page.get_by_role("button", name="Unfold all").click()
    expect(page.locator("#tree")).to_contain_text("fx.rate")
    expect(page.locator("#tree")).to_contain_text("1.092")
    assert auditor.complaints == []


def test_many_rows_of_an_explanation_come_one_after_the_other_and_can_be_stopped(auditor: Visitor) -> None:
    page = auditor.open("/")
    page.get_by_role("link", name=CLOSED).click()
    page.locator('tr[data-step="40"] .what a').click()
    page.locator("table.rows td a", has_text="737,127.41").click()
    rows = page.locator("#tree .share-line")
    expect(rows).to_have_count(5)
    page.get_by_role("link", name="show 50").click()
    expect(rows).to_have_count(50)
    expect(page.locator(".progress")).to_have_count(0)
    page.get_by_role("link", name="show 484").click()
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    expect(page.locator(".progress")).to_have_count(0)
    shown = rows.count()
    assert 50 <= shown < 484
    page.get_by_role("link", name="show 484").click()
    expect(rows).to_have_count(484, timeout=PATIENCE_MS)
    expect(page.locator("#tree .rest")).to_have_count(0)
    expect(page.locator(".verdict")).to_contain_text("all equal")
    equal = page.locator("#tree .check.equal").count()
    expect(page.locator(".verdict")).to_contain_text(f"{equal:,} expressions")
    assert auditor.complaints == []


def test_a_graph_of_five_hundred_boxes_is_readable(auditor: Visitor) -> None:
    """A year of months of forty projects, drawn by the server, moved by its script."""
    nodes = [
        GraphNode(
            key=f"{n}", kind="run COMPLETED", title=f"Close of entity {n // 12}", subtitle=f"2026-{n % 12 + 1:02}"
        )
        for n in range(480)
    ]
    nodes += [GraphNode(key=f"d{n}", kind="dataset", title=f"ledger-{n}", subtitle="12 periods") for n in range(40)]
    edges = [(f"{n}", f"d{n // 12}") for n in range(480)]
    found = lineage_page(Graph(tuple(nodes), tuple(edges)), title="Lineage", lead="Many.", has_filter=True)
    frame = Shell((), "Lineage", "w", "dev", "u", "admin", None, True, ("graph.js",), None)
    text = Templates().render("lineage.html", page=found, shell=frame)
    page = auditor.page
    page.route("**/lineage", lambda route: route.fulfill(status=200, content_type="text/html", body=text), times=1)
    auditor.open("/lineage")
    boxes = page.locator("[data-graph] > svg:not(.minimap) .g-box:not(.away)")
    expect(boxes).to_have_count(520)
    expect(page.locator(".minimap")).to_be_visible()
    height = "(box) => box.querySelector('text').getBoundingClientRect().height"
    in_sight = page.evaluate(
        """() => { const frame = document.querySelector("[data-graph]").getBoundingClientRect();
        return [...document.querySelectorAll("[data-graph] > svg:not(.minimap) .g-box")].filter((box) => {
          const { top, bottom, left, right } = box.getBoundingClientRect();
          return bottom > frame.top && top < frame.bottom && right > frame.left && left < frame.right; }).length; }"""
    )
    assert 3 <= in_sight < 200
    assert boxes.first.evaluate(height) >= 9
    page.get_by_label("Find in the picture").fill("entity 17")
    expect(page.locator("[data-found]")).to_have_text("12 found")
    one = page.locator(".g-box:not(.dim)", has_text="Close of entity 17").first
    expect(one).to_be_in_viewport()
    assert one.evaluate(height) >= 9
    handle = page.get_by_role("button", name=re.compile("What ledger-17 comes from"))
    handle.focus()
    page.keyboard.press("Enter")
    expect(boxes).to_have_count(508)
    assert auditor.complaints == []


def test_rows_are_filtered_by_clicking_and_typing(auditor: Visitor) -> None:
    page = auditor.open("/")
    page.get_by_role("link", name=CLOSED).click()
    page.get_by_role("link", name="Rows", exact=True).click()
    cell = page.locator("table.rows tbody tr").first.locator("td:has([data-is='\"USD\"'])").first
    cell.hover()
    page.get_by_role("button", name="Filter by this value").click()
    expect(page.get_by_role("group", name="Filter by this value")).to_contain_text('currency = "USD"')
    page.get_by_role("link", name="Only these").click()
    where = page.get_by_label("Where")
    expect(where).to_have_value('currency = "USD"')
    expect(where).to_be_focused()
    page.get_by_role("link", name="Values of category").click()
    page.locator(".menu .values").get_by_role("link", name="operating").click()
    expect(where).to_have_value('currency = "USD" AND category = "operating"')
    where.press("End")
    where.press_sequentially(" AND amount_u")
    offer = page.get_by_role("option", name="amount_usd")
    expect(offer).to_be_visible()
    expect(page.locator(".while-typing")).to_be_hidden()
    where.press("ArrowDown")
    where.press("Enter")
    expect(where).to_have_value('currency = "USD" AND category = "operating" AND amount_usd')
    where.press_sequentially(" > ")
    expect(page.locator(".while-typing")).to_be_visible()
    where.press_sequentially("0")
    expect(page.locator(".while-typing")).to_be_hidden()
    where.press("Enter")
    expect(page.locator("#told")).to_have_text(re.compile(r"ows? "))
    page.locator("table.rows tbody td a").first.focus()
    page.keyboard.press("f")
    expect(page.get_by_role("group", name="Filter by this value")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Filter by this value")).to_have_count(0)
    assert auditor.complaints == []


def test_a_graph_finds_hides_and_is_kept_as_a_picture(auditor: Visitor) -> None:
    page = auditor.open("/")
    page.get_by_role("link", name=CLOSED).click()
    page.locator("#run").get_by_role("link", name="Lineage").click()
    boxes = page.locator(".g-box:not(.away)")
    everything = boxes.count()
    page.get_by_label("Find in the picture").fill("month close")
    expect(page.locator("[data-found]")).to_have_text("1 found")
    page.get_by_label("Find in the picture").fill("")
    handle = page.get_by_role("button", name=re.compile("What Month close.* comes from"))
    handle.focus()
    page.keyboard.press("Enter")
    expect(handle).to_have_attribute("aria-expanded", "false")
    assert boxes.count() < everything
    page.keyboard.press("Enter")
    expect(boxes).to_have_count(everything)
    page.get_by_text("Picture", exact=True).click()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="PNG").click()
    assert downloading.value.suggested_filename == "lineage.png"
    assert Path(downloading.value.path()).read_bytes().startswith(b"\x89PNG")
    assert auditor.complaints == []
