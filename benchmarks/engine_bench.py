"""Traced runs against the same jobs written by hand in PySpark, in one process, interleaved, medians.

The rows are a registered dataset, which both read where it lies. CLEW_BENCH_ROWS sets how many (5,000,000),
CLEW_BENCH_ROUNDS how often (5). Every output of Clew is compared with the hand-written one.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from benchmarks.figure import Figure
from benchmarks.ledger import HAND, write_workspace

import clew
from clew.app.running.environment import RunEnvironment
from clew.app.running.starting import RunStarter
from clew.app.running.state import open_state

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_workspace(root, ROWS)
        workspace = clew.open(root)
        environment = RunEnvironment("dev", workspace.environment, root)
        with open_state(environment) as state:
            starter = RunStarter(workspace, environment, state)
            _run(starter, "keep")
            figures = [figure for job in HAND for figure in _compare(starter, environment, job)]
    return figures


def _run(starter: RunStarter, project: str) -> None:
    run = starter.submit(project, "2026-01")
    status = starter.drive(run.run_id, threading.Event())
    if status is None or status.value != "COMPLETED":
        raise SystemExit(f"the run of {project} is {status}")


def _compare(starter: RunStarter, environment: RunEnvironment, job: str) -> list[Figure]:
    spark = starter.session()
    ledger = [str(environment.storage_root / f.path) for f in starter.state.datasets.versions("ledger")[0].files]
    by_hand = environment.root / "hand" / job

    def hand() -> None:
        HAND[job](spark, ledger, environment.root / "data", by_hand)

    seconds: dict[str, list[float]] = {"hand": [], "clew": []}
    hand()
    _run(starter, job)
    _same(environment.root / "out" / job, by_hand)
    for _ in range(ROUNDS):
        seconds["hand"].append(_timed(hand))
        seconds["clew"].append(_timed(lambda: _run(starter, job)))
    ratio = statistics.median(seconds["clew"]) / statistics.median(seconds["hand"])
    trace = sum(path.stat().st_size for path in environment.storage_root.glob("runs/*/changes/**/*.parquet"))
    return [
        Figure(f"{job}, {ROWS:,} rows: traced run against hand-written PySpark", ratio, "times", at_most=1.4),
        Figure(f"{job}: hand-written, median", statistics.median(seconds["hand"]), "s"),
        Figure(f"{job}: all traces so far", trace / 1e6, "MB"),
    ]


def _timed(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _same(ours: Path, theirs: Path) -> None:
    """Equal as multisets of rows, or the benchmark is void."""
    with duckdb.connect() as connection:
        a, b = (f"read_parquet('{path}/*.parquet')" for path in (ours, theirs))
        different = connection.execute(
            f"SELECT (SELECT count(*) FROM (FROM {a} EXCEPT ALL FROM {b})) "
            f"+ (SELECT count(*) FROM (FROM {b} EXCEPT ALL FROM {a}))"
        ).fetchone()
    if different is None or different[0]:
        raise SystemExit(f"{ours.name}: {different and different[0]} rows differ from the hand-written job")
