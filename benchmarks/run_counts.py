"""Counts what a run of the sample asks of Spark and of the disk. Counts are the same on a busy machine.

`python -m benchmarks.run_counts WORKSPACE ROUNDS` runs `gl-close` there, in a new process, and prints the counts as
JSON, with the seconds that it takes on the Spark that is warm then, the median of some rounds.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch

from benchmarks.timing import seconds
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]
from pyspark import SparkContext

import clew
from clew.engine.session import session_of

PERIOD = "2026-01"


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What one run took."""

    jobs: int
    """Spark jobs of its steps; those of captures come after the run."""
    calls: int
    """Calls of this process to the JVM, captures included."""
    files: int
    """Files that it has left behind, outputs and the state store among them."""
    fsyncs: int
    """Files that Clew itself waited for to be on the disk; those of SQLite are not among them."""


@contextmanager
def calls_to_the_jvm() -> Iterator[list[int]]:
    """Counts them, as the only item of a list."""
    count = [0]

    def counting(*arguments: object) -> object:
        count[0] += 1
        return send(*arguments)

    send = ClientServerConnection.send_command
    with patch.object(ClientServerConnection, "send_command", counting):
        yield count


@contextmanager
def fsyncs_of_python() -> Iterator[list[int]]:
    """Counts them, as the only item of a list."""
    count = [0]

    def counting(file: int) -> None:
        count[0] += 1
        sync(file)

    sync = os.fsync
    with patch.object(os, "fsync", counting):
        yield count


def counts_of_run(folder: Path, project: str = "gl-close", period: str = PERIOD) -> RunCounts:
    """Run a project in a workspace, on the Spark of this process."""
    before = _files(folder)
    workspace = clew.open(folder)
    session_of(workspace.run_environment)
    with calls_to_the_jvm() as calls, fsyncs_of_python() as fsyncs:
        run = workspace.run(project, period).raise_if_failed()
    context = SparkContext.getOrCreate()
    jobs = context.statusTracker().getJobIdsForGroup(f"clew-{run.id}")
    return RunCounts(len(jobs), calls[0], _files(folder) - before, fsyncs[0])


def _files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def warm_seconds(folder: Path, rounds: int) -> float:
    """How long a run takes in a process that has run it before."""
    workspace = clew.open(folder)
    return median(seconds(lambda: workspace.run("gl-close", PERIOD).raise_if_failed()) for _ in range(rounds))


if __name__ == "__main__":
    place, rounds = Path(sys.argv[1]), int(sys.argv[2])
    counts = asdict(counts_of_run(place))
    print(json.dumps(counts | {"warm": warm_seconds(place, rounds)}))
