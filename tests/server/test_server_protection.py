"""What keeps others out: hosts, sizes, headers, strange paths."""

import asyncio
import inspect
import socket
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from packaging.requirements import Requirement
from uvicorn.protocols.http.h11_impl import H11Protocol

from clew.server.protection.middleware import CONTENT_SECURITY_POLICY
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import Served
from tests.server.server_processes import listening_in_a_thread

ROOT = Path(__file__).parents[2]


@pytest.fixture
def admin(shared: Served) -> TestClient:
    return shared.client("admin")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::2]", "0.0.0.0"]
)
def test_a_request_for_another_host_is_refused(admin: TestClient, host: str) -> None:
    answer = admin.get("/api/v1/runs", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "UnknownHost")


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]:8765"])
def test_the_names_of_this_machine_are_known(admin: TestClient, host: str) -> None:
    assert admin.get("/api/v1/runs", headers={"Host": host}).status_code == 200


def test_a_server_for_others_knows_the_names_that_it_was_told() -> None:
    settings = ServerSettings(host="0.0.0.0", url="https://clew.example.com/", allowed_hosts=frozenset({"Clew"}))
    assert settings.known_hosts == {"0.0.0.0", "clew.example.com", "clew"}
    assert not settings.is_loopback


@pytest.mark.parametrize(
    "path", ["/api/v1/health", "/api/v1/runs", "/api/v1/nope", "/nope", "/", "/login", "/api/v1/openapi.json"]
)
def test_every_answer_carries_the_headers_that_bind_browsers(shared: Served, path: str) -> None:
    for client in (shared.client(), shared.client("admin")):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] in {"no-store", "private, no-cache"}
        assert "server" not in headers


def test_no_script_and_no_style_may_stand_in_a_page() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    assert "data:" not in CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'")


def test_a_body_that_is_too_large_is_refused_unread(admin: TestClient) -> None:
    answer = admin.post("/api/v1/runs", content=b"x" * 1_000_001)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TooLarge")
    assert answer.headers["connection"] == "close"
    lying = admin.post("/api/v1/runs", content=b"{}", headers={"Content-Length": "99999999999"})
    assert lying.status_code == 413


def test_a_body_without_a_length_is_counted_while_it_comes(admin: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    answer = admin.post("/api/v1/runs", content=endless())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TooLarge")


@pytest.mark.parametrize("length", ["-1", "ten", "1e3", "１"])
def test_a_length_that_is_none_is_refused(admin: TestClient, length: str) -> None:
    answer = admin.post("/api/v1/runs", content=b"{}", headers={b"Content-Length": length.encode()})
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_document_is_refused_as_one(admin: TestClient, body: bytes) -> None:
    answer = admin.post("/api/v1/runs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "InvalidRequest")


PATHS = [
    "/api/v1/runs/..%2f..%2f..%2fetc%2fpasswd",
    "/api/v1/runs/../../../etc/passwd",
    "/api/v1/runs/%2e%2e/%2e%2e/etc/passwd",
    "/api/v1/plans/..%2f..%2fstate.db",
    "/api/v1/plans/../../../../state.db",
    "/api/v1/datasets/..%5c..%5cclew.yaml",
    "/api/v1/projects/%00",
    "/api/v1/projects/a%0d%0aX-Injected:%20yes",
    "/static/../application.py",
    "/static/..%2f..%2fapplication.py",
    "/static/%2e%2e/%2e%2e/clew.yaml",
    "/static//etc/passwd",
    "/api/v1/runs/%ff%fe",
    "/api/v1/runs/" + "a" * 5000,
    "/api/v1/runs/RUN/trace/rows/..%2f..%2fstate.db",
    "/api/v1/captures/..%2f..%2fstate.db",
]


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_strange_paths_lead_nowhere(shared: Served, path: str) -> None:
    answer = shared.client("admin").get(path.replace("RUN", shared.run_id))
    assert answer.status_code in {400, 404, 405, 422}
    assert b"root:" not in answer.content
    assert b"SQLite" not in answer.content
    assert b"FastAPI" not in answer.content
    assert "x-injected" not in answer.headers


@pytest.mark.parametrize(
    "where",
    ["1 = 1; DROP TABLE runs", "x' OR '1'='1", "(" * 3000, "", "\x00", "read_csv('/etc/passwd')", "amount_usd > "],
)
def test_a_condition_is_an_expression_and_never_sql(shared: Served, where: str) -> None:
    answer = shared.client("auditor").get(f"/api/v1/runs/{shared.run_id}/trace/rows", params={"where": where})
    assert answer.status_code in {400, 404, 422}, answer.text
    assert answer.json()["error"]["code"] in {"SyntaxError", "UnknownFunction", "UnknownColumn", "InvalidRequest"}


def test_an_error_inside_says_nothing_about_the_inside(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("/secret/path")

    monkeypatch.setattr("clew.api.projects.list_projects", broken)
    answer = shared.client("admin").get("/api/v1/projects")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "InternalError")
    assert "secret" not in answer.text
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def test_metrics_count_requests_by_route(shared: Served) -> None:
    client = shared.client("admin")
    client.get(f"/api/v1/runs/{shared.run_id}")
    text = client.get("/api/v1/metrics").text
    assert 'clew_http_requests_total{method="GET",route="/api/v1/runs/{run}",status="200"}' in text
    assert shared.run_id not in text
    assert 'clew_runs{state="running"} 0.0' in text
    assert "clew_event_stream_listeners 0.0" in text


def test_a_store_that_is_away_makes_the_server_not_ready(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.diagnostics import TransientFailure
    from clew.diagnostics.codes.runs import STORE_UNAVAILABLE

    def away(*_arguments: object) -> None:
        raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="gone"))

    assert shared.client().get("/api/v1/ready").json() == {"status": "ready"}
    monkeypatch.setattr("clew.store.catalog.load_of", away)
    answer = shared.client().get("/api/v1/ready")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert shared.client().get("/api/v1/health").status_code == 200


def test_uvicorn_has_an_upper_bound_because_its_protocol_is_wrapped() -> None:
    """`slow_connections` hands what asyncio calls to H11Protocol, which uvicorn names in no document."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    [requirement] = [each for each in map(Requirement, declared) if each.name == "uvicorn"]
    assert any(bound.operator == "<" for bound in requirement.specifier)
    assert version("uvicorn") in requirement.specifier
    assert issubclass(H11Protocol, asyncio.Protocol)
    assert {"config", "server_state", "app_state"} <= set(inspect.signature(H11Protocol).parameters)


def _labels(metrics: str, name: str) -> set[str]:
    found = (line.partition(f'{name}="')[2].partition('"')[0] for line in metrics.splitlines() if f'{name}="' in line)
    return set(found)


def test_labels_of_metrics_come_from_known_methods_and_routes(served: Served) -> None:
    token = served.token("viewer")
    with listening_in_a_thread(served) as address:
        place = urlsplit(address)
        for method, path in (("X" * 60_000, "/api/v1/health"), ("get", "/nowhere"), ("BREW", "/api/v1/" + "n" * 500)):
            with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
                connection.sendall(
                    f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode()
                )
                assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 4")
        answer = httpx.get(f"{address}/api/v1/metrics", headers={"Authorization": f"Bearer {token}"})
        again = httpx.get(f"{address}/api/v1/metrics", headers={"Authorization": f"Bearer {token}"})
    assert len(answer.text) < 20_000
    assert _labels(again.text, "method") <= {"GET", "other"}
    patterns = {getattr(route, "path", "") for route in served.app.routes}
    known = patterns | {f"/api/v1{pattern}" for pattern in patterns} | {"/api/v1/metrics", "/api/v1/health", "none"}
    assert _labels(again.text, "route") <= known
    assert "none" in _labels(again.text, "route")


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed a connection; waits until it has."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_one_address_holds_a_limited_number_of_idle_connections(served: Served) -> None:
    settings = ServerSettings(most_idle_per_address=5, slowest_headers_s=3600)
    with listening_in_a_thread(served, settings) as address, ExitStack() as stack:
        place = urlsplit(address)

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection((place.hostname or "", place.port or 0), timeout=60))

        idle = [connect() for _ in range(5)]
        for each in idle:
            each.sendall(b"GET /api/v1/health HTTP/1.1\r\n")
        idle += [connect() for _ in range(3)]
        for oldest in idle[:3]:
            assert _is_closed(oldest)
        idle[3].sendall(f"Host: {place.netloc}\r\n\r\n".encode())
        assert idle[3].recv(12) == b"HTTP/1.1 200", "the others are not"
