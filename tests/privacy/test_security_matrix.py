"""Who gets what answer where: all routes of the OpenAPI document and all pages, for every role, another tenant, another
environment, and without a token. The expected answers are in a golden file, which is reviewed when it changes.
"""

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.definitions.privacy import RoleName
from tests.privacy.addresses import Request, Route, api_routes, page_routes, values_of
from tests.privacy.clinic import Clinic, leaked, opened_clinic

ENDS_A_SESSION = {"/logout"}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic of its own: requests that start runs and send signals are sent too."""
    with opened_clinic(tmp_path_factory.mktemp("matrix") / "clinic") as found:
        yield found


def callers(clinic: Clinic) -> dict[str, TestClient]:
    served = clinic.served
    elsewhere = served.client()
    token = open_workspace(clinic.folder, "other").tokens.create("other", role=AccessRole.ADMIN, days=1)
    elsewhere.headers["Authorization"] = f"Bearer {token.text}"
    return {
        "nobody": served.client(),
        **{role.value: served.client(role.value) for role in RoleName},
        "rival": served.client("admin", tenant="rivals"),
        "elsewhere": elsewhere,
    }


def request_of(clinic: Clinic, route: Route) -> Request:
    """A request that would be answered if its sender had the right to it."""
    values = values_of(clinic)
    given = {name: values[name][0] for name in route.parameters}
    query: dict[str, str] = {}
    if "explain" in route.pattern:
        query = {"row": clinic.care_rows[0], "column": "cost"}
    elif "why-not" in route.pattern:
        query = {"where": "cost > 0"}
    elif "/compare" in route.pattern:
        query = {"other": clinic.care}
    elif "/why-changed" in route.pattern:
        query = {"other": clinic.care, "column": "cost"}
    elif "/what-if" in route.pattern:
        query = {"set": "patients: cost = 1"}
    elif "/sensitivity" in route.pattern or "/values" in route.pattern:
        query = {"column": "cost"}
    elif "/search" in route.pattern:
        query = {"q": "cost"}
    return Request(route, route.path(given), query)


def test_every_answer_is_as_reviewed(changed: Clinic, golden: Callable[[str, str], None]) -> None:
    asking = callers(changed)
    lines = [" ".join(["request", *asking])]
    for route in (*api_routes(changed), *page_routes(changed)):
        if route.pattern in ENDS_A_SESSION:
            continue
        request = request_of(changed, route)
        codes = list[str]()
        for name, client in asking.items():
            answer = request.send(client)
            assert answer.status_code < 500, (name, request, answer.text)
            codes.append(str(answer.status_code))
            if name in {"nobody", "rival", "elsewhere"}:
                assert leaked(answer.text, "public", "personal", "secret") == [], (name, request)
                assert answer.status_code >= 400 or changed.care not in answer.text, (name, request)
        lines.append(" ".join([f"{route.method}:{route.pattern}", *codes]))
    golden("security/matrix.txt", "\n".join(lines) + "\n")


REFUSED = [
    ("trace/rows", {"where": 'name = "x"'}),
    ("trace/rows", {"where": "cost > 0 AND ISNULL(SSN)"}),
    ("trace/rows", {"where": "LEN(greeting) > 3"}),
    ("trace/rows", {"where": "patients.risk IS NULL"}),
    ("trace/rows", {"where": 'IF(region = "x", TRUE, FALSE)'}),
    ("trace/rows", {"sort": "salary"}),
    ("trace/rows", {"sort": "ssn"}),
    ("why-not", {"where": 'diagnosis = "x"'}),
    ("why-not", {"where": "`ssn` = `code`"}),
    ("explain", {"where": 'name = "x"', "column": "cost"}),
]


@pytest.mark.parametrize(("path", "query"), REFUSED)
@pytest.mark.parametrize("role", ["operator", "auditor", "engineer"])
def test_questions_by_columns_that_one_may_not_see_are_refused(
    clinic: Clinic, role: str, path: str, query: dict[str, str]
) -> None:
    answer = clinic.served.client(role).get(f"/api/v1/runs/{clinic.care}/{path}", params=query)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "ColumnNotVisible")
    assert role in error["message"]
    assert error["hint"]
    if "where" in query:
        assert (error["file"], error["line"]) == ("<where>", 1)


@pytest.mark.parametrize("question", ["rows", "records", "steps/40", "rows/{row}", "rows/{row}/at/40"])
def test_an_answer_that_a_browser_keeps_is_not_kept_for_another_role(clinic: Clinic, question: str) -> None:
    path = f"/api/v1/runs/{clinic.care}/trace/{question.format(row=clinic.care_rows[0])}"
    tag = clinic.served.client("admin").get(path).headers["etag"]
    operator = clinic.served.client("operator").get(path, headers={"If-None-Match": tag})
    assert operator.status_code == 200
    again = clinic.served.client("auditor").get(path, headers={"If-None-Match": operator.headers["etag"]})
    assert again.status_code == 304  # the same sight, the same answer


def test_the_access_log_keeps_no_value_of_a_restricted_column(clinic: Clinic) -> None:
    admin = clinic.served.client("admin")
    run = f"/api/v1/runs/{clinic.care}"
    for path, query in (("trace/rows", "where"), ("why-not", "where")):
        admin.get(f"{run}/{path}", params={query: 'name = "Only Me" AND cost > 17'})
    admin.get(f"/runs/{clinic.care}/rows", params={"where": 'name = "Only Me"'})
    admin.get(f"{run}/trace/rows", params={"where": "cost > 4711"})
    log = clinic.served.client("auditor").get("/api/v1/audit", params={"limit": 500}).text
    assert "name = … AND cost > …" in log
    assert "Only Me" not in log
    assert "cost > 4711" in log
