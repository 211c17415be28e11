"""A process that drives a run, is frozen just before a certain write, and goes on when it is thawed.

`engine_zombie.py ROOT RUN PLACE`. It stops itself with SIGSTOP once, and ends when its driver gives the run up.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clew.api import starting
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.captures.worker import CaptureWorker
from clew.engine import parts
from clew.engine.output.places import LocalOutput
from clew.runs.limits import LeasePolicy
from clew.runs.worker import WorkerSettings
from clew.storage.drafts import Draft
from clew.storage.local import LocalStorage
from clew.storage.parts import Part
from clew.store.registry import SqlDatasetRegistry

LEASE = LeasePolicy(ttl_s=2, poll_s=0.5)


def frozen(function: Callable[..., Any], is_the_one: Callable[..., bool]) -> Callable[..., Any]:
    """A function before which the process stops, the first time that its arguments are those."""
    waiting = [True]

    def freezing(*arguments: Any, **more: Any) -> Any:
        if waiting and is_the_one(*arguments):
            waiting.clear()
            os.kill(os.getpid(), signal.SIGSTOP)
        return function(*arguments, **more)

    return freezing


def of_kind(kind: str) -> Callable[..., bool]:
    def is_the_one(_draft: Draft, part: Part) -> bool:
        return part.kind == kind

    return is_the_one


def always(*_arguments: object) -> bool:
    return True


def is_complete(path: Path, *_arguments: object) -> bool:
    return path.name.startswith("complete")


def is_manifest(_draft: Draft, name: str, *_arguments: object) -> bool:
    return name == "manifest.json"


def is_sent(_root: LocalStorage, key: str, *_arguments: object) -> bool:
    return key.endswith(".json") and "-0-" in key


PLACES: dict[str, tuple[Any, str, Callable[..., bool]]] = {
    "input": (parts, "publish_part", of_kind("input")),
    "changes": (parts, "publish_part", of_kind("changes")),
    "created": (parts, "publish_part", of_kind("created")),
    "output": (LocalOutput, "_replace", always),
    "append": (LocalOutput, "_add", always),
    "file": (Path, "replace", is_complete),
    "registration": (SqlDatasetRegistry, "register", always),
    "capture": (Draft, "publish", is_manifest),
    "job": (LocalStorage, "write_new", is_sent),
}
"""What is the last write of each kind, and which call of it is meant."""


def main(root: str, run_id: str, place: str) -> None:
    patch.object(starting, "WorkerSettings", partial(WorkerSettings, lease=LEASE)).start()
    spot, name, is_the_one = PLACES[place]
    patch.object(spot, name, frozen(getattr(spot, name), is_the_one)).start()
    workspace = Workspace(Path(root))
    with open_state(workspace.run_environment) as state:
        starter = starting.RunStarter(workspace.files, workspace.run_environment, state)
        starter.drive(run_id, threading.Event())
        if place in {"capture", "job"}:
            CaptureWorker(workspace.run_environment, state, starter.session, lease=LEASE).after_run(run_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
