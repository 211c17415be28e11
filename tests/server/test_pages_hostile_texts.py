"""Every text that a user can write, in every page: it is shown, and it runs nothing."""

import html
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser

from clew.runs.signals import SignalType
from tests.server.hostile_site import COLUMN, HOSTILE, alive_in, hostile_site
from tests.server.pages_browser import server_process, visitor_of
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder: Path = tmp_path_factory.mktemp("hostile") / "w"
    with pytest.MonkeyPatch.context() as patch, hostile_site(folder, patch) as site:
        yield site


def paths(served: Served, failed: str) -> dict[str, dict[str, str]]:
    run = f"/runs/{served.run_id}"
    rows = served.workspace.find_run(served.run_id).open_trace()
    row = rows.search(None, limit=1).rows[0].row_id
    total = rows.search("total IS NOT NULL", limit=1).rows[0].row_id
    return {
        "/": {},
        "/runs": {"project": HOSTILE, "period": HOSTILE},
        run: {},
        f"/runs/{failed}": {},
        f"{run}/rows": {"where": f"`{COLUMN}` = 1 {HOSTILE}"},
        f"{run}/rows?": {"sort": COLUMN, "columns": COLUMN},
        f"{run}/rows/{row}": {},
        f"{run}/explain": {"row": row, "column": "note"},
        f"{run}/explain?": {"row": total, "column": "total"},
        f"{run}/why-not": {"where": "k = 2"},
        f"{run}/why-not?": {"where": HOSTILE},
        "/lineage": {},
        "/lineage?": {"run": served.run_id, "row": row, "column": "note"},
        "/projects": {},
        "/projects/p": {},
        "/projects/p?": {"old": "1", "new": "file"},
        "/datasets": {},
        "/datasets/main": {},
        "/operations": {},
        "/captures": {},
        f"/runs/{html.escape(HOSTILE)}": {},
        f"/projects/{HOSTILE.replace('/', '')}": {},
    }


def test_no_page_runs_what_a_user_wrote(hostile: tuple[Served, str]) -> None:
    served, failed = hostile
    client = served.browser()
    shown = 0
    for path, query in paths(served, failed).items():
        answer = as_page(client, path.rstrip("?"), query)
        assert answer.headers["content-type"].startswith("text/html"), path
        assert answer.status_code in {200, 404}, (path, answer.text)
        assert alive_in(answer.text) == [], path
        assert "62615533" not in answer.text, path
        shown += html.escape("<script>window.hacked") in answer.text
    assert shown > 12


def test_a_reason_and_a_name_in_the_history_run_nothing(hostile: tuple[Served, str]) -> None:
    served, failed = hostile
    served.workspace.find_run(failed).signal(SignalType.RETRY_STEP, step="20", reason=HOSTILE)
    served.starter.drive(failed, threading.Event())
    page = as_page(served.browser(), f"/runs/{failed}").text
    assert alive_in(page) == []
    assert html.escape("RETRY_STEP step 20") in page
    assert page.count("window.hacked") > 2


TURNED_AROUND = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    for (const { index } of text.data.matchAll(/\\b2026-\\d\\d\\b/g)) {
      const places = [0, 5].map((offset) => {
        const range = document.createRange();
        range.setStart(text, index + offset);
        range.setEnd(text, index + offset + 1);
        return range.getClientRects()[0];
      });
      const [year, month] = places;
      if (year && month && year.top === month.top && year.left > month.left) found.push(text.data);
    }
  }
  return found;
}"""
"""Periods whose month stands to the left of their year."""


def test_long_names_and_names_from_right_to_left_break_no_page(hostile: tuple[Served, str], chromium: Browser) -> None:
    served, failed = hostile
    with server_process(served.workspace.root) as link, closing(chromium.new_context()) as context:
        visitor = visitor_of(context, link)
        for width in (1400, 390):
            visitor.page.set_viewport_size({"width": width, "height": 900})
            for path, query in paths(served, failed).items():
                page = visitor.open(f"{path.rstrip('?')}?{urlencode(query)}")
                room = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert room <= 0, (path, width, room)
                assert page.evaluate(TURNED_AROUND) == [], (path, width)
                assert page.evaluate("window.hacked") is None, path


def test_a_downloaded_explanation_runs_nothing(hostile: tuple[Served, str]) -> None:
    served, _ = hostile
    client = served.browser()
    found = client.get(f"/runs/{served.run_id}/rows.json", params={"where": "k = 1"}).json()["rows"][0]["row_id"]
    answer = as_page(client, f"/runs/{served.run_id}/explain.html", {"row": found, "column": "note"})
    assert answer.headers["content-disposition"].startswith("attachment")
    assert [each for each in alive_in(answer.text) if not each.startswith("<style")] == []
