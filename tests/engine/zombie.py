"""A process that can be frozen before a write of a run, overtaken, and thawed: one, with one Spark, for many runs."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Zombie:
    """`engine_zombie.py`, which waits for tasks."""

    process: "subprocess.Popen[str]"
    log: Path

    def freeze(self, root: Path, run_id: str, place: str) -> None:
        """Let it come to a place in a run and stand still there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(root), run_id, place]) + "\n")
        self.process.stdin.flush()
        while not (changed := os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG))[0]:
            went_on, _, _ = select.select([self.process.stdout], [], [], 0.1)
            assert not went_on, f"it went on past {place}: {self.said}"
        assert os.WIFSTOPPED(changed[1]), self.said

    def thaw(self) -> None:
        """Let it go on, until it has given the run up."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdout.readline() == "done\n", self.said

    @contextmanager
    def frozen_before(self, root: Path, run_id: str, place: str) -> Iterator[None]:
        self.freeze(root, run_id, place)
        try:
            yield
        finally:
            self.thaw()

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


@contextmanager
def zombie_process(folder: Path) -> Iterator[Zombie]:
    log = folder / "zombie.log"
    command = [sys.executable, "-m", "tests.engine.engine_zombie"]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Zombie(process, log)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(timeout=120) == 0, log.read_text(errors="replace")[-3000:]
        finally:
            process.kill()
