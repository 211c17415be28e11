"""One box for values, keys, ids and names: what is found, who may see it, and what was not looked at."""

from typing import Any

import pytest

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served


def found(served: Served, text: str, role: str = "auditor", tenant: str | None = None) -> dict[str, Any]:
    answer = served.client(role, tenant).get("/api/v1/search", params={"q": text})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def kinds(answer: dict[str, Any]) -> set[str]:
    return {hit["kind"] for hit in answer["hits"]}


def test_a_key_leads_to_the_history_of_its_row(shared: Served) -> None:
    answer = found(shared, "JE-00231/2")
    [hit] = answer["hits"]
    assert (hit["kind"], hit["name"], hit["run_id"]) == ("row", "JE-00231/2", shared.run_id)
    assert (answer["looked_at"], answer["not_looked_at"], answer["notes"]) == (1, 0, [])
    page = as_page(shared.client("auditor"), "/search", {"q": "JE-00231/2"}).text
    address = f"/runs/{shared.run_id}/rows/{hit['row_id']}"
    assert f'href="{address}"' in page
    assert "JE-00231/2" in as_page(shared.client("auditor"), address).text


def test_a_value_is_found_in_the_columns_that_have_it(shared: Served) -> None:
    amount = found(shared, "737,127.41")
    assert [(hit["name"], hit["columns"]) for hit in amount["hits"]] == [("2026-01/expense", ["total_usd"])]
    many = found(shared, "5290")
    assert {tuple(hit["columns"]) for hit in many["hits"]} == {("account_code",)}
    assert len(many["hits"]) == 5
    assert many["notes"] == ["gl-close 2026-01 has more such rows"]


def test_names_and_ids_are_found(shared: Served) -> None:
    assert {"project", "dataset"} <= kinds(found(shared, "gl-close")) | kinds(found(shared, "accounts"))
    columns = [(hit["name"], hit["detail"]) for hit in found(shared, "total_usd")["hits"]]
    assert ("total_usd", "set by the project gl-close") in columns
    assert [hit["run_id"] for hit in found(shared, shared.run_id[:8])["hits"] if hit["kind"] == "run"] == [
        shared.run_id
    ]
    row = found(shared, "JE-00231/2")["hits"][0]["row_id"]
    assert [(hit["kind"], hit["row_id"]) for hit in found(shared, row)["hits"]] == [("row", row)]
    assert kinds(found(shared, "2026-01")) == {"period"}
    assert kinds(found(shared, "123456789012345678")) == {"trace id"}


def test_a_text_that_looks_like_a_condition_is_only_a_text(shared: Served) -> None:
    for text in ('" OR TRUE OR "', "`", "x' --", "\\", "{{lines}}", "a/b"):
        assert found(shared, text)["hits"] == [], text
    client = shared.client("auditor")
    assert client.get("/api/v1/search", params={"q": " "}).status_code == 422
    assert client.get("/api/v1/search", params={"q": "x" * 201}).status_code == 422
    page = as_page(client, "/search", {"q": "<script>x</script>"}).text
    assert "<script>x" not in page
    assert "Nothing has this name or exactly this value" in page


def test_who_may_not_read_rows_gets_names_only(shared: Served) -> None:
    answer = found(shared, "JE-00231/2", role="viewer")
    assert (answer["hits"], answer["looked_at"]) == ([], 0)
    assert answer["notes"] == ["the role viewer may not read rows"]
    assert kinds(found(shared, "gl-close", role="viewer")) == {"project"}
    for text in ("JE-00231/2", "gl-close", shared.run_id[:8], "total_usd"):
        assert found(shared, text, role="admin", tenant="rivals")["hits"] == []


def test_what_a_search_has_read_is_on_record(served: Served) -> None:
    found(served, "JE-00231/2")
    [record] = served.client("auditor").get("/api/v1/audit", params={"subject_id": served.run_id}).json()["records"]
    assert (record["actor"], record["subject"]) == ("the auditor", "trace")
    assert "returned 1 row" in record["detail"]


def test_a_search_says_what_it_has_not_looked_at(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for period in ("2026-02", "2026-03"):
        served.finish(served.starter.submit("gl-close", period).run_id)
    monkeypatch.setattr("clew.api.searching._MOST_RUNS", 1)
    answer = found(served, "nothing has this")
    assert answer["looked_at"] + answer["not_looked_at"] == 3
    assert answer["not_looked_at"] >= 2
    assert "were not looked at" in as_page(served.client("auditor"), "/search", {"q": "nothing has this"}).text


def test_every_page_has_the_box(shared: Served) -> None:
    for path in ("/", "/runs", "/projects", "/search"):
        assert 'action="/search"' in as_page(shared.client("auditor"), path).text, path
