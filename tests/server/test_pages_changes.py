"""Pages about what changed, what would, and what was before: what can be asked there, and what they show."""

import json
import threading
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from clew.api.starting import RunStarter
from clew.api.workspace import open_workspace
from clew.events.snapshot import RunStatus
from clew.server.application import create_app
from tests.server.pages_requests import as_page
from tests.server.server_engine import TracingEngine
from tests.server.server_fixtures import MONTH, Served
from tests.trace.interpreted_shop import CLOSE, interpreted_shop


def run_of(served: Served) -> str:
    return f"/runs/{served.run_id}"


def test_what_if_takes_several_suppositions_a_condition_and_an_output(shared: Served) -> None:
    lines = [
        'journal-lines where journal_id = "JE-00001": amount_local = 0',
        'journal-lines where journal_id = "JE-00002": amount_local = 0',
    ]
    query = {"set": lines, "where": "amount_usd <> 0", "output": "60"}
    client = shared.client("auditor")
    document = client.get(f"{run_of(shared)}/what-if.json", params=query).json()
    assert document["supposed"] == lines
    assert document["at"]["seq"] == 60
    page = client.get(f"{run_of(shared)}/what-if", params=query, headers={"Accept": "text/html"}).text
    assert page.count('name="set"') == 3  # those that were asked, and an empty one
    assert "would change, " in page
    wrong = as_page(client, f"{run_of(shared)}/what-if", {"parameter": "nothing=1"}).text
    assert "UnknownParameter" in wrong


def test_what_a_total_hangs_on_is_a_question_of_the_same_page(shared: Served) -> None:
    client = shared.client("auditor")
    asked = {"sensitivity": "amount_usd", "output": "60"}
    document = client.get(f"{run_of(shared)}/what-if.json", params=asked).json()
    page = as_page(client, f"{run_of(shared)}/what-if", asked).text
    assert f"{document['tried']} values tried, each one percent larger" in page
    assert "Total moves by" in page
    assert f"{document['effects'][0]['dataset']}.{document['effects'][0]['column']}" in page
    assert "InvalidComparison" in as_page(client, f"{run_of(shared)}/what-if", {"sensitivity": "currency"}).text


def test_causes_can_be_taken_one_after_the_other(shared: Served) -> None:
    asked = {"other": shared.run_id, "column": "amount_usd", "mode": "sequential", "output": "60"}
    client = shared.client("auditor")
    assert client.get(f"{run_of(shared)}/why-changed.json", params=asked).json()["mode"] == "sequential"
    page = as_page(client, f"{run_of(shared)}/why-changed", asked).text
    assert '<option value="sequential" selected>' in page


def test_what_an_edited_file_would_move_is_seen_before_it_is_activated(served: Served) -> None:
    client = served.browser()
    impact = f'href="{run_of(served)}/impact"'
    assert impact not in as_page(client, "/projects/gl-close").text
    file = served.workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace('"5290"', '"5291"'), encoding="utf-8")
    served.read_files()
    assert as_page(client, "/projects/gl-close").text.count(impact) == 2  # on the page, and where it asks for certainty
    page = as_page(client, f"{run_of(served)}/impact").text
    document = client.get(f"{run_of(served)}/impact.json").json()
    assert "5291" in page
    assert [each["fate"] for each in document["steps"]].count("changed") == 1
    assert all(output["name"] in page for output in document["outputs"])


def test_an_explanation_tells_earlier_values_if_asked(shared: Served) -> None:
    client = shared.client("auditor")
    found = client.get(f"/api/v1{run_of(shared)}/trace/rows", params={"where": 'journal_id = "JE-00001"'}).json()[
        "rows"
    ][0]
    asked = {"row": found["row_id"], "column": "amount_usd"}
    page = as_page(client, f"{run_of(shared)}/explain", asked).text
    assert "restated=true" in page
    assert "not restated" not in page
    restated = {**asked, "restated": "true"}
    assert "not restated: no earlier run" in as_page(client, f"{run_of(shared)}/explain", restated).text
    document = client.get(f"/api/v1{run_of(shared)}/explain", params=restated)
    assert document.json()["restated"]["is_restated"] is False
    assert document.headers["cache-control"] == "no-store"


def test_each_bar_of_a_waterfall_leads_to_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """January against February with another expression: the operation, and the rows that came and went."""
    shop = interpreted_shop(tmp_path, monkeypatch)
    shop.project("close", *CLOSE, status="draft")
    before = shop.run("close", "2026-01").record.run_id
    shop.project("close", *json.loads(json.dumps(CLOSE).replace("amount * r.rate", "amount * r.rate + 1")))
    after = shop.run("close", "2026-02").record.run_id
    with open_workspace(shop.root).following_files() as workspace:
        client = Served(workspace, create_app(workspace), before, TracingEngine(shop.storage)).client("auditor")
        asked = {"other": after, "column": "usd"}
        document = client.get(f"/runs/{before}/why-changed.json", params=asked).json()
        page = unescape(as_page(client, f"/runs/{before}/why-changed", asked).text)
        causes = {cause["title"]: cause for cause in document["causes"]}
        [operation] = [cause for cause in document["causes"] if cause["kind"] == "code"]
        assert (operation["seq_a"], operation["seq_b"]) == (10, 10)
        leads = {
            f"/runs/{before}/compare?other={after}&at=10": "After step 10 ",
            f"/runs/{before}/compare?other={after}&at=0": "As loaded: ",
        }
        for address, told in leads.items():
            assert f'href="{address}"' in page
            assert told in unescape(as_page(client, address).text)
        file = client.get(f"/api/v1/runs/{before}/download/compare", params={"other": after, "at": 0})
        assert file.status_code == 200
        assert len([line for line in file.text.splitlines() if ",amount," in line]) == 14
        for what, run, other in (("added", after, "row_a"), ("removed", before, "row_b")):
            rows = causes[f"7 rows of orders {what}"]["rows"]
            mine = "row_b" if what == "added" else "row_a"
            assert [row[other] for row in rows] == [None] * 7
            for row in rows:
                address = f"/runs/{run}/rows/{row[mine]}"
                assert f'href="{address}"' in page
                assert str(row["key"]["id"]) in as_page(client, address).text


def test_a_run_is_not_compared_with_one_of_another_tenant(served: Served) -> None:
    """It is there, of the same project, on the same state store."""
    settings = replace(served.environment.settings, tenant="rivals")
    environment = replace(served.environment, settings=settings)
    starter = RunStarter(served.workspace.files, environment, served.state)
    theirs = starter.submit("gl-close", MONTH).run_id
    assert starter.drive(theirs, threading.Event()) in {RunStatus.COMPLETED, RunStatus.FAILED}  # it has ended
    rival = served.client("admin", tenant="rivals")
    assert [run["run_id"] for run in rival.get("/api/v1/runs").json()["runs"]] == [theirs]
    client = served.client("admin")
    column = {"other": theirs, "column": "amount_usd"}
    for path, query in {
        f"/api/v1{run_of(served)}/compare": {"other": theirs},
        f"/api/v1{run_of(served)}/download/compare": {"other": theirs},
        f"/api/v1{run_of(served)}/why-changed": column,
        f"{run_of(served)}/compare.json": {"other": theirs},
        f"{run_of(served)}/why-changed.json": column,
    }.items():
        for other in (theirs, theirs[:13]):
            answer = client.get(path, params={**query, "other": other})
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RunNotFound"), path
    assert theirs not in as_page(client, f"{run_of(served)}/compare").text
