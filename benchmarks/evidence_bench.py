"""What evidence costs: reading with and without comparing digests, verifying every byte, evaluating every row again.

The files are those of `trace_read`. Run it alone with `python -m benchmarks evidence`; CLEW_BENCH_EVIDENCE_ROWS sets
how many rows (300,000).
"""

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.timing import medians, seconds
from benchmarks.trace_data import Bench, written

from clew.evidence.reevaluation import reevaluate
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import Part
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace

ROWS = int(os.environ.get("CLEW_BENCH_EVIDENCE_ROWS", "300000"))
ROUNDS = 25


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), ROWS)
        return [*histories(bench), *verifications(bench)]


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
