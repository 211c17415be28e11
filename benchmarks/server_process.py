"""`clew serve` as a separate process, for benchmarks."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PAGE, DOCUMENT = "text/html", "application/json"


@dataclass(frozen=True)
class Server:
    """A server that listens."""

    host: str
    port: int
    pid: int
    token: str

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def get(self, connection: http.client.HTTPConnection, path: str, accept: str = DOCUMENT) -> bytes:
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}", "Accept": accept})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return body

    def resident(self) -> float:
        """The memory that the process holds, in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serving(root: Path, token: str = "") -> Iterator[Server]:
    command = [sys.executable, "-m", "clew.cli", "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, cwd=root, env=as_installed(root), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
            assert found is not None
            yield Server(found[1], int(found[2]), process.pid, token)
        finally:
            process.terminate()


def as_installed(root: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, as where Clew is installed, whatever is set here."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(root / ".clew" / "compiled")}
