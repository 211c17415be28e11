"""The graph of runs: edges follow the versions and periods that were read, and what is left out is said."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from clew.api.workspace import open_workspace
from clew.runs.signals import SignalType
from clew.server.application import create_app
from tests.server.closed_months import CLOSED, MonthsEngine
from tests.server.pages_browser import server_process, visitor_of
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served, write_ledger

Edges = set[tuple[str, str]]


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """January is closed before March and reported after it; another 58 runs have written nothing."""
    folder: Path = write_ledger(tmp_path_factory.mktemp("months") / "ledger")
    engine = MonthsEngine(folder / ".clew" / "storage")
    with pytest.MonkeyPatch.context() as patch, open_workspace(folder).following_files() as workspace:
        patch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: engine)
        patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
        served = Served(workspace, create_app(workspace), "", engine)  # type: ignore[arg-type]
        engine.registry = served.state.datasets

        def ran(project: str, period: str) -> str:
            run_id = served.starter.submit(project, period).run_id
            served.finish(run_id)
            return run_id

        runs = {"January": ran("gl-close", "2026-01")}
        for _ in range(58):
            run_id = served.starter.submit("gl-close", "2026-02").run_id
            served.workspace.find_run(run_id).signal(SignalType.CANCEL)
            served.starter.drive(run_id, threading.Event())
        runs |= {"March": ran("gl-close", "2026-03"), "report": ran("group-report", "2026-01")}
        runs["late"] = ran("group-report", "2026-03")
        yield served, runs


def edges_of(served: Served, **query: str) -> tuple[dict[str, str], Edges]:
    graph = served.client("viewer").get("/lineage.json", params=query).json()
    subtitles = {node["title"]: node["subtitle"] for node in graph["nodes"]}
    titles = {node["key"]: node["title"] for node in graph["nodes"]}
    return subtitles, {(titles[edge["from"]], titles[edge["to"]]) for edge in graph["edges"]}


def test_a_report_of_january_hangs_on_the_close_of_january_though_march_made_the_version(
    months: tuple[Served, dict[str, str]],
) -> None:
    served, _ = months
    subtitles, edges = edges_of(served)
    assert ("Month close, 2026-01", f"{CLOSED} 2026-01") in edges
    assert (f"{CLOSED} 2026-01", "Group report, 2026-01") in edges
    assert (f"{CLOSED} 2026-03", "Group report, 2026-03") in edges
    assert (f"{CLOSED} 2026-03", "Group report, 2026-01") not in edges
    assert subtitles[f"{CLOSED} 2026-01"] == "added in v1, 1,569 rows"
    assert subtitles[f"{CLOSED} 2026-03"] == "added in v2, 1,502 rows"
    versions = served.client("viewer").get("/datasets/gl-closed.json").json()["versions"]
    assert versions[0]["rows"] == 1569 + 1502


def test_runs_that_are_left_out_are_said_and_those_that_were_read_are_not(
    months: tuple[Served, dict[str, str]],
) -> None:
    served, runs = months
    page = as_page(served.client("viewer"), "/lineage").text
    assert "The newest 60 of 62 runs" in page
    assert f"/runs/{runs['January']}" in page
    assert "of 62 runs" not in as_page(served.client("viewer"), "/lineage", {"project": "group-report"}).text


def test_the_graph_of_an_old_run_shows_what_was_made_of_it(months: tuple[Served, dict[str, str]]) -> None:
    served, runs = months
    _, edges = edges_of(served, focus=runs["January"])
    assert (f"{CLOSED} 2026-01", "Group report, 2026-01") in edges
    assert not any("2026-03" in title for edge in edges for title in edge)
    _, edges = edges_of(served, focus=runs["report"])
    assert ("Month close, 2026-01", f"{CLOSED} 2026-01") in edges
    assert not any("2026-03" in title for edge in edges for title in edge)


EDGES = """() => {
  const title = (number) => document.querySelector(`[data-box="${number}"] title`).textContent.trim();
  const name = (number) => title(number).split("\\n")[0];
  return [...document.querySelectorAll(".g-line")].map(({ dataset }) => [name(dataset.from), name(dataset.to)]);
}"""


def test_the_picture_in_the_browser_has_the_edges_of_what_was_read(
    months: tuple[Served, dict[str, str]], chromium: Browser
) -> None:
    served, _ = months
    with server_process(served.workspace.root) as link, closing(chromium.new_context()) as context:
        visitor = visitor_of(context, link)
        page = visitor.open("/lineage")
        drawn = page.evaluate(EDGES)
        into_january = {source for source, target in drawn if target == "Group report, 2026-01"}
        assert f"{CLOSED} 2026-01" in into_january
        assert f"{CLOSED} 2026-03" not in into_january
        assert ["Month close, 2026-01", f"{CLOSED} 2026-01"] in drawn
        expect(page.locator(".lead")).to_contain_text("The newest 60 of 62 runs")
        page.get_by_role("link", name="Show 250 runs").click()
        expect(page.locator(".lead")).not_to_contain_text("newest")
        assert visitor.complaints == []
