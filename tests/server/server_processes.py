"""Servers that really listen: in a thread of the test, or in a separate process."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from clew.api.workspace import Workspace
from clew.server.serving import listening, web_server
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import Served


@contextmanager
def listening_in_a_thread(served: Served, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve an application on a free port; returns the beginning of its addresses."""
    with listening(replace(settings or ServerSettings(), port=0)) as listener:
        settings = replace(settings or ServerSettings(), port=listener.getsockname()[1])
        server = web_server(served.app, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
        thread.start()
        try:
            yield settings.address
        finally:
            served.app.state.streams.close()
            server.exit()
            thread.join()


@contextmanager
def working_in_a_thread(workspace: Workspace) -> Iterator[None]:
    """A worker in this process, so that its engine can be one of the test's own."""
    stop = threading.Event()
    thread = threading.Thread(target=workspace.work, args=(stop,), name="worker")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass
class ServerProcess:
    """`clew serve` in a separate process."""

    process: "subprocess.Popen[str]"
    url: str
    key: str


@contextmanager
def served_by_a_process(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Start `clew serve --no-worker` and wait for the lines that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "clew.cli", "serve", "--port", "0", "--no-worker", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        address, link = re.search(r" on (https?://\S+);", first), re.search(r"key=(\S+)", second)
        assert address is not None, first + (process.stderr.read() if process.stderr else "")
        assert link is not None, second
        assert f"kill -USR1 {process.pid}" in process.stdout.readline()
        yield ServerProcess(process, address[1], link[1])
    finally:
        process.kill()
        process.communicate()
