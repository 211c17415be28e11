"""A process with one Spark that runs projects of workspaces, one after the other, as it is told on standard input.

A line is a JSON object: `{"root": ..., "captures": [...]}` for a new run, `{"root": ..., "drive": RUN}` for one that
another process has left, or `{"root": ..., "expand": RUN}` for the links of one that has ended. The answer is the JSON
of the run, or of the error, in one line. Tests that need many runs with other jars than the session of the tests has
share one of these.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clew
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.worker import CaptureWorker
from clew.diagnostics import ClewError
from tests.storage.s3_server import KEYS

ANSWER = "answer: "


@dataclass(frozen=True)
class Driver:
    """The process, as a test uses it."""

    process: "subprocess.Popen[str]"
    log: Path

    def run(self, root: Path, **more: Any) -> dict[str, Any]:
        """Run the project `p` of a workspace."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"root": str(root), **more}), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                found: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return found
        raise AssertionError(self.log.read_text()[-3000:])


@contextmanager
def s3_driver(folder: Path, module: str = "tests.engine.s3_driver") -> Iterator[Driver]:
    """A process that ends with the block."""
    log = folder / "driver.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "LEDGER_KEYS": KEYS},
            cwd=folder,
        ) as process,
    ):
        try:
            yield Driver(process, log)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=120)


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    """The run that was asked for."""
    try:
        if "drive" in asked:
            return overtaking(clew.open(asked["root"]), asked["drive"])
        if "expand" in asked:
            return {"links": [step.links for step in clew.open(asked["root"]).expand_windows(asked["expand"])]}
        return clew.open(asked["root"]).run("p", period="2026-01", captures=asked.get("captures", ())).to_json()
    except ClewError as error:
        return {"status": "REFUSED", "error": error.diagnostic.to_json()}


def overtaking(workspace: clew.Workspace, run_id: str) -> dict[str, Any]:
    """Finish a run and its captures, as soon as the leases of whoever had them have run out."""
    environment, waiting = workspace.run_environment, threading.Event()
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        while not state.stores.catalog.run(run_id).status.is_terminal:
            starter.drive(run_id, threading.Event())
            waiting.wait(0.1)
        worker = CaptureWorker(environment, state, starter.session)
        while not all(record.status.is_over for record in state.captures.of_run(run_id)):
            if not worker.work_once():
                waiting.wait(0.1)
    return workspace.get_run(run_id).to_json()


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(f"{ANSWER}{json.dumps(answered(json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
