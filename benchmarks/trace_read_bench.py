"""Questions to a trace of five million rows and six steps, against scanning the same files and against Spark.

The files are as the engine leaves them: pinned input, created rows, one part of changes, row groups of 100,000 rows.
Run it alone with `python -m benchmarks trace_read`; CLEW_BENCH_ROWS sets how many rows.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.figure import Figure
from benchmarks.timing import medians, seconds
from benchmarks.trace_data import Bench, written
from pyspark.sql import SparkSession

from clew.engine.session import SessionSettings, spark_session
from clew.explain.explaining import explain

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = 9
_COLD = """
import json, sys
from datetime import date
from pathlib import Path
from clew.plan import plan_from_json
from clew.storage.roots import storage_at
from clew.storage.parts import part_from_json
from clew.trace.reader import RunTrace
root = Path(sys.argv[1])
plan = plan_from_json(json.loads((root / "plan.json").read_text()))
parts = tuple(part_from_json(each, "parts.json") for each in json.loads((root / "parts.json").read_text()))
trace = RunTrace(storage_at(root), "trace-read-bench", plan, parts, "2026-01", date(2026, 1, 31))
assert len(trace.history(sys.argv[2]).entries) > 2
"""


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), ROWS)
        figures = [*lookups(bench), *questions(bench)]
        bench.trace.close()
        with spark() as session:
            return [*figures, *against_spark(bench, session)]


def places(bench: Bench) -> list[int]:
    """Rows all over the files, each changed by two steps."""
    return [bench.rows * turn // ROUNDS // 40 * 40 + 8 for turn in range(ROUNDS)]


def lookups(bench: Bench) -> list[Figure]:
    ordinals = places(bench)
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in ordinals]
    for row_id, ordinal in zip(ids, ordinals, strict=True):
        assert bench.trace.history(row_id).entries[0].source.line == ordinal + 2  # type: ignore[union-attr]
    warm, scanned = medians(
        [partial(bench.trace.history, each) for each in ids], [partial(scan, bench.root, each) for each in ordinals]
    )
    cold = [sys.executable, "-c", _COLD, str(bench.root), ids[0]]
    started = median(seconds(lambda: subprocess.run(cold, check=True)) for _ in range(5))
    return [
        Figure(f"history of one row of {bench.rows:,}, warm", warm * 1e3, "ms", at_most=50),
        Figure("the same by scanning the files with pyarrow", scanned * 1e3, "ms"),
        Figure("scan against history", scanned / warm, "times"),
        Figure("history of one row in a new process, Python and imports included", started, "s", at_most=1),
    ]


def scan(root: Path, ordinal: int) -> object:
    """What you would write without knowing about row groups."""
    row = pq.read_table(root / "input.parquet").slice(ordinal, 1).to_pylist()
    changes = pq.read_table(root / "changes.parquet")
    return row, changes.filter(pc.equal(changes["__ordinal"], ordinal)).to_pylist()


def questions(bench: Bench) -> list[Figure]:
    trace = bench.trace
    total = trace.search("total IS NOT NULL AND account = 17").rows[0].row_id
    asked: dict[str, Callable[[], Any]] = {
        "search by a value that no step changes": lambda: trace.search(f'journal_id = "JE-{bench.rows * 2 // 3:08}"'),
        "search by a value that a step changes": lambda: trace.search("amount = 26421.34 AND account = 8"),
        "search by a function that only Python evaluates, first 100 rows": lambda: trace.search("LEN(note) = 6"),
        "first 100 records of a step": lambda: trace.step_rows(30),
        "counts by step and column": trace.counts,
        f"why a total of {bench.rows // 1000:,} rows is what it is": lambda: explain(trace, total, "total"),
    }
    for ask in asked.values():
        ask()
    return [Figure(name, median(seconds(ask) for _ in range(3)) * 1e3, "ms") for name, ask in asked.items()]


def against_spark(bench: Bench, session: SparkSession) -> list[Figure]:
    """The same questions to the same files, on a session that is warm."""
    key = f"JE-{bench.rows * 2 // 3:08}"
    assert len(in_spark(session, bench.root, f"journal_id = '{key}'")) == 1
    for ordinal in places(bench)[:3]:
        one_in_spark(session, bench.root, ordinal)
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in places(bench)]
    history, spark_history, search, spark_search = medians(
        [partial(bench.trace.history, each) for each in ids],
        [partial(one_in_spark, session, bench.root, each) for each in places(bench)],
        [lambda: bench.trace.search(f'journal_id = "{key}"')] * ROUNDS,
        [lambda: in_spark(session, bench.root, f"journal_id = '{key}'")] * ROUNDS,
    )
    bench.trace.close()
    return [
        Figure("one row and its changes asked of a warm Spark", spark_history * 1e3, "ms"),
        Figure("Spark against history of one row", spark_history / history, "times", at_least=20),
        Figure("Spark against a search by a value that no step changes", spark_search / search, "times"),
    ]


def one_in_spark(session: SparkSession, root: Path, ordinal: int) -> object:
    row = in_spark(session, root, f"_metadata.row_index = {ordinal}")
    changes = session.read.parquet(str(root / "changes.parquet")).where(f"__ordinal = {ordinal}").collect()
    assert len(row) == len(changes) == 1
    return row, changes


def in_spark(session: SparkSession, root: Path, condition: str) -> list[Any]:
    return session.read.parquet(str(root / "input.parquet")).where(condition).collect()


@contextmanager
def spark() -> Iterator[SparkSession]:
    session = spark_session(SessionSettings(master="local[2]", config={"spark.driver.memory": "2g"}, app_name="bench"))
    try:
        yield session
    finally:
        session.stop()
