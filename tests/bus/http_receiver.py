"""A receiver of webhooks and lineage events for tests: a real HTTP server on loopback that remembers what it got."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """A real HTTP server on loopback that remembers what it got."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    location: str = ""
    """Where its redirects lead to."""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.requests]


@contextmanager
def listening(path: str, status: int = 204) -> Iterator[Receiver]:
    """A receiver. As a proxy it takes requests for other hosts too, with the whole address as their path."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else status)
            self.send_header("Content-Length", "0")
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}{path}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
