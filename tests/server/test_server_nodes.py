"""Node ids: listed, leased and revoked by command, and over HTTP for programs that are not written in Python."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clew.cli.main import run as command
from tests.server.server_fixtures import Served

PRODUCER = {"host": "sensor-7", "process_id": 4711, "start_time_ms": 1_760_000_000_000}


def test_a_program_leases_a_node_id_keeps_it_and_gives_it_back(served: Served) -> None:
    client = served.client("operator")
    answer = client.post("/api/v1/nodes", json=PRODUCER)
    leased = answer.json()
    assert (answer.status_code, leased["status"], leased["term"]) == (201, "live", 1)
    assert {name: leased[name] for name in PRODUCER} == PRODUCER
    assert leased["first_ms"] < leased["reserved_until_ms"]
    node = f"/api/v1/nodes/{leased['node_id']}"
    kept = client.post(f"{node}/keepalive", json={"term": 1}).json()
    assert kept["expires_at_ms"] >= leased["expires_at_ms"]
    assert kept["reserved_until_ms"] >= leased["reserved_until_ms"]
    assert served.client("viewer").get("/api/v1/nodes").json()["nodes"] == [kept]
    used = {"term": 1, "used_until_ms": leased["granted_at_ms"]}
    assert client.post(f"{node}/release", json=used).json()["status"] == "released"
    lost = client.post(f"{node}/keepalive", json={"term": 1})
    assert (lost.status_code, lost.json()["error"]["code"]) == (409, "NodeLeaseLost")


def test_two_programs_never_hold_the_same_node_id(served: Served) -> None:
    client = served.client("operator")
    first = client.post("/api/v1/nodes", json=PRODUCER).json()
    second = client.post("/api/v1/nodes", json={**PRODUCER, "process_id": 4712}).json()
    assert first["node_id"] != second["node_id"]
    taken = client.post("/api/v1/nodes", json={**PRODUCER, "process_id": 4713, "node_id": first["node_id"]})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "NodeIdTaken")
    assert "process 4711 on sensor-7" in taken.json()["error"]["message"]


def test_a_revoked_lease_is_lost_and_only_some_may_revoke(served: Served) -> None:
    operator = served.client("operator")
    node = operator.post("/api/v1/nodes", json=PRODUCER).json()["node_id"]
    assert operator.post(f"/api/v1/nodes/{node}/revoke").status_code == 403
    assert served.client("viewer").post("/api/v1/nodes", json=PRODUCER).status_code == 403
    assert served.client("engineer").post(f"/api/v1/nodes/{node}/revoke").json()["status"] == "revoked"
    lost = operator.post(f"/api/v1/nodes/{node}/keepalive", json={"term": 1})
    assert (lost.status_code, lost.json()["error"]["code"]) == (409, "NodeLeaseLost")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/nodes", {**PRODUCER, "node_id": 1024}, 422),
        ("POST", "/nodes", {"host": "h"}, 422),
        ("POST", "/nodes", {**PRODUCER, "extra": 1}, 422),
        ("POST", "/nodes/7/keepalive", {"term": 1}, 404),
        ("POST", "/nodes/7/release", {"term": 1, "used_until_ms": 0}, 404),
        ("POST", "/nodes/7/revoke", None, 404),
        ("POST", "/nodes/1024/revoke", None, 422),
    ],
)
def test_bad_requests_are_refused(served: Served, method: str, path: str, body: object, status: int) -> None:
    answer = served.client("admin").request(method, f"/api/v1{path}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] in {"InvalidRequest", "NoSuchNode"}
    assert served.client("admin").get("/api/v1/nodes").json() == {"nodes": []}


def test_another_tenant_is_refused(served: Served) -> None:
    for answer in (
        served.client("admin", "other").get("/api/v1/nodes"),
        served.client("admin", "other").post("/api/v1/nodes", json=PRODUCER),
    ):
        assert answer.status_code == 403


def test_the_command_lists_and_revokes(
    served: Served, ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ledger)
    assert command(["nodes"]) == 0
    assert capsys.readouterr().out == "no node id has been leased yet\n"
    node = served.client("operator").post("/api/v1/nodes", json=PRODUCER).json()["node_id"]
    assert command(["nodes", "list"]) == 0
    line = capsys.readouterr().out
    assert "live" in line
    assert "process 4711 on sensor-7, started 2025-10-09 08:53:20 UTC" in line
    assert command(["nodes", "revoke", str(node), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "revoked"
    assert command(["nodes", "--json"]) == 0
    assert [each["status"] for each in json.loads(capsys.readouterr().out)["nodes"]] == ["revoked"]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["revoke"], 2), (["revoke", "9"], 3), (["revoke", "1024"], 2), (["steal"], 2)]
)
def test_the_command_refuses_what_makes_no_sense(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    monkeypatch.chdir(ledger)
    assert command(["nodes", *arguments]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_the_command_holds_a_node_id_until_it_is_stopped(ledger: Path, served: Served) -> None:
    command_line = [sys.executable, "-m", "clew.cli", "nodes", "lease", "77"]
    with subprocess.Popen(command_line, cwd=ledger, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("node id 77, until Ctrl-C")
        [held] = served.workspace.nodes.all()
        assert (held.status, held.lease.node_id, held.lease.holder.process_id) == ("live", 77, process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == 0
    [given_back] = served.workspace.nodes.all()
    assert given_back.status == "released"
