"""Every route that returns values of rows leaves a record with the columns and the number of rows that it returned."""

import re
from dataclasses import dataclass, field

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from clew.auth.roles import Permission
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served
from tests.server.test_server_access import GUARDED, ROUTES, Called, _permissions, _routes
from tests.server.test_server_captures import capture

WITHOUT_ROWS = {
    "/api/v1/runs/{run}/checks/rows": "nothing for a run without checks; tests of checks ask for failing rows",
    "/api/v1/runs/{run}/quarantine": "nothing for a run whose rows all entered; test_quarantine_runs asks another",
    "/runs/{run}/quarantine": "the same",
    "/runs/{run}/quarantine.json": "the same",
    "/runs/{run}/condition": "what a condition lacks while it is typed",
    "/captures": "a list of captures",
    "/captures.json": "the same",
    "/api/v1/captures": "the same",
    "/api/v1/runs/{run}/trace": "counts",
    "/lineage": "runs and datasets, unless it is asked about a row",
    "/lineage.json": "the same",
}
"""Routes that need the right to read rows or captures, or a place for a question, and give none by themselves."""

WHERE = 'journal_id = "JE-00001"'
ONE, RUN = "{row}", "{run}"
TWICE = ("diff", "compare", "why-changed")
"""Questions about two things. Runs are compared with themselves here, so that no row differs."""
QUESTIONS: dict[str, dict[str, str]] = {
    "/api/v1/runs/{run}/trace/rows": {"where": WHERE},
    "/api/v1/runs/{run}/trace/rows/{row}": {},
    "/api/v1/runs/{run}/trace/rows/{row}/at/{seq}": {},
    "/api/v1/runs/{run}/trace/steps/{seq}": {"limit": "7"},
    "/api/v1/runs/{run}/trace/records": {"step": "10", "limit": "7"},
    "/api/v1/runs/{run}/explain": {"row": ONE, "column": "amount_usd"},
    "/api/v1/runs/{run}/why-not": {"where": WHERE},
    "/api/v1/runs/{run}/reconciliation": {},
    "/api/v1/runs/{run}/evidence": {"row": ONE, "column": "amount_usd"},
    "/api/v1/lineage/{trace_id}": {},
    "/api/v1/captures/{capture}": {},
    "/api/v1/captures/{capture}/rows": {"limit": "7"},
    "/api/v1/captures/{capture}/diff/{other}": {},
    "/api/v1/captures/{capture}/report": {},
    "/api/v1/captures/{capture}/download": {"format": "csv"},
    "/runs/{run}/rows": {"where": WHERE},
    "/runs/{run}/rows/{row}": {"at": "10"},
    "/runs/{run}/values": {"column": "currency", "where": WHERE},
    "/runs/{run}/outputs/{output}": {},
    "/runs/{run}/explain": {"row": ONE, "column": "amount_usd"},
    "/runs/{run}/explain/rows": {"row": ONE, "column": "amount_usd"},
    "/runs/{run}/explain.html": {"row": ONE, "column": "amount_usd"},
    "/runs/{run}/evidence.zip": {"row": ONE, "column": "amount_usd"},
    "/runs/{run}/why-not": {"where": WHERE},
    "/runs/{run}/reconciliation": {},
    "/captures/{capture}": {},
    "/api/v1/runs/{run}/compare": {"other": RUN},
    "/api/v1/runs/{run}/why-changed": {"other": RUN, "column": "amount_usd"},
    "/api/v1/runs/{run}/what-if": {"drop": f"journal-lines where {WHERE}"},
    "/api/v1/runs/{run}/sensitivity": {"column": "amount_usd"},
    "/api/v1/runs/{run}/impact": {},
    "/runs/{run}/impact": {},
    "/api/v1/runs/{run}/download/rows": {"where": WHERE, "format": "csv"},
    "/api/v1/runs/{run}/download/compare": {"other": RUN, "format": "csv"},
    "/runs/{run}/compare": {"other": RUN},
    "/runs/{run}/why-changed": {"other": RUN, "column": "amount_usd"},
    "/runs/{run}/what-if": {"drop": f"journal-lines where {WHERE}"},
}
"""What each of the others is asked."""


@dataclass
class Asked:
    """A site with a row and two captures to ask about."""

    served: Served
    values: dict[str, str] = field(default_factory=dict)

    def call(self, pattern: str, query: dict[str, str]) -> Response:
        path = re.sub(r"\{(\w+)\}", lambda found: self.values[found[1]], pattern)
        asked = {
            name: value.replace(ONE, self.values["row"]).replace(RUN, self.values["run"])
            for name, value in query.items()
        }
        client = self.served.client("engineer")
        return client.get(path, params=asked) if path.startswith("/api/") else as_page(client, path, asked)

    def records(self) -> list[tuple[str, str, str]]:
        """Subject, what it is about, and the detail of all reads, the oldest first."""
        found = self.served.client("admin").get("/api/v1/audit", params={"limit": 1000}).json()["records"]
        reads = [each for each in reversed(found) if each["subject"] != "token"]
        return [(each["subject"], each["subject_id"], each["detail"]) for each in reads]


@pytest.fixture(scope="module")
def asked(shared: Served) -> Asked:
    client: TestClient = shared.client("auditor")
    found = client.get(f"/api/v1/runs/{shared.run_id}/trace/rows", params={"where": WHERE}).json()["rows"][0]
    row = found["row_id"]
    history = client.get(f"/api/v1/runs/{shared.run_id}/trace/rows/{row}").json()
    values = {
        "run": shared.run_id,
        "row": row,
        "seq": "10",
        "output": "60",
        "trace_id": str(history.get("trace_id") or 1),
    }
    return Asked(shared, {**values, "capture": capture(shared, 10, 20), "other": capture(shared, 11, 20, slot="two")})


def _reads_rows(served: Served, called: Called) -> bool:
    return bool({Permission.READ_ROWS, Permission.READ_CAPTURES} & set(_permissions(dict(_routes(served.app))[called])))


def test_every_route_that_may_return_rows_is_asked(shared: Served) -> None:
    """A new route is added to one of the two lists above."""
    guarded = {called[1] for called in GUARDED if _reads_rows(shared, called)}
    assert {path.removesuffix(".json") for path in guarded} - set(WITHOUT_ROWS) == set(QUESTIONS)


@pytest.mark.parametrize("pattern", QUESTIONS)
def test_rows_that_are_returned_are_on_record_with_their_columns_and_number(asked: Asked, pattern: str) -> None:
    before = len(asked.records())
    answer = asked.call(pattern, QUESTIONS[pattern])
    records = asked.records()[before:]
    if pattern == "/api/v1/lineage/{trace_id}" and answer.status_code == 404:
        assert [each[2] for each in records] == ["up; returned nothing"]
        return
    assert answer.status_code == 200, answer.text
    assert len(records) == (2 if any(word in pattern for word in TWICE) else 1), records
    for subject, subject_id, detail in records:
        assert subject_id in {asked.values["run"], asked.values["capture"], asked.values["other"]}
        said = re.search(r"; returned ([\d,]+) rows?( of (.+))?$", detail)
        assert said, (subject, detail)
        assert said[3], "the columns are missing"
        has_rows = (
            not any(word in pattern for word in ("reconciliation", "report", "impact", *TWICE[1:]))
            and detail[:10] != "statistics"
        )
        assert (int(said[1].replace(",", "")) > 0) is has_rows


@pytest.mark.parametrize("pattern", [each for each in QUESTIONS if ("GET", f"{each}.json") in ROUTES])
def test_documents_of_pages_are_on_record_like_pages(asked: Asked, pattern: str) -> None:
    before = len(asked.records())
    assert asked.call(f"{pattern}.json", QUESTIONS[pattern]).status_code == 200
    records = asked.records()[before:]
    assert len(records) == (2 if any(word in pattern for word in TWICE) else 1)
    for _, _, detail in records:
        assert re.search(r"; returned [\d,]+ rows? of ", detail)


def test_the_number_is_that_of_the_answer(asked: Asked) -> None:
    for limit in ("1", "3"):
        rows = asked.call("/api/v1/runs/{run}/trace/rows", {"limit": limit}).json()["rows"]
        assert f"; returned {len(rows)} row" in asked.records()[-1][2]
        assert len(rows) == int(limit)
    step = asked.call("/api/v1/runs/{run}/trace/steps/{seq}", {"limit": "4"}).json()["rows"]
    assert f"; returned {len(step)} rows of " in asked.records()[-1][2]


def test_a_value_in_the_graph_of_lineage_is_on_record(asked: Asked) -> None:
    query = {"run": asked.values["run"], "row": ONE, "column": "amount_usd"}
    before = len(asked.records())
    assert asked.call("/lineage", query).status_code == 200
    [(subject, _, detail)] = asked.records()[before:]
    assert subject == "lineage"
    assert re.search(r"; returned \d+ rows? of amount_usd", detail)


def test_a_question_that_fails_and_a_copy_that_is_still_good_are_on_record(asked: Asked) -> None:
    path = f"/api/v1/runs/{asked.values['run']}/trace/rows"
    client = asked.served.client("engineer")
    tag = client.get(path, params={"where": WHERE}).headers["etag"]
    before = len(asked.records())
    assert client.get(path, params={"where": WHERE}, headers={"If-None-Match": tag}).status_code == 304
    assert client.get(f"{path}/no-such-row").status_code == 404
    assert [each[2] for each in asked.records()[before:]] == [
        f"where {WHERE}; returned nothing",
        "row no-such-row; returned 0 rows",
    ]


def test_a_padded_condition_is_recorded_whole(asked: Asked) -> None:
    where = f"{'amount_usd = amount_usd AND ' * 300}amount_usd > 4711"
    asked.call("/runs/{run}/rows", {"where": where})
    assert "amount_usd > 4711; returned " in asked.records()[-1][2]
