"""Three people in a real browser: an auditor, an operator and a newcomer."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from clew.captures.queue import CaptureOutcome
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.events.snapshot import RunStatus
from clew.runs.executor import StepContext
from clew.sample import write_sample
from tests.server.pages_browser import UNFIT, WIDE, Enter, Visitor, auditor, enter
from tests.server.server_fixtures import MONTH, Served, serving, write_ledger

__all__ = ["auditor", "enter"]


def test_an_auditor_finds_a_total_and_follows_it_to_the_line_of_a_file(
    finished_ledger: tuple[Path, str], auditor: Visitor, tmp_path: Path
) -> None:
    page = auditor.open("/runs")
    page.get_by_role("link", name=finished_ledger[1][:8]).click()
    page.get_by_role("link", name="Rows", exact=True).click()
    page.get_by_label("Where").fill('row_kind = "total" AND account_type = "expense"')
    page.get_by_role("button", name="Filter").click()
    page.locator("table.rows tbody tr").first.wait_for()
    expect(page.locator("table.rows tbody tr")).to_have_count(1)

    page.locator("table.rows td a", has_text="737,127.41").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("total_usd of 2026-01/expense")
    expect(page.locator(".verdict")).to_contain_text("all equal")
    expect(page.locator("#tree")).to_contain_text("SUM(transactions.amount_usd)")
    expect(page.locator("#tree .share-line .percent").first).to_contain_text("%")
    assert page.locator("#tree details:not([open])").count() > 0
    page.get_by_role("button", name="Unfold all").click()
    assert page.locator("#tree details:not([open])").count() == 0
    expect(page.locator("#tree .place").first).to_be_visible()
    expect(page.locator("#tree")).to_contain_text("transactions.csv")

    page.emulate_media(media="print")
    expect(page.locator("#tree .place").first).to_be_visible()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    page.emulate_media(media="screen")

    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download").click()
    kept = tmp_path / "explanation.html"
    downloading.value.save_as(kept)
    the_file_shows_the_same_tree_by_itself(page.context.new_page(), kept)

    page.get_by_role("link", name="As a graph").click()
    expect(page.locator(".g-box.here")).to_contain_text("total_usd")
    assert page.locator(".g-line").count() > 3
    assert auditor.complaints == []


def the_file_shows_the_same_tree_by_itself(page: Page, kept: Path) -> None:
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(kept.as_uri())
    tree = page.locator("#tree")
    expect(page.get_by_role("heading", level=1)).to_have_text("total_usd of 2026-01/expense")
    expect(page.locator(".verdict")).to_contain_text("all equal")
    place = tree.locator(".place").last
    expect(place).to_be_hidden()
    page.emulate_media(media="print")
    expect(place).to_be_visible()
    page.emulate_media(media="screen")
    while not place.is_visible():
        tree.locator("details:not([open]) > summary:visible").first.click()
    assert page.evaluate(UNFIT) == []
    assert asked == [kept.as_uri()]
    page.close()


def test_rows_move_with_the_slider_and_arrow_keys_and_one_row_tells_its_history(
    finished_ledger: tuple[Path, str], auditor: Visitor
) -> None:
    page = auditor.open(f"/runs/{finished_ledger[1]}/rows?at=0&where=journal_id+%3D+%22JE-00231%22")
    expect(page.locator("thead")).not_to_contain_text("amount_usd")
    page.get_by_label("Step", exact=True).press("End")
    page.wait_for_url("**at=60**")
    expect(page.locator("thead")).to_contain_text("amount_usd")
    page.get_by_label("After step").select_option("20")
    expect(page.locator("td.changed").first).to_contain_text("5210")
    page.locator("tbody th a").nth(1).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "JE-00231"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("JE-00231/2")
    expect(page.locator(".history")).to_contain_text("1,310.40")
    page.get_by_role("button", name="Previous step").click()
    page.wait_for_url("**at=10**")
    expect(page.get_by_role("row", name="account_code")).to_contain_text("5210")
    assert auditor.complaints == []


def test_pages_fit_a_telephone_and_name_everything_for_screen_readers(
    finished_ledger: tuple[Path, str], auditor: Visitor
) -> None:
    run = f"/runs/{finished_ledger[1]}"
    auditor.page.set_viewport_size({"width": 390, "height": 844})
    paths = [
        "/",
        "/runs",
        run,
        f"{run}/rows?at=10",
        f"{run}/why-not",
        "/lineage",
        "/projects/gl-close",
        "/datasets",
        "/operations",
        f"/nothing/{'0123456789' * 10}",
    ]
    unfit = {path: auditor.open(path).evaluate(UNFIT) for path in paths}
    assert {path: found for path, found in unfit.items() if found} == {}
    page = auditor.open("/operations")
    expect(page.get_by_role("navigation").get_by_role("link", name="Operations")).to_be_in_viewport(ratio=1)
    page = auditor.open(f"{run}/rows?at=10")
    page.locator("summary", has_text="Columns").click()
    expect(page.get_by_role("button", name="Show these")).to_be_in_viewport(ratio=1)
    page = auditor.open("/projects/gl-close")
    page.evaluate("scrollBy(0, 300)")
    expect(page.locator(".g-box.step").first).to_be_in_viewport(ratio=0.9)
    auditor.page.set_viewport_size(WIDE)


def test_the_keyboard_opens_what_deactivation_will_do_and_leaves_it_again(
    finished_ledger: tuple[Path, str], tmp_path: Path, enter: Enter
) -> None:
    visitor = enter(Path(shutil.copytree(finished_ledger[0], tmp_path / "ledger")))
    page = visitor.open("/projects/gl-close")
    button = page.get_by_role("button", name="Deactivate", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    asked = page.get_by_role("dialog", name="Deactivate version 1")
    expect(asked).to_be_visible()
    expect(asked.get_by_role("button", name="Back")).to_be_focused()
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    expect(button).to_be_focused()
    button.click()
    asked.get_by_role("button", name="Deactivate version 1").click()
    expect(page.get_by_role("button", name="Activate", exact=True)).to_be_visible()
    assert visitor.complaints == []


def test_a_newcomer_is_told_what_to_do(tmp_path: Path, enter: Enter) -> None:
    write_sample(tmp_path / "ledger")
    visitor = enter(tmp_path / "ledger")
    page = visitor.open("/runs")
    expect(page.get_by_role("heading", level=1)).to_have_text("No runs yet")
    expect(page.get_by_text("clew run gl-close --period 2026-01")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="gl-close").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Month close")
    page.get_by_role("button", name="total_usd").hover()
    expect(page.locator("[data-origin]")).to_contain_text("fx-rates.rate")
    expect(page.locator(".g-box.lit").first).to_be_visible()
    page.get_by_role("link", name="Lineage").click()
    expect(page.get_by_text("Nothing to draw yet")).to_be_visible()
    page.get_by_role("link", name="Operations").click()
    expect(page.get_by_text("No runs are running or waiting.")).to_be_visible()
    assert visitor.complaints == []


class Gate:
    """Holds a step until the test opens it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, _context: StepContext) -> None:
        self.reached.set()
        assert self.opened.wait(60)


def in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def send(page: Page, button: str, reason: str) -> None:
    page.get_by_role("button", name=button).click()
    page.get_by_label("Reason, for the record").fill(reason)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#signal")).to_be_hidden()


def test_an_operator_watches_pauses_resumes_and_retries(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    folder = write_ledger(tmp_path / "ledger", store=postgres_url)
    with serving(folder, monkeypatch, run_id="") as served:
        visitor = enter(folder)
        page = visitor.page
        run_id = served.starter.submit("gl-close", "2026-02").run_id
        gate = Gate()
        served.engine.during["10"] = gate
        served.engine.failing["40"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of fx match <b>EUR</b>"))
        visitor.open(f"/runs/{run_id}")
        expect(page.get_by_text("No worker has taken this run yet")).to_be_visible()

        driving = in_background(lambda: drive(served, run_id))
        assert gate.reached.wait(60)
        expect(page.locator('tr[data-step="10"][data-status="RUNNING"]')).to_be_visible()
        expect(page.locator('tr[data-step="9"]')).to_contain_text("34 changed")

        send(page, "Pause", "the bank is late")
        focused = page.locator("#run").get_by_role("link", name="Lineage")
        focused.focus()
        gate.opened.set()
        expect(page.locator("h1 .status")).to_have_text("paused")
        expect(focused).to_be_focused()
        driving.join(60)
        page.locator("#history summary").click()
        expect(page.locator("#history")).to_contain_text("the bank is late")

        send(page, "Resume", "here it is")
        expect(page.locator("h1 .status")).to_have_text("running")
        expect(page.locator("#history[open]")).to_be_visible()
        drive(served, run_id)
        expect(page.locator("h1 .status")).to_have_text("failed")
        failure = page.get_by_label("Why the run failed")
        expect(failure).to_contain_text("JoinNotUnique in step 40")
        expect(failure).to_contain_text("type: aggregate")
        assert page.locator("section b", has_text="EUR").count() == 0

        served.engine.failing.clear()
        send(page, "Retry step 40", "rates were put right")
        expect(page.locator("h1 .status")).to_have_text("running")
        drive(served, run_id)
        expect(page.locator("h1 .status")).to_have_text("completed")
        expect(page.locator('tr[data-step="40"]')).to_contain_text("attempt 2")
        assert visitor.complaints == []


def drive(served: Served, run_id: str) -> RunStatus | None:
    return served.starter.drive(run_id, threading.Event())


def test_a_page_that_misses_an_event_is_stale_until_it_has_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch, run_id="") as served:
        run_id = served.starter.submit("gl-close", MONTH).run_id
        gate = Gate()
        served.engine.during["10"] = gate
        driving = in_background(lambda: drive(served, run_id))
        assert gate.reached.wait(60)
        visitor = enter(folder)
        page = visitor.page
        held = list[Route]()

        def hold(route: Route) -> None:
            held.append(route)

        seen = served.state.stores.catalog.run(run_id).last_seq
        beyond = (
            f'id: {seen + 2}\nevent: run-event\ndata: {{"run_seq": {seen + 2}, "event_type": "StepCompleted", '
            '"step_id": "10", "event_data": {}, "emitted_at": "2026-01-01T00:00:00Z"}\n\n'
        )
        page.route(
            "**/events/stream**",
            lambda route: route.fulfill(status=200, content_type="text/event-stream", body=beyond),
            times=1,
        )
        visitor.open(f"/runs/{run_id}")
        page.route(f"**/runs/{run_id}/fragment", hold, times=1)
        expect(page.locator("#stale")).to_be_visible()
        expect(page.get_by_role("status").first).to_contain_text(f"event {seen + 1} is missing")
        gate.opened.set()
        driving.join(60)
        for route in held:
            route.continue_()
        expect(page.locator("h1 .status")).to_have_text("completed")
        expect(page.locator("#stale")).to_be_hidden()
        assert visitor.complaints == []


def test_a_page_whose_stream_is_refused_asks_again_and_shows_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch, run_id="") as served:
        run_id = served.starter.submit("gl-close", MONTH).run_id
        visitor = enter(folder)
        page = visitor.page
        page.route("**/events/stream**", lambda route: route.fulfill(status=502), times=1)
        visitor.open(f"/runs/{run_id}")
        with page.expect_response(lambda answer: "/events/stream" in answer.url and answer.ok):
            pass
        drive(served, run_id)
        expect(page.locator("h1 .status")).to_have_text("completed")
        expect(page.locator("#live")).to_have_text("")


def test_a_live_run_keeps_moving_and_so_do_the_list_of_runs_and_what_is_kept_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch, run_id="") as served:
        run_id = served.starter.submit("gl-close", MONTH).run_id
        gate = Gate()
        served.engine.during["10"] = gate
        driving = in_background(lambda: drive(served, run_id))
        assert gate.reached.wait(60)
        visitor = enter(folder)
        page = visitor.open(f"/runs/{run_id}")
        clock = page.locator("[data-ticks]")
        expect(clock).not_to_have_text(clock.inner_text())
        runs = page.context.new_page()
        runs.goto(f"{visitor.address}/runs")
        expect(runs.locator("tbody .status")).to_have_text("running")
        gate.opened.set()
        driving.join(60)
        expect(runs.locator("tbody .status")).to_have_text("completed", timeout=60_000)
        expect(page.locator("h1 .status")).to_have_text("completed")
        kept = page.get_by_role("region", name="Captures and jobs")
        expect(kept).to_contain_text("queued")
        [job] = served.state.captures.of_run(run_id)
        served.state.captures.drop(job.capture_id, CaptureOutcome(drop_reason="NOT_REACHED"))
        expect(kept).to_contain_text("the run ended before this step")
        assert visitor.complaints == []
