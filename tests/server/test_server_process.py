"""`clew serve` as users start it, and `clew run --server` against it."""

import json
import select
import signal
import socket
import subprocess
import sys
import time
from itertools import repeat
from pathlib import Path

import httpx
import pytest
from fastapi import Response
from fastapi.responses import StreamingResponse

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import Served
from tests.server.server_processes import listening_in_a_thread, served_by_a_process, working_in_a_thread


def test_it_prints_a_link_that_works_and_ends_on_sigterm(ledger: Path) -> None:
    with served_by_a_process(ledger) as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert client.get("/api/v1/ready").json() == {"status": "ready"}
            assert client.get("/api/v1/runs").status_code == 401
            assert client.get("/login/link", params={"key": server.key}).status_code == 303
            assert len(client.get("/api/v1/runs").json()["runs"]) == 1
        server.process.send_signal(signal.SIGTERM)
        out, err = server.process.communicate()
        assert (server.process.returncode, out, err) == (0, "", "")


def test_with_json_it_prints_one_document_and_nothing_else(ledger: Path) -> None:
    command_line = [sys.executable, "-m", "clew.cli", "serve", "--port", "0", "--no-worker", "--json"]
    with subprocess.Popen(command_line, cwd=ledger, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "}\n"))
        started = json.loads("".join([*lines, "}"]))
        assert httpx.get(started["link"], timeout=60).status_code == 303
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate()
    assert started["link"].startswith(f"{started['url']}/login/link?key=")
    assert (started["workspace"], started["environment"], rest) == ("general-ledger", "dev", "")


_UNTIL_THE_WORKER_STARTS = """
import signal, sys
from clew.cli.main import run
from clew.server.hosted_worker import HostedWorker

def started(worker):
    print("loaded:", *sorted(name for name in sys.modules if name in sys.argv))
    signal.raise_signal(signal.SIGTERM)

HostedWorker.start = started
sys.exit(run(["serve", "--port", "0"]))
"""


@pytest.mark.parametrize("pages", [["/login"], []], ids=["somebody", "nobody"])
def test_a_page_comes_before_the_worker_and_the_libraries_of_spark(ledger: Path, pages: list[str]) -> None:
    heavy = ["pyspark", "py4j", "pyarrow", "pandas", "numpy", "duckdb", "openlineage", "psycopg", "rich"]
    command_line = [sys.executable, "-c", _UNTIL_THE_WORKER_STARTS, *heavy, "jinja2"]
    with subprocess.Popen(command_line, cwd=ledger, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        url = printed.partition(" on ")[2].partition(";")[0]
        for page in pages:
            assert "<title>" in httpx.get(f"{url}{page}", headers={"Accept": "text/html"}, timeout=60).text
        rest, _ = process.communicate()
    assert (process.returncode, rest.splitlines()[-1]) == (0, "loaded: jinja2")


def test_a_stream_does_not_keep_it_from_ending(ledger: Path) -> None:
    token = open_workspace(ledger).tokens.create("t", role=AccessRole.OPERATOR, days=1).text
    signed = {"Authorization": f"Bearer {token}"}
    wish = {"project": "group-report", "period": "2026-01"}
    with served_by_a_process(ledger) as server, httpx.Client(base_url=server.url, headers=signed, timeout=60) as client:
        run_id = client.post("/api/v1/runs", json=wish).json()["run_id"]
        with client.stream("GET", f"/api/v1/runs/{run_id}/events/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "id: 1"
            server.process.send_signal(signal.SIGINT)
            assert "event: end" not in list(lines)
        assert server.process.wait() == 0


def test_beyond_this_machine_it_needs_tokens_and_says_so(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["serve", "--host", "0.0.0.0", "--port", "0", "--no-worker", "--workspace", str(ledger)])
    assert code == 2
    printed = capsys.readouterr()
    assert "error TokensNeeded: 0.0.0.0 can be reached from other machines" in printed.err
    assert "clew token create" in printed.err


def test_a_port_that_is_taken_is_named(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert command(["serve", "--port", port, "--no-worker", "--workspace", str(ledger)]) == 1
    assert f"error AddressTaken: cannot listen on 127.0.0.1 port {port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--url", "clew.example.com"], "does not start with http:// or https://"),
        (["--certificate", "nowhere.pem"], "no file nowhere.pem"),
        (["--certificate-key", "clew.yaml"], "--certificate-key needs --certificate"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    ledger: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    assert command(["serve", "--port", "0", "--no-worker", "--workspace", str(ledger), *options]) == 2
    assert problem in capsys.readouterr().err


def _token_file(served: Served, folder: Path, role: str) -> str:
    file = folder / "token"
    file.write_text(served.token(role) + "\n", encoding="utf-8")
    return str(file)


def test_a_run_on_a_server_is_followed_from_the_command_line(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token, quick = _token_file(served, tmp_path, "operator"), ServerSettings(event_poll_s=0.02)
    with working_in_a_thread(served.workspace), listening_in_a_thread(served, quick) as url:
        arguments = ["run", "gl-close", "--period", "2026-01", "--server", url, "--token-file", token]
        assert command(arguments) == 0
        told = capsys.readouterr().out
        assert command([*arguments, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
    assert f"(on {url})" in told
    assert "10      Convert to USD" in told
    assert "completed in" in told
    assert (document["status"], document["requested_by"]) == ("COMPLETED", "the operator")


CAPTURES = """
captures:
  - {breakpoint: cleaned, mode: sample_view, sample: {rows: 5}, mask: {journal_id: {keep_last: 2}}}
"""


def test_captures_of_a_file_and_of_words_go_to_the_server_with_the_run(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token, file = _token_file(served, tmp_path, "engineer"), tmp_path / "captures.yaml"
    file.write_text(CAPTURES, encoding="utf-8")
    quick = ServerSettings(event_poll_s=0.02)
    with working_in_a_thread(served.workspace), listening_in_a_thread(served, quick) as url:
        base = ["run", "gl-close", "--period", "2026-01", "--server", url, "--token-file", token, "--json"]
        assert command([*base, "--captures", str(file), "--capture", "converted=stats"]) == 0
        captures = json.loads(capsys.readouterr().out)["captures"]
        file.write_text(CAPTURES.replace("rows: 5", "rows: few"), encoding="utf-8")
        assert command([*base, "--captures", str(file)]) == 1
        error = json.loads(capsys.readouterr().out)["error"]
        assert command([*base, "--dry-run"]) == 2
        refused = json.loads(capsys.readouterr().out)["error"]
    asked = {each["breakpoint"].rpartition("::")[2]: each["asked_mode"] for each in captures}
    assert asked == {"cleaned": "sample_view", "converted": "stats"}
    records = served.state.captures.of_run(captures[0]["run_id"])
    [request] = [each.request for each in records if each.request and each.request.mode.value == "sample_view"]
    assert request.sample_rows == 5
    assert {column.name: str(column.mask) for column in request.columns if column.mask} == {
        "journal_id": "keep_last(2)"
    }
    assert (error["code"], error["line"]) == ("InvalidValue", 3)
    assert (refused["code"], refused["message"]) == (
        "WrongUsage",
        "--dry-run does not work with --server",
    )
    assert refused["hint"].startswith("run without --server")


def test_a_run_that_fails_on_a_server_fails_here_too(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.engine.failing["10"] = UserError(SOURCE_UNAVAILABLE.anywhere(problem="the file is gone"))
    token, quick = _token_file(served, tmp_path, "operator"), ServerSettings(event_poll_s=0.02)
    with working_in_a_thread(served.workspace), listening_in_a_thread(served, quick) as url:
        code = command(["run", "gl-close", "--period", "2026-01", "--server", url, "--token-file", token])
    told = capsys.readouterr().out
    assert code == 1
    assert "error SourceUnavailable" in told
    assert "The run is FAILED." in told


def test_what_a_server_refuses_is_told_as_if_it_had_happened_here(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_TOKEN", raising=False)
    with listening_in_a_thread(served) as url:
        base = ["run", "gl-close", "--period", "2026-01", "--server", url]
        assert command([*base, "--token-file", _token_file(served, tmp_path, "viewer")]) == 1
        assert "error Forbidden: the role viewer may not start runs" in capsys.readouterr().err
        assert command(["run", "nope", *base[2:], "--token-file", _token_file(served, tmp_path, "admin")]) == 3
        assert 'error UnknownProject: no project "nope"' in capsys.readouterr().err
        assert command(base) == 2
        assert "error WrongUsage: --server needs a token" in capsys.readouterr().err
    assert command([*base, "--token-file", _token_file(served, tmp_path, "admin")]) == 1
    assert f"error ServerUnreachable: {url} does not respond" in capsys.readouterr().err
    assert command(["run", "x", "--period", "p", "--server", "ftp://x", "--token-file", "t"]) == 2


def _connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def test_a_client_that_never_finishes_its_headers_is_cut_off(served: Served) -> None:
    settings = ServerSettings(slowest_headers_s=0.3)
    with listening_in_a_thread(served, settings) as url, _connected(url) as client, _connected(url) as silent:
        client.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert client.recv(1) == b""
        assert silent.recv(1) == b""


def test_an_answer_may_take_longer_than_the_headers_of_a_request(served: Served) -> None:
    def slow() -> Response:
        time.sleep(0.5)
        return Response(b"done")

    served.app.add_api_route("/slow", slow)
    request = b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with listening_in_a_thread(served, ServerSettings(slowest_headers_s=0.2)) as url, _connected(url) as client:
        for _ in range(2):
            client.sendall(request)
            answer = b""
            while not answer.endswith(b"done"):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
        client.sendall(request[:20])
        assert client.recv(1) == b""


def test_a_client_that_never_finishes_its_body_is_answered_and_cut_off(served: Served) -> None:
    settings = ServerSettings(slowest_body_s=0.3)
    served = Served(served.workspace, create_app(served.workspace, settings), served.run_id, served.engine)
    head = (
        "POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {served.token('operator')}\r\nContent-Length: 100\r\n\r\n"
    )
    with listening_in_a_thread(served, settings) as url, _connected(url) as client:
        client.sendall(head.encode() + b'{"project": ')
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"TooSlow"' in answer


_MUCH = 32_000_000
"""More than the system keeps for a client that does not read."""


@pytest.mark.parametrize("path", ["/whole", "/in-parts"])
def test_a_client_that_reads_nothing_of_a_large_answer_is_cut_off(
    served: Served, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    served.app.add_api_route("/whole", lambda: Response(b"x" * _MUCH))
    served.app.add_api_route("/in-parts", lambda: StreamingResponse(repeat(b"x" * 100_000)))
    with listening_in_a_thread(served, ServerSettings(slowest_reader_s=0.3)) as url, _connected(url) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        cut = select.poll()
        cut.register(client, select.POLLRDHUP)
        assert cut.poll(60_000)
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: client.recv(1_000_000), b""))
    assert caplog.messages == []


def test_a_client_that_reads_an_answer_slowly_gets_all_of_it(served: Served) -> None:
    served.app.add_api_route("/whole", lambda: Response(b"x" * _MUCH))
    with listening_in_a_thread(served, ServerSettings(slowest_reader_s=0.05)) as url, _connected(url) as client:
        client.sendall(b"GET /whole HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer = sum(map(len, iter(lambda: client.recv(1_000_000), b"")))
    assert answer > _MUCH


@pytest.mark.parametrize("target", ["//evil.example/api/v1/runs", "/../../etc/passwd", "http://evil.example/", "*"])
def test_raw_request_targets_lead_nowhere(served: Served, target: str) -> None:
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    with listening_in_a_thread(served) as url, _connected(url) as client:
        client.sendall(head.encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ", 2)[1] in {b"400", b"404", b"401"}
    assert b"root:" not in answer
