"""The start page: which periods of which projects are closed, current and tie."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import open_workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.events.snapshot import RunStatus
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import MONTH, Served

NEXT = "2026-02"


def cell_of(served: Served, project: str, period: str, role: str = "viewer") -> dict[str, Any]:
    found = served.client(role).get("/api/v1/overview").json()
    [line] = [each for each in found["projects"] if each["project"] == project]
    [cell] = [each for each in line["periods"] if each["period"] == period]
    return dict(cell)


def the_matrix(text: str) -> dict[str, str]:
    """The links of the page, by what a screen reader says about them."""
    return {label: address for address, label in re.findall(r'<td[^>]*><a href="([^"]+)" aria-label="([^"]+)"', text)}


def test_the_start_page_leads_to_the_run_that_counts_in_one_click(shared: Served) -> None:
    page = as_page(shared.client("viewer"), "/")
    assert page.status_code == 200
    assert "<b>The one result is current and ties.</b>" in page.text
    assert "each number in a result leads back" in page.text
    assert the_matrix(page.text) == {"gl-close 2026-01: current, ties": f"/runs/{shared.run_id}"}
    assert cell_of(shared, "group-report", MONTH)["standing"] == "never"


def test_the_page_as_json_is_what_the_api_and_python_tell(shared: Served) -> None:
    client = shared.client("viewer")
    told = client.get("/api/v1/overview").json()
    assert told == client.get("/overview.json").json() == client.get("/", headers={"Accept": "application/json"}).json()
    assert told == shared.workspace.overview().to_json()
    assert 'href="/overview.json"' in as_page(client, "/").text


def test_a_newer_run_that_fails_does_not_take_the_result_away(served: Served) -> None:
    served.engine.failing["20"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="two rates"))
    failed = served.starter.submit("gl-close", MONTH)
    assert served.starter.drive(failed.run_id, threading.Event()) is RunStatus.FAILED
    cell = cell_of(served, "gl-close", MONTH)
    assert (cell["standing"], cell["newest_run"], cell["runs"]) == ("failed", failed.run_id, 2)
    assert cell["result"]["run_id"] == served.run_id
    text = as_page(served.client("viewer"), "/").text
    assert the_matrix(text)["gl-close 2026-01: failed, an earlier result counts"] == f"/runs/{failed.run_id}"
    assert "Needs a look" in text


def test_a_run_that_waits_or_was_never_asked_for_has_no_result(served: Served) -> None:
    waiting = served.starter.submit("gl-close", "2026-03")
    cells = {period: cell_of(served, "gl-close", period) for period in ("2026-03", NEXT, MONTH)}
    assert [cell["standing"] for cell in cells.values()] == ["running", "never", "current"]
    text = as_page(served.client("viewer"), "/").text
    assert the_matrix(text)["gl-close 2026-03: waiting"] == f"/runs/{waiting.run_id}"
    assert text.index(">2026-03<") < text.index(">2026-02<") < text.index(">2026-01<")


def test_an_edited_project_makes_its_results_stale(served: Served) -> None:
    file = served.workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace('"5290"', '"5291"'), encoding="utf-8")
    served.read_files()
    cell = cell_of(served, "gl-close", MONTH)
    assert cell["standing"] == "stale"
    assert cell["reasons"] == [
        {
            "kind": "project",
            "subject": "gl-close",
            "text": "the project was edited after version 1 was activated",
        }
    ]
    served.workspace.projects.activate("gl-close")
    [reason] = cell_of(served, "gl-close", MONTH)["reasons"]
    assert reason["text"] == "version 2 is active, and the run used version 1"
    again = served.starter.submit("gl-close", MONTH)
    served.finish(again.run_id)
    cell = cell_of(served, "gl-close", MONTH)
    assert (cell["standing"], cell["result"]["run_id"], cell["superseded_runs"]) == ("current", again.run_id, 1)


def test_pages_of_periods_lead_to_each_other(served: Served) -> None:
    for period in ("2026-02", "2026-03", "2026-05"):
        served.starter.submit("gl-close", period)
    client = served.client("viewer")
    newest = client.get("/api/v1/overview", params={"periods": 2}).json()
    assert (newest["periods"], newest["newer"], newest["older"]) == (["2026-05", "2026-04"], None, "2026-03")
    before = client.get("/api/v1/overview", params={"periods": 2, "until": newest["older"]}).json()
    assert (before["periods"], before["newer"], before["older"]) == (["2026-03", "2026-02"], "2026-05", "2026-01")
    assert 'href="/overview?level=month&amp;until=2026-03&amp;periods=2"' in as_page(client, "/", {"periods": 2}).text
    refused = client.get("/api/v1/overview", params={"until": "2031-01"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "UnknownPeriod")
    refused = client.get("/api/v1/overview", params={"level": "week"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "InvalidRequest")


def test_somebody_of_another_tenant_sees_an_empty_start_page(shared: Served) -> None:
    page = as_page(shared.client("admin", tenant="rivals"), "/")
    assert page.status_code == 200
    assert "gl-close" not in page.text
    assert "No runs yet" in page.text


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that the drivers of this process ask SQLite from here on."""
    statements, connect = list[str](), sqlite3.connect

    def traced(*values: object, **named: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*values, **named)  # type: ignore[call-overload]
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr("sqlite3.dbapi2.connect", traced)
    monkeypatch.setattr("sqlite3.connect", traced)
    return statements


def _asked_for_an_overview(folder: Path, asked: list[str]) -> Iterator[str]:
    with open_workspace(folder) as workspace:
        workspace.overview()
        asked.clear()
        found = workspace.overview()
        assert any(project.cells for project in found.projects)
        yield from (each for each in asked if each.split()[0].upper() == "SELECT")


def test_ten_thousand_runs_take_as_many_statements_as_one(ledger: Path, asked: list[str]) -> None:
    few = list(_asked_for_an_overview(ledger, asked))
    assert 0 < len(few) < 12
    with sqlite3.connect(ledger / ".clew" / "state.db") as connection:
        connection.row_factory = sqlite3.Row
        [row] = connection.execute("SELECT * FROM runs").fetchall()
        names = row.keys()
        copies = []
        for number in range(10_000):
            told = f"{number:05}"
            changed = {
                **dict(row),
                "run_id": f"copy-{told}",
                "request_id": told,
                "request_key": told,
                "slot_held": None,
                "period": f"2026-{number % 12 + 1:02}",
                "created_at": f"2025-01-01T00:00:00.0{told}+00:00",
                "completed_at": f"2025-01-01T00:00:00.0{told}+00:00",
            }
            copies.append([changed[name] for name in names])
        [(known,)] = connection.execute("SELECT document FROM snapshots").fetchall()
        copied = [(f"copy-{number:05}", row["last_seq"], known) for number in range(10_000)]
        connection.executemany("INSERT INTO snapshots (run_id, last_event_seq, document) VALUES (?, ?, ?)", copied)
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", copies)
    many = list(_asked_for_an_overview(ledger, asked))
    assert len(many) == len(few)
    with open_workspace(ledger) as workspace:
        found = workspace.overview()
    assert found.runs == 10_001
    [close] = [each for each in found.projects if each.project == "gl-close"]
    assert len(close.cells) == 12
    assert close.cells[-1].tries == 835
