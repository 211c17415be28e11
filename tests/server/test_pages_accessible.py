"""Every kind of page in a real browser, looked at by axe: light and dark, on a screen and on a telephone.

One server and one browser serve all tests of this module, so that they cost little.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.runs.signals import SignalType
from tests.server.pages_browser import WIDE, Visitor, server_process, visitor_of
from tests.server.server_fixtures import Served, serving
from tests.server.test_server_captures import capture

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SCREEN: ViewportSize = {"width": 1400, "height": 900}
TELEPHONE: ViewportSize = {"width": 390, "height": 844}
TOTAL = 'row_kind = "total" AND account_type = "expense"'


@dataclass(frozen=True)
class Site:
    """A workspace with a completed run, one that was retried, and two captures."""

    visitor: Visitor
    run: str
    retried: str
    total: str
    line: str
    captures: tuple[str, str]

    def paths(self) -> dict[str, str]:
        """Every kind of page."""
        run, value = f"/runs/{self.run}", urlencode({"row": self.total, "column": "total_usd"})
        return {
            "overview": "/",
            "search": "/search?q=JE-00231",
            "runs": "/runs",
            "runs of a project": "/runs?project=gl-close&status=COMPLETED",
            "run": run,
            "the log of a run": f"/runs/{self.retried}/log",
            "a retried run": f"/runs/{self.retried}",
            "rows": f"{run}/rows?at=20&where=journal_id+%3D+%22JE-00231%22",
            "rows of a step": f"{run}/rows?at=40&changed=1",
            "a condition that is wrong": f"{run}/rows?where=nothing+%3D+1",
            "values of a column": f"{run}/values?at=60&column=amount_usd",
            "an output": f"{run}/outputs/60",
            "a row": f"{run}/rows/{self.line}?at=10",
            "a row that is to come": f"{run}/rows/{self.total}?at=10",
            "an explanation": f"{run}/explain?{value}",
            "why not": f"{run}/why-not?where=line_number+%3D+1",
            "reconciliation": f"{run}/reconciliation",
            "compare": f"{run}/compare",
            "why changed": f"{run}/why-changed",
            "what if": f"{run}/what-if",
            "what a total hangs on": f"{run}/what-if?sensitivity=total_usd",
            "what an edited file would change": f"{run}/impact",
            "a value that was restated": f"{run}/explain?{value}&restated=true",
            "lineage": "/lineage",
            "lineage of a value": f"/lineage?run={self.run}&{value}",
            "projects": "/projects",
            "project": "/projects/gl-close",
            "datasets": "/datasets",
            "dataset": "/datasets/accounts",
            "captures": "/captures",
            "capture": f"/captures/{self.captures[0]}",
            "two captures": f"/captures/{self.captures[0]}?other={self.captures[1]}",
            "operations": "/operations",
            "audit": "/audit",
            "an error": "/runs/nothing",
        }


def retried_run(served: Served) -> str:
    """A run that has failed in step 40 and was completed by a second attempt."""
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    served.engine.failing["40"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of fx match EUR"))
    served.starter.drive(run_id, threading.Event())
    served.engine.failing.clear()
    served.workspace.find_run(run_id).signal(SignalType.RETRY_STEP, step="40", reason="rates were put right")
    served.finish(run_id)
    return run_id


@pytest.fixture(scope="module")
def site(
    chromium: Browser, finished_ledger: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = Path(shutil.copytree(finished_ledger[0], tmp_path_factory.mktemp("accessible") / "ledger"))
    with pytest.MonkeyPatch.context() as patch, serving(folder, patch, run_id=finished_ledger[1]) as served:
        trace = served.workspace.find_run(served.run_id).open_trace()
        total = trace.search(TOTAL, limit=1).rows[0].row_id
        line = trace.search('journal_id = "JE-00231"', limit=1).rows[0].row_id
        first = capture(served, 10, 25, 60, 7, slot="first")
        captures = first, capture(served, 10, 20, 60, slot="second")
        retried = retried_run(served)
        with server_process(folder) as link, closing(chromium.new_context(viewport=WIDE)) as context:
            yield Site(visitor_of(context, link), served.run_id, retried, total, line, captures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("room", [SCREEN, TELEPHONE], ids=["screen", "telephone"])
def test_axe_finds_nothing_on_any_kind_of_page(site: Site, room: ViewportSize, scheme: str) -> None:
    page = site.visitor.page
    page.set_viewport_size(room)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = dict[str, list[str]]()
    for name, path in site.paths().items():
        site.visitor.open(path)
        page.evaluate(AXE)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        told = [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in result["violations"]]
        found |= {name: told} if told else {}
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"{name} is {width} pixels too wide"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    assert found == {}


def test_axe_finds_nothing_on_the_pages_of_those_who_are_not_signed_in(site: Site, chromium: Browser) -> None:
    for scheme in ("light", "dark"):
        with closing(chromium.new_context(viewport=TELEPHONE, color_scheme=scheme)) as context:
            page = context.new_page()
            for path in ("/login", "/login/link?key=nothing"):
                page.goto(site.visitor.address + path)
                page.evaluate(AXE)
                result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
                assert [each["id"] for each in result["violations"]] == [], path


def test_next_and_previous_pages_keep_the_focus_and_the_place(site: Site) -> None:
    site.visitor.complaints.clear()  # the browser also complains about the pages of errors, which other tests open
    page = site.visitor.open(f"/runs/{site.run}/rows?at=60")
    expect(page.locator("#told")).to_have_text("Rows 1 to 50 of 1,586")
    page.locator("#page-next").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_have_text("Rows 51 to 100 of 1,586")
    expect(page.locator("#page-next")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_have_text("Rows 101 to 150 of 1,586")
    page.locator("#page-before").click()
    expect(page.locator("#told")).to_have_text("Rows 51 to 100 of 1,586")
    expect(page.locator("#page-before")).to_be_focused()
    page.get_by_label("Where").fill('currency = "EUR"')
    page.get_by_label("Where").press("Enter")
    expect(page.locator("tbody tr").first).to_contain_text("EUR")
    expect(page.get_by_label("Where")).to_be_focused()
    assert "columns=" not in page.url
    assert site.visitor.complaints == []


def test_all_columns_of_rows_are_on_the_printed_page(site: Site) -> None:
    page = site.visitor.open(f"/runs/{site.run}/rows?at=60")
    assert page.locator("table.rows thead th").count() > 14
    page.set_viewport_size({"width": 760, "height": 1000})
    page.emulate_media(media="print")
    beyond = "(table) => table.getBoundingClientRect().right - document.documentElement.clientWidth"
    assert page.locator("table.rows").evaluate(beyond) <= 0
    page.emulate_media(media="screen")
    page.set_viewport_size(WIDE)


def test_an_error_stays_in_the_frame_and_leads_on(site: Site) -> None:
    page = site.visitor.open("/runs/nothing")
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text("clew ")
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url("**/runs")
    site.visitor.open(f"/runs/{site.run}/rows/{site.total}?at=10")
    page.get_by_role("main").get_by_role("link", name=site.total).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2026-01/expense")


def test_a_failed_attempt_stays_in_sight_and_waiting_does_not_stretch_the_axis(site: Site) -> None:
    page = site.visitor.open(f"/runs/{site.retried}")
    expect(page.locator('tr[data-step="40"]')).to_contain_text("attempt 2")
    failed = page.locator('tr[data-attempt-of="40"]')
    expect(failed).to_have_count(1)
    expect(failed).to_contain_text("attempt 1: 2 rows of fx match EUR")
    expect(failed.locator(".status")).to_have_text("failed")


def test_captures_are_compared_in_order_of_time_and_rows_lead_to_their_histories(site: Site) -> None:
    first, second = site.captures
    for one, other in ((first, second), (second, first)):
        page = site.visitor.open(f"/captures/{one}?other={other}")
        change = page.locator(".history li").filter(has_text="amount_usd")
        expect(change.locator(".old")).to_have_text("25.00")
        expect(change.locator(".new")).to_have_text("20.00")
        expect(change.get_by_role("link", name="history after")).to_have_attribute(
            "href", f"/runs/{site.run}/rows/row-1?at=10"
        )
        expect(change.get_by_role("link", name="amount_usd")).to_have_attribute(
            "href", f"/runs/{site.run}/explain?row=row-1&column=amount_usd&at=10"
        )


def test_the_numbers_of_steps_open_their_rows_and_an_output_its_own_page(site: Site) -> None:
    site.visitor.complaints.clear()
    page = site.visitor.open(f"/runs/{site.run}")
    page.locator('tr[data-step="40"] .what a', has_text="4 created").click()
    expect(page.locator("table.rows tbody tr")).to_have_count(4)
    expect(page.locator("table.rows thead th").nth(1)).to_be_in_viewport()
    expect(page.locator("table.rows thead")).to_contain_text("total_usd")
    page.go_back()
    page.locator('tr[data-step="60"] .what a').click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Publish closed ledger")
    expect(page.locator("#told")).to_have_text("Rows 1 to 50 of 1,569")
    expect(page.get_by_text("Download", exact=True)).to_be_visible()
    assert site.visitor.complaints == []


def test_the_search_box_is_a_key_away_and_leads_to_the_history_of_a_row(site: Site) -> None:
    page = site.visitor.open("/projects/gl-close")
    page.keyboard.press("/")
    page.keyboard.type("JE-00231/2")
    page.keyboard.press("Enter")
    page.locator("main").get_by_role("link", name="JE-00231/2").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("JE-00231/2")
    assert site.visitor.complaints == []


def test_column_lineage_stays_when_it_is_clicked(site: Site) -> None:
    page = site.visitor.open("/projects/gl-close")
    chip = page.get_by_role("button", name="total_usd")
    chip.click()
    page.get_by_role("heading", level=1).hover()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-origin]")).to_contain_text("fx-rates.rate")
    chip.click()
    page.get_by_role("heading", level=1).hover()
    chip.blur()
    expect(page.locator("[data-origin]")).not_to_contain_text("fx-rates.rate")
    assert site.visitor.complaints == []
