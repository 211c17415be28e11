"""A process that drives a run of a workspace and is killed at a given moment: `engine_crash.py ROOT RUN GROUP MOMENT`.

MOMENT is `before` (a group of steps has begun and done nothing), `within` (its rows are written, and its output is not
published) or `after` (everything is published, and nothing is committed).
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clew.api import starting
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.engine import step_groups as engine
from clew.engine.executor import SparkExecutor
from clew.runs.environment import RunEnvironment
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import LeasePolicy

LEASE = LeasePolicy(ttl_s=2, poll_s=0.5)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(root: str, run_id: str, group: str, moment: str) -> None:
    execute, write_output = SparkExecutor.execute, engine._write_output
    begun = 0

    def dying(self: SparkExecutor, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        nonlocal begun
        begun += 1
        is_the_one = begun == int(group)
        if is_the_one and moment == "before":
            die()
        if is_the_one and moment == "within":
            patch.object(engine, "_write_output", dying_output).start()
        outputs = execute(self, attempts, context)
        if is_the_one:
            die()
        return outputs

    def dying_output(*arguments: Any, **more: Any) -> engine._Written:
        write_output(*arguments, **more)
        die()
        raise AssertionError

    patch.object(SparkExecutor, "execute", dying).start()
    patch.object(RunEnvironment, "lease_policy", lambda _environment: LEASE).start()
    workspace = Workspace(Path(root))
    with open_state(workspace.run_environment) as state:
        starter, waiting = starting.RunStarter(workspace.files, workspace.run_environment, state), threading.Event()
        while starter.drive(run_id, threading.Event()) is None:
            waiting.wait(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
