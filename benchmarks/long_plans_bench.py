"""Plans of 20, 50 and 200 operations: the time before the first job, and time per step, which must not jump.

Every step is an update of one of six columns on a tenth of the rows. CLEW_BENCH_LONG_ROWS sets how many (200,000).
"""

import os
import time

from benchmarks.figure import Figure
from benchmarks.ledger_runs import LedgerRuns, interleaved, ledger_runs

ROWS = int(os.environ.get("CLEW_BENCH_LONG_ROWS", "200000"))
LENGTHS = (20, 50, 200)


def measure() -> list[Figure]:
    with ledger_runs(ROWS, {f"long{length}": _project(length) for length in LENGTHS}) as runs:
        figures = [_planned(runs, length) for length in LENGTHS]
        seconds = {length: _seconds(runs, length) for length in LENGTHS}
    per_step = {length: each / length for length, each in seconds.items()}
    figures += [
        Figure(f"{length} operations: time per step against that of 20", per_step[length] / per_step[20], "times")
        for length in LENGTHS[1:]
    ]
    return [*figures, Figure("200 operations: a run with its trace, per step", per_step[200], "s")]


def _planned(runs: LedgerRuns, length: int) -> Figure:
    started = time.perf_counter()
    runs.starter.files.plan(f"long{length}")
    bound = 20 if length == 200 else None
    return Figure(f"{length} operations: planned in", time.perf_counter() - started, "s", at_most=bound)


def _seconds(runs: LedgerRuns, length: int) -> float:
    return interleaved({"run": lambda: runs.run(f"long{length}")}, 1)["run"]


def _project(length: int) -> str:
    columns = ["category", "account", "id"]
    steps = [
        f"  - {{seq: {10 * number}, name: Step {number}, type: update, selector: 'MOD(id + {number}, 10) = 3', "
        f"arguments: {{assignments: [{{column: c{number % 6}, expression: {columns[number % 3]} + {number}}}]}}}}"
        for number in range(1, length)
    ]
    output = (
        f"  - {{seq: {10 * length}, name: Publish, type: output, arguments: {{"
        f"destination: {{datasource_id: out, path: long{length}}}, columns: [id, c0, c1, c2, c3, c4, c5]}}}}"
    )
    head = [f"id: long{length}", "status: active", "input_dataset: ledger", "operations:"]
    return "\n".join([*head, *steps, output, ""])
