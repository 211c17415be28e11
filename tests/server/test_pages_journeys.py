"""What people come for, from the start page on, in few clicks: a manager, an auditor, and someone who filters rows."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.server.pages_browser import Visitor, auditor

__all__ = ["auditor"]

CLICKS = (
    "addEventListener('click', () => sessionStorage.setItem('clicks', +sessionStorage.getItem('clicks') + 1), true)"
)
CLOSED = "gl-close 2026-01: current, ties"


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
    page = auditor.open("/lineage")
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
