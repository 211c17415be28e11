"""The worker of a server is a process that is started again when it dies, and ends with the server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from clew.server.hosted_worker import HostedWorker

OBEDIENT = """
import os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(str(os.getpid()))
sys.stdin.buffer.read()
Path(sys.argv[1] + ".ended").write_text(str(os.getpid()))
"""
"""Says that it runs, and that it has ended when its input ends."""

SERVER = """
import sys, time
from clew.server.hosted_worker import HostedWorker
HostedWorker(sys.argv[1:]).start()
time.sleep(3600)
"""


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another process does; it fails the test where it does not."""
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def obedient(note: Path) -> list[str]:
    return [sys.executable, "-c", OBEDIENT, str(note)]


def test_it_ends_when_the_server_says_so_and_leaves_no_zombie(tmp_path: Path) -> None:
    note = tmp_path / "note"
    worker = HostedWorker(obedient(note))
    worker.start()
    until(lambda: note.exists() and note.read_text() != "")
    pid = int(note.read_text())
    assert (pid, os.getsid(pid)) == (worker.process_id, pid), "Ctrl-C for the server does not reach it"
    worker.stop()
    assert (tmp_path / "note.ended").read_text() == str(pid)
    assert not psutil.pid_exists(pid)
    assert (worker.starts, worker.process_id) == (1, None)


def test_it_is_started_again_when_it_dies(tmp_path: Path) -> None:
    note = tmp_path / "note"
    worker = HostedWorker(obedient(note), first_pause_s=0.01)
    worker.start()
    try:
        for starts in (1, 2, 3):
            until(lambda: note.exists() and note.read_text() == str(worker.process_id))
            assert worker.starts == starts
            os.kill(int(note.read_text()), signal.SIGKILL)
            until(lambda before=starts: worker.starts > before)  # type: ignore[misc]
    finally:
        worker.stop()
    assert worker.process_id is None


def test_a_command_that_does_not_exist_does_not_end_the_server(caplog: pytest.LogCaptureFixture) -> None:
    worker = HostedWorker(["/no/such/program"], first_pause_s=0.01)
    worker.start()
    until(lambda: "cannot be started" in caplog.text)
    worker.stop()
    assert worker.starts == 0


def test_it_ends_by_itself_when_the_server_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with subprocess.Popen([sys.executable, "-c", SERVER, *obedient(note)]) as server:
        until(lambda: note.exists() and note.read_text() != "")
        server.kill()
    until((tmp_path / "note.ended").exists)
    pid = int(note.read_text())
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
