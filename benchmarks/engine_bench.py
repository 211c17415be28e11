"""Traced runs against the same jobs written by hand in PySpark, each job in a separate process, interleaved, medians.

A process for each job is how they are run, and a JVM that has compiled other plans runs all of them more slowly.
The rows are a registered dataset, which both read where it lies. CLEW_BENCH_ROWS sets how many (5,000,000),
CLEW_BENCH_ROUNDS how often (5). Every output of Clew is compared with the hand-written one.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.figure import Figure
from benchmarks.ledger import HAND
from benchmarks.ledger_runs import LedgerRuns, interleaved, ledger_runs

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))


def measure() -> list[Figure]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        return [figure for figures in processes.map(_measured, HAND) for figure in figures]


def _measured(job: str) -> list[Figure]:
    with ledger_runs(ROWS) as runs:
        return _compare(runs, job)


def _compare(runs: LedgerRuns, job: str) -> list[Figure]:
    seconds = interleaved(
        {
            "hand": lambda: runs.run_by_hand(job),
            "untraced": lambda: runs.run_untraced(job),
            "clew": lambda: runs.run(job),
        },
        ROUNDS,
    )
    runs.require_same(job)
    size, changes = runs.trace_of(runs.run(job))
    hand, untraced, clew = seconds["hand"], seconds["untraced"], seconds["clew"]
    return [
        Figure(f"{job}, {ROWS:,} rows: traced run against hand-written PySpark", clew / hand, "times", at_most=1.4),
        Figure(f"{job}: our engine with the trace left out against hand-written", untraced / hand, "times"),
        Figure(f"{job}: traced run against our engine with the trace left out", clew / untraced, "times"),
        Figure(f"{job}: trace per change of a row", size / changes, "bytes"),
    ]
