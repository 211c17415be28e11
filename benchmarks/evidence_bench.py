"""What evidence costs: reading with and without comparing digests, the chain of a run, verifying it all again.

The files that are read are those of `trace_read`; CLEW_BENCH_EVIDENCE_ROWS sets how many rows (300,000). The run is the
typical job of `engine` in one process, warm, with and without digests and ledger in turns; verifying it includes the
events, the saved state, the plan and every byte of its files and inputs. CLEW_BENCH_ROWS sets its rows (5,000,000),
CLEW_BENCH_ROUNDS how often (5). Run it alone with `python -m benchmarks evidence`.
"""

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.ledger_runs import LedgerRuns, interleaved, ledger_runs
from benchmarks.timing import medians, seconds
from benchmarks.trace_data import Bench, written

import clew
from clew.evidence.reevaluation import reevaluate
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import Part
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace

ROWS = int(os.environ.get("CLEW_BENCH_EVIDENCE_ROWS", "300000"))
ROUNDS = 25
RUN_ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
RUN_ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), ROWS)
        figures = [*histories(bench), *verifications(bench)]
    with ledger_runs(RUN_ROWS) as runs:
        return figures + run_figures(runs)


def run_figures(runs: LedgerRuns) -> list[Figure]:
    """The chain on against off, and what verifying a run costs against the run itself."""
    taken = interleaved(
        {"off": lambda: runs.run_without_chain("typical"), "on": lambda: runs.run("typical")}, RUN_ROUNDS
    )
    run = clew.open(runs.environment.root).get_run(runs.run("typical"))
    plain, deep = run.verification(), run.verification(deep=True)
    if not (plain.is_intact and deep.is_intact):
        raise SystemExit(f"the run does not verify: {plain.findings or deep.findings}")
    size = plain.checked["bytes"]
    return [
        Figure(
            f"typical, {RUN_ROWS:,} rows: digests and ledger on against off",
            taken["on"] / taken["off"],
            "times",
            at_most=1.02,
        ),
        Figure("the run", taken["on"], "s"),
        Figure("clew verify of the run", plain.seconds / size * 1e9, "s/GB"),
        Figure("clew verify against the run", plain.seconds / taken["on"], "times"),
        Figure(
            "clew verify --deep, every expression of every row, against the run", deep.seconds / taken["on"], "times"
        ),
        Figure("expressions evaluated again", deep.checked["expressions"] / deep.seconds, "1/s"),
    ]


def histories(bench: Bench) -> list[Figure]:
    """One row, once its files have been looked into; the same where they have no digests of blocks to compare."""
    ids = [bench.trace.row_ids.row_id(bench.rows * turn // ROUNDS // 40 * 40 + 8) for turn in range(ROUNDS)]
    plain = replace(bench.trace, parts=tuple(without_blocks(part) for part in bench.trace.parts))
    for row_id in ids:
        assert bench.trace.history(row_id).entries == plain.history(row_id).entries
    checked, unchecked = medians(
        [partial(bench.trace.history, each) for each in ids], [partial(plain.history, each) for each in ids]
    )
    first = median(seconds(partial(again(bench).history, ids[turn])) for turn in range(5))
    return [
        Figure(f"history of one row of {bench.rows:,}, warm, blocks compared with their digests", checked * 1e3, "ms"),
        Figure("against reading without", checked / unchecked, "times", at_most=1.3),
        Figure("the same for the first time", first * 1e3, "ms"),
    ]


def without_blocks(part: Part) -> Part:
    return replace(part, files=tuple(replace(file, blocks=()) for file in part.files))


def again(bench: Bench) -> RunTrace:
    """The trace as a new process opens it."""
    return replace(bench.trace)


def verifications(bench: Bench) -> list[Figure]:
    size = sum(file.size for part in bench.trace.parts for file in part.files)
    bytes_s = seconds(lambda: TraceFiles(storage_at(bench.root)).verify(bench.trace.parts))
    found = []
    deep_s = seconds(lambda: found.append(reevaluate(bench.trace, {})))
    assert found[0].problems == []
    bench.trace.close()
    return [
        Figure("every byte compared", bytes_s / size * 1e9, "s/GB"),
        Figure(f"every expression of {bench.rows:,} rows and six steps evaluated again", deep_s, "s"),
        Figure("expressions", found[0].expressions / deep_s, "1/s"),
    ]
