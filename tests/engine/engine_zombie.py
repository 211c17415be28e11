"""A process that drives runs, is frozen just before a certain write of each, and goes on when it is thawed.

It takes tasks from its standard input, a JSON list of root, run and place to a line. It stops itself with SIGSTOP once
for each, and says `done` when its driver has given the run up.
"""

import json
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clew.api import starting
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.captures.worker import CaptureWorker
from clew.engine import parts, windows
from clew.engine.output.places import LocalOutput
from clew.runs.environment import RunEnvironment
from clew.runs.limits import LeasePolicy
from clew.storage.drafts import Draft
from clew.storage.local import LocalStorage
from clew.storage.object_store import ObjectStorage
from clew.storage.parts import Part
from clew.storage.root import StorageRoot
from clew.store.registry import SqlDatasetRegistry

LEASE = LeasePolicy(ttl_s=2, poll_s=0.5)


def frozen(root: str, function: Callable[..., Any], is_the_one: Callable[..., bool]) -> Callable[..., Any]:
    """A function before which the process stops, the first time that its arguments are those."""
    waiting = [True]

    def freezing(*arguments: Any, **more: Any) -> Any:
        if waiting and is_the_one(*arguments):
            waiting.clear()
            let_writers_end(root)
            os.kill(os.getpid(), signal.SIGSTOP)
        return function(*arguments, **more)

    return freezing


def let_writers_end(root: str) -> None:
    """Wait for other threads that write to the state store: a process frozen in mid-write would lock it for all."""
    for path in Path(root, ".clew").glob("*.db"):
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")


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


def is_first_piece(_root: ObjectStorage, _source: str, key: str) -> bool:
    """The first file that is copied to a destination: the marker of what was there is gone by then."""
    return key.rpartition("/")[2].startswith("part-")


def is_added_piece(_root: ObjectStorage, _source: str, key: str) -> bool:
    return key.endswith(".parquet") and "/log/" in key


def is_one_file(_root: ObjectStorage, _source: str, key: str) -> bool:
    return key.endswith("list.csv")


def is_marker(_root: ObjectStorage, key: str) -> bool:
    """The marker of what is there: nothing shows yet whether the folder of the attempt has been taken away."""
    return key.endswith("/_SUCCESS")


def is_plan(_root: StorageRoot, key: str, *_arguments: object) -> bool:
    return key.startswith("plans/")


def is_sent(_root: StorageRoot, key: str, *_arguments: object) -> bool:
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
    "links": (windows, "describe_once", always),
    "plan": (LocalStorage, "write_new", is_plan),
    "stored output": (ObjectStorage, "copy", is_first_piece),
    "stored marker": (ObjectStorage, "remove", is_marker),
    "stored append": (ObjectStorage, "copy", is_added_piece),
    "stored file": (ObjectStorage, "copy", is_one_file),
    "stored job": (ObjectStorage, "write_new", is_sent),
    "stored plan": (ObjectStorage, "write_new", is_plan),
}
"""What is the last write of each kind, and which call of it is meant."""


def overtaken(root: str, run_id: str, place: str) -> None:
    """Come to a place in a run, stand still there, and go on."""
    spot, name, is_the_one = PLACES[place]
    with (
        patch.object(RunEnvironment, "lease_policy", lambda _environment: LEASE),
        patch.object(spot, name, frozen(root, getattr(spot, name), is_the_one)),
    ):
        workspace = Workspace(Path(root))
        if place == "links":
            workspace.expand_windows(run_id)
            return
        with open_state(workspace.run_environment) as state:
            starter = starting.RunStarter(workspace.files, workspace.run_environment, state)
            if place in {"plan", "stored plan"}:
                starter.submit("p", "2026-01")
                return
            starter.drive(run_id, threading.Event())
            if place in {"capture", "job", "stored job"}:
                CaptureWorker(workspace.run_environment, state, starter.session, lease=LEASE).after_run(run_id)


def main() -> None:
    for line in sys.stdin:
        overtaken(*json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
