"""How documents are posted: through the proxies of the environment, once, to the address that was given."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from clew.bus.http import NotTaken, http_address, post
from clew.bus.openlineage import HttpTarget
from tests.bus.http_receiver import Receiver, listening

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening("/events?team=gl") as running:
        yield running


@pytest.fixture
def proxy() -> Iterator[Receiver]:
    with listening("") as running:
        yield running


def test_a_document_arrives_as_it_is(receiver: Receiver) -> None:
    post(receiver.url, b'{"a": 1}', {"Content-Type": "application/json"}, timeout_s=10)
    [(path, headers, body)] = receiver.requests
    assert (path, body) == ("/events?team=gl", b'{"a": 1}')
    assert (headers["content-type"], headers["user-agent"]) == ("application/json", "clew")


def test_a_proxy_of_the_environment_gets_the_document_with_the_whole_address(
    receiver: Receiver, proxy: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    HttpTarget("http://lineage.internal/api/v1/lineage", api_key=lambda: "key").send(b"{}")
    [(path, headers, body)] = proxy.requests
    assert (path, body) == ("http://lineage.internal/api/v1/lineage", b"{}")
    assert (headers["host"], headers["authorization"]) == ("lineage.internal", "Bearer key")
    assert receiver.requests == []


def test_hosts_of_no_proxy_are_reached_directly(
    receiver: Receiver, proxy: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    post(receiver.url, b"{}", {}, timeout_s=10)
    assert (len(receiver.requests), len(proxy.requests)) == (1, 0)


def test_a_proxy_that_cannot_be_used_is_a_failed_delivery(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(NotTaken, match="the proxy that the environment names cannot be used: "):
        post(receiver.url, b"{}", {}, timeout_s=10)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with pytest.raises(NotTaken, match="refused"):
        post(receiver.url, b"{}", {}, timeout_s=10)
    assert receiver.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    with listening("/elsewhere") as elsewhere:
        receiver.answers, receiver.location = [status], elsewhere.url
        with pytest.raises(NotTaken, match=f"^{status}$"):
            post(receiver.url, b"{}", {"Authorization": "Bearer key"}, timeout_s=10)
    assert elsewhere.requests == []


def test_a_receiver_that_is_silent_is_a_failed_delivery() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(NotTaken, match="timed out"):
            post(f"http://127.0.0.1:{port}/", b"{}", {}, timeout_s=0.2)


def test_no_more_of_an_endless_answer_is_read_than_a_message_shows() -> None:
    with socket.create_server(("127.0.0.1", 0)) as endless:
        thread = threading.Thread(target=_answer_without_end, args=(endless,))
        thread.start()
        with pytest.raises(NotTaken) as raised:
            post(f"http://127.0.0.1:{endless.getsockname()[1]}/", b"{}", {}, timeout_s=10)
        thread.join(10)
    assert str(raised.value) == "500 " + "x" * 200
    assert not thread.is_alive()


def _answer_without_end(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        try:
            connection.sendall(b"HTTP/1.1 500 Broken\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            return


@pytest.mark.parametrize("url", ["ftp://example.com/x", "example.com", "http://", "/hooks"])
def test_what_is_not_an_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an http address"):
        http_address(url)


def test_the_http_library_is_loaded_only_when_something_is_sent() -> None:
    code = (
        "import sys\nimport clew.api.remote, clew.bus.buses\n"
        "sys.exit(any(name.startswith(('httpx', 'httpcore')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
