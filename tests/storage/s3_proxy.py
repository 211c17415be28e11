"""A proxy in front of an S3 server: it counts what is asked, and answers wrongly where a test says so."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    """Without the query."""
    query: str
    range: str | None

    @property
    def is_listing(self) -> bool:
        """Whether it lists a bucket."""
        return self.method == "GET" and "list-type" in self.query


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in place of the server's."""

    status: int
    code: str
    """As S3 names the error."""
    message: str = "refused by the test"


class Cut:
    """The answer of the server, of which only the first half arrives."""


class Silence:
    """No answer until the connection is closed by who waits for it, or by the end of the test."""


Fault = Answer | Cut | Silence | None

SLOW_DOWN = Answer(503, "SlowDown", "Please reduce your request rate.")
EXPIRED = Answer(400, "ExpiredToken", "The provided token has expired.")
DENIED = Answer(403, "AccessDenied", "Access Denied")
SKEWED = Answer(
    403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
)


@dataclass
class Proxy:
    """What has been asked, and what goes wrong."""

    endpoint: str
    asked: list[Asked] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When each request came, and when its answer had gone."""
    bytes_sent: int = 0
    latency: float = 0.0
    """Seconds for which every answer is held back, as a store at some distance does."""
    fault: Callable[[Asked], Fault] = lambda _: None
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def failing(self, fault: Callable[[Asked], Fault]) -> Iterator[None]:
        """Let things go wrong inside the block."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = lambda _: None

    @contextmanager
    def counting(self) -> Iterator[list[Asked]]:
        """Forget what was asked before, and give what is asked in the block."""
        self.asked, self.spans, self.bytes_sent = [], [], 0
        yield self.asked

    @property
    def round_trips(self) -> int:
        """The most requests of which each came after the answer to the one before: as often someone had to wait."""
        count, free = 0, float("-inf")
        for started, ended in sorted(self.spans, key=lambda span: span[1]):
            if started >= free:
                count, free = count + 1, ended
        return count


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def _relay(self) -> None:
        proxy = self.server.proxy
        parts = urlsplit(self.path)
        asked = Asked(self.command, unquote(parts.path), parts.query, self.headers.get("Range"))
        with proxy.lock:
            proxy.asked.append(asked)
        started = time.monotonic()
        body = self._body()
        time.sleep(proxy.latency)
        try:
            self._answer(asked, body)
        finally:
            with proxy.lock:
                proxy.spans.append((started, time.monotonic()))

    def _answer(self, asked: Asked, body: bytes) -> None:
        proxy = self.server.proxy
        match proxy.fault(asked):
            case Answer() as answer:
                self._refuse(answer)
            case Silence():
                proxy.ended.wait()
                self.close_connection = True
            case found:
                self._pass_on(body, is_cut=isinstance(found, Cut))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = list[bytes]()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _refuse(self, answer: Answer) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{answer.code}</Code><Message>{answer.message}</Message></Error>"
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def _pass_on(self, body: bytes, *, is_cut: bool) -> None:
        upstream = HTTPConnection("127.0.0.1", self.server.upstream_port)
        try:
            left_out = {*_HOPS, "transfer-encoding", "content-length"}
            headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
            headers["Content-Length"] = str(len(body))
            upstream.request(self.command, self.path, body=body, headers=headers)
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {*_HOPS, "content-length", "transfer-encoding"}:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            sent = content[: len(content) // 2] if is_cut else content
            self.wfile.write(sent)
            with self.server.proxy.lock:
                self.server.proxy.bytes_sent += len(sent)
            self.close_connection = self.close_connection or is_cut
        finally:
            upstream.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _relay  # noqa: N815 - the names that the library calls

    def log_message(self, *_: Any) -> None:
        pass


_HOPS = {"connection", "keep-alive", "expect", "server", "date"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: Proxy
    upstream_port: int

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not wait for the end of an answer is no concern of the test."""


@contextmanager
def s3_proxy(upstream: str) -> Iterator[Proxy]:
    """A proxy in front of the server with this endpoint."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = Proxy(f"http://127.0.0.1:{server.server_port}")
    server.upstream_port = urlsplit(upstream).port or 80
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.proxy.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
