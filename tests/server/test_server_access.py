"""Who may call what: every route that there is, without a token, as a viewer, as a caller of another tenant."""

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext, iter_route_contexts
from fastapi.testclient import TestClient
from httpx2 import Response
from starlette.routing import Mount

from clew.auth.roles import AccessRole, Permission
from clew.server.access.visit import May, MayAsk
from clew.server.application import create_app
from tests.server.server_fixtures import Served

PUBLIC = {
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/ready"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/login/link"),
    ("GET", "/login/oidc"),
    ("GET", "/login/oidc/callback"),
    ("GET", "/logout/oidc"),
}
"""What anybody may ask for, and nothing else."""
BY_SESSION_ALONE = {("POST", "/logout")}
SECRETS = ("gl-close", "JE-0", "journal_lines", "Convert to USD")
"""What belongs to the tenant of the workspace and may not be seen by others."""
QUERIES = {"where": "amount_usd > 0", "key": "x"}
EXPLAINED = {"row": "no-row", "column": "amount_usd"}
BODIES = {
    "/api/v1/nodes": {"host": "h", "process_id": 1, "start_time_ms": 1},
    "/api/v1/nodes/{node}/keepalive": {"term": 1},
    "/api/v1/nodes/{node}/release": {"term": 1, "used_until_ms": 1},
    "/api/v1/runs": {"project": "gl-close", "period": "2026-01", "request_id": "access"},
    "/api/v1/runs/{run}/signals": {"signal": "PAUSE"},
    "/api/v1/runs/{run}/rerun": {"request_id": "rerun"},
}
FORMS = {
    "/runs/{run}/rerun": {"request_id": "rerun page"},
    "/projects/{project}/runs": {"period": "2026-01", "request_id": "access"},
    "/projects/{project}/activate": {"seen": "another file"},
    "/projects/{project}/deactivate": {"seen": "7"},
}

Called = tuple[str, str]
"""A method and the pattern of an address."""


def _routes(app: FastAPI) -> Iterator[tuple[Called, RouteContext]]:
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, Mount):
            assert route.path == "/static", "what is mounted is reached without any check"
            continue
        for method in sorted(route.methods or ()):
            if method != "HEAD":
                assert route.path is not None
                yield (method, route.path), route


def _all() -> list[Called]:
    """Collected without a site: an application has the same routes on any."""
    return [called for called, _ in _routes(create_app(_NoSite()))]  # type: ignore[arg-type]


class _NoSite:
    """Enough of a site to build an application that is never called."""

    def __getattr__(self, name: str) -> "_NoSite":
        return self


ROUTES = _all()
GUARDED = [called for called in ROUTES if called not in PUBLIC]
assert len(GUARDED) > 30, "the routes of the application were not found"


def _permissions(route: RouteContext) -> list[Permission]:
    def below(dependant: Dependant) -> Iterator[Permission]:
        if isinstance(dependant.call, May | MayAsk):
            yield dependant.call.permission
        for each in dependant.dependencies:
            yield from below(each)

    return list(below(route.dependant)) if route.dependant is not None else []


def _permission(served: Served, called: Called) -> Permission:
    [permission] = _permissions(dict(_routes(served.app))[called])
    return permission


def _call(client: TestClient, served: Served, called: Called) -> Response:
    method, pattern = called
    values = {
        "run": served.run_id,
        "run_id": served.run_id,
        "row": "no-row",
        "row_id": "no-row",
        "seq": "10",
        "step": "10",
        "output": "60",
        "project": "gl-close",
        "version": "1",
        "node": "7",
        "digest": "0" * 64,
        "dataset": "accounts",
        "trace_id": "1",
    }
    path = re.sub(r"\{(\w+)(:\w+)?\}", lambda found: values.get(found[1], "x"), pattern)
    asked = EXPLAINED if "explain" in pattern else QUERIES
    if pattern.endswith(("/compare", "/why-changed")):
        asked = {"other": served.run_id, "column": "amount_usd"}
    elif "/search" in pattern:
        asked = {"q": "amount_usd"}
    elif pattern.endswith(("/sensitivity", "/values", "/values.json")):
        asked = {"column": "amount_usd"}
    elif pattern.endswith("/checks/rows"):
        asked = {"name": "none"}
    return client.request(method, path, params=asked, json=BODIES.get(pattern), data=FORMS.get(pattern))


def test_every_route_asks_for_exactly_one_permission(shared: Served) -> None:
    for called, route in _routes(shared.app):
        if called not in PUBLIC | BY_SESSION_ALONE:
            assert len(_permissions(route)) == 1, called


@pytest.mark.parametrize("called", GUARDED, ids=" ".join)
def test_nobody_gets_in_without_a_token(shared: Served, called: Called) -> None:
    answer = _call(shared.client(), shared, called)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "NotSignedIn"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("called", [each for each in GUARDED if each not in BY_SESSION_ALONE], ids=" ".join)
def test_a_viewer_gets_what_viewers_may_see_and_nothing_else(shared: Served, called: Called) -> None:
    answer = _call(shared.client("viewer"), shared, called)
    if _permission(shared, called) in AccessRole.VIEWER.permissions:
        assert answer.status_code not in {401, 403}
        assert answer.status_code < 500
    else:
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Forbidden")


@pytest.mark.parametrize("called", [each for each in GUARDED if each not in BY_SESSION_ALONE], ids=" ".join)
def test_somebody_of_another_tenant_sees_nothing_of_this_one(shared: Served, called: Called) -> None:
    answer = _call(shared.client("admin", tenant="rivals"), shared, called)
    assert answer.status_code < 500
    if answer.status_code < 400:
        assert shared.run_id not in answer.text
        assert not [secret for secret in SECRETS if secret in answer.text]
    else:
        assert answer.status_code in {403, 404}


def test_what_is_public_says_nothing_about_the_workspace(shared: Served) -> None:
    for method, path in PUBLIC & set(ROUTES):
        if method == "GET":
            answer = shared.client().get(path)
            assert shared.run_id not in answer.text
            assert not [secret for secret in SECRETS if secret in answer.text]


@pytest.mark.parametrize("role", [role.value for role in AccessRole])
def test_each_role_may_do_what_it_says(shared: Served, role: str) -> None:
    client = shared.client(role)
    told = client.get("/api/v1/me").json()
    assert told["role"] == role
    may = set(told["permissions"])
    run = f"/api/v1/runs/{shared.run_id}"
    assert (client.get(f"{run}/trace/rows").status_code == 200) is ("read rows" in may)
    assert (client.get("/api/v1/audit").status_code == 200) is ("read the access log" in may)
    assert (client.post("/api/v1/dead-letters/replay").status_code == 200) is ("replay events" in may)
    assert (client.post(f"{run}/signals", json={"signal": "PAUSE"}).status_code == 409) is ("send signals" in may)


def test_runs_of_each_tenant_are_apart(served: Served) -> None:
    ours = served.client("viewer").get("/api/v1/runs").json()["runs"]
    theirs = served.client("viewer", tenant="rivals").get("/api/v1/runs").json()["runs"]
    assert [run["run_id"] for run in ours] == [served.run_id]
    assert theirs == []


def test_the_beginning_of_an_id_finds_no_run_of_another_tenant(shared: Served) -> None:
    client = shared.client("admin", tenant="rivals")
    for name in (shared.run_id, shared.run_id[:8], shared.run_id[:1]):
        answer = client.get(f"/api/v1/runs/{name}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RunNotFound")


def test_who_reads_rows_is_on_record(on_each_database: Served) -> None:
    served = on_each_database
    auditor = served.client("auditor")
    run = f"/api/v1/runs/{served.run_id}"
    row = auditor.get(f"{run}/trace/rows", params={"where": "amount_usd > 10", "limit": 1}).json()["rows"][0]["row_id"]
    auditor.get(f"{run}/trace/rows/{row}")
    tag = auditor.get(f"{run}/explain", params={"row": row, "column": "amount_usd"}).headers["etag"]
    kept = auditor.get(f"{run}/explain", params={"row": row, "column": "amount_usd"}, headers={"If-None-Match": tag})
    assert kept.status_code == 304
    served.client("viewer").get(f"{run}/trace/rows/{row}")
    log = served.client("admin").get("/api/v1/audit", params={"subject_id": served.run_id}).json()
    told = [(record["actor"], record["role"], record["subject"], record["detail"]) for record in log["records"]]
    assert {each[:2] for each in told} == {("the auditor", "auditor")}
    again, first, history, search = ((subject, *detail.split("; ")) for _, _, subject, detail in told)
    assert again == ("explanation", f"row {row}, column amount_usd", "returned nothing")
    assert first[:2] == ("explanation", f"row {row}, column amount_usd")
    assert re.match(r"returned \d+ rows? of amount_usd, ", first[2])
    assert history[:2] == ("trace", f"row {row}")
    assert history[2].startswith("returned 1 row of journal_id, ")
    assert search[:2] == ("trace", "where amount_usd > 10")
    assert search[2].startswith("returned 1 row of journal_id, ")


def test_the_record_of_readings_comes_in_pages_and_by_reader(served: Served) -> None:
    for role in ("auditor", "operator", "auditor"):
        served.client(role).get(f"/api/v1/runs/{served.run_id}/trace/rows", params={"limit": 1})
    client = served.client("admin")
    first = client.get("/api/v1/audit", params={"limit": 2, "subject": "trace"}).json()
    assert first["has_more"] is True
    rest = client.get("/api/v1/audit", params={"before": first["records"][-1]["id"], "subject": "trace"}).json()
    assert [record["actor"] for record in first["records"] + rest["records"]] == [
        "the auditor",
        "the operator",
        "the auditor",
    ]
    only = client.get("/api/v1/audit", params={"actor": "the operator"}).json()["records"]
    assert [record["actor"] for record in only] == ["the operator"]
    assert served.client("admin", tenant="rivals").get("/api/v1/audit").json()["records"] == []


def test_a_token_is_of_no_use_once_it_is_revoked_or_has_expired(on_each_database: Served) -> None:
    served = on_each_database
    client = served.client("admin")
    assert client.get("/api/v1/me").status_code == 200
    [token] = served.state.tokens.tokens()
    served.state.tokens.revoke(token.token_id, token.created_at)
    assert client.get("/api/v1/me").status_code == 401
    late = {"Authorization": f"Bearer {served.expired_token()}"}
    assert served.client().get("/api/v1/me", headers=late).status_code == 401


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer clew_", "Bearer clew_x_y", "Bearer ' OR 1=1 --", "Bearer é"],
)
def test_what_is_no_token_opens_nothing(shared: Served, header: str) -> None:
    answer = shared.client().get("/api/v1/me", headers={b"Authorization": header.encode()})
    assert answer.status_code == 401


def test_a_token_with_a_wrong_secret_opens_nothing(shared: Served) -> None:
    text = shared.token("admin")
    wrong = text[:-4] + ("AAAA" if not text.endswith("AAAA") else "BBBB")
    assert shared.client().get("/api/v1/me", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401


def test_nothing_of_a_token_but_its_digest_is_kept(served: Served) -> None:
    secret = served.token("admin").split("_", 2)[2]
    for file in (served.workspace.root / ".clew").glob("state.db*"):
        assert secret.encode() not in file.read_bytes()
