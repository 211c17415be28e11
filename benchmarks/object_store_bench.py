"""Storage on a loopback S3 server against local disk, and local disk against an earlier Clew; sides take turns.

The server keeps objects in memory and is written in Python, so that ratios say how many requests there are and how they
are waited for, not how fast S3 is. CLEW_BENCH_ROWS sets the rows of the trace that is asked (5,000,000),
CLEW_BENCH_RUN_ROWS those of traced runs (300,000; 0 leaves them out), CLEW_BENCH_ROUNDS how often (5). CLEW_BENCH_BASE
is the folder of another checkout: with it, traced runs on local disk are compared with those of that one.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import yaml
from benchmarks.figure import Figure
from benchmarks.ledger import write_workspace
from benchmarks.timing import medians
from benchmarks.trace_data import Bench, written
from tests.engine.spark_jars import s3_jars
from tests.storage.moved_to_s3 import settings_on_s3
from tests.storage.s3_proxy import s3_proxy
from tests.storage.s3_server import KEYS, S3Server, s3_server

from clew.explain.explaining import explain
from clew.storage.local_copies import LocalCopies
from clew.storage.object_store import ObjectStorage
from clew.storage.row_identity import RowIds
from clew.trace.reader import RunTrace

HERE = Path(__file__).parent.parent
ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
RUN_ROWS = int(os.environ.get("CLEW_BENCH_RUN_ROWS", "300000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))
BASE = os.environ.get("CLEW_BENCH_BASE")


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder, s3_server() as s3:
        place = Path(folder)
        return [
            *_questions(place / "trace", s3),
            *_runs(place / "s3", s3),
            *(_against_base(place / "base") if BASE and RUN_ROWS else ()),
        ]


# Questions to a trace


def _questions(folder: Path, s3: S3Server) -> list[Figure]:
    bench = written(folder, ROWS)
    root = s3.storage()
    for part in bench.trace.parts:
        for file in part.files:
            with root.create(file.path) as target:
                target.write((bench.root / file.path).read_bytes())
    ids = [RowIds(bench.trace.run_id).row_id(ROWS * turn // ROUNDS // 40 * 40 + 8) for turn in range(ROUNDS)]
    totals = [RowIds(bench.trace.run_id).row_id(_total(bench, turn)) for turn in range(ROUNDS)]
    with closing(_opened(bench, root)) as remote:
        for row_id in ids:
            assert remote.history(row_id) == bench.trace.history(row_id)
        history = medians(
            [partial(_history, bench, root, each) for each in ids],
            [partial(_history, bench, bench.trace.root, each) for each in ids],
        )
        warm = medians(
            [partial(remote.history, each) for each in ids], [partial(bench.trace.history, each) for each in ids]
        )
        explained = medians(
            [partial(explain, remote, each, "total") for each in totals],
            [partial(explain, bench.trace, each, "total") for each in totals],
        )
    figures = [
        Figure(f"history of one row of {ROWS:,} in a trace opened for it: S3 against disk", _ratio(history), "times"),
        Figure("the same on S3", history[0] * 1e3, "ms"),
        Figure("history of one row in a trace that is open: S3 against disk", _ratio(warm), "times"),
        Figure("the same on S3", warm[0] * 1e3, "ms"),
        Figure("explanation of a total: S3 against disk", _ratio(explained), "times"),
        Figure("the same on S3", explained[0], "s"),
        *_counted(bench, root, ids[1], folder / "copies", s3),
        *_explained(bench, root, totals, s3),
    ]
    bench.trace.close()
    return figures


def _total(bench: Bench, turn: int) -> int:
    created = next(part for part in bench.trace.parts if part.kind == "created")
    return created.files[0].first_ordinal + turn


def _opened(bench: Bench, root: object) -> RunTrace:
    local = bench.trace
    return RunTrace(root, local.run_id, local.plan, local.parts, local.period, local.today)  # type: ignore[arg-type]


def _history(bench: Bench, root: object, row_id: str) -> None:
    with closing(_opened(bench, root)) as trace:
        trace.history(row_id)


def _counted(bench: Bench, root: ObjectStorage, row_id: str, copies: Path, s3: S3Server) -> Iterator[Figure]:
    with s3_proxy(s3.endpoint) as proxy:
        behind = ObjectStorage(root.place, s3.through(proxy.endpoint).access)
        for name, place in (("", behind), (", copies kept", replace(behind, copies=LocalCopies(copies, 64 << 20)))):
            for turn in ("first", "second"):
                with proxy.counting() as asked:
                    _history(bench, place, row_id)
                told = f"history of one row in a trace opened for it, {turn} time{name}"
                yield Figure(f"{told}: requests", len(asked), "requests", at_most=12)
                yield Figure(f"{told}: read from S3", proxy.bytes_sent / 1e6, "MB")


_LATENCY = 0.03
"""Seconds: about what a store in the same region takes to answer."""


def _explained(bench: Bench, root: ObjectStorage, totals: list[str], s3: S3Server) -> Iterator[Figure]:
    """What an explanation asks for, and how long it takes at a distance: each answer is held back for a while."""
    with s3_proxy(s3.endpoint) as proxy:
        proxy.latency = _LATENCY
        behind = ObjectStorage(root.place, s3.through(proxy.endpoint).access)
        with closing(_opened(bench, behind)) as trace:
            for turn, total in zip(("first", "second"), totals[:2], strict=True):
                with proxy.counting() as asked:
                    started = time.perf_counter()
                    explain(trace, total, "total")
                    seconds = time.perf_counter() - started
                told = f"explanation of a total, {turn} time, {_LATENCY * 1e3:.0f} ms for each request"
                yield Figure(f"{told}: requests", len(asked), "requests", at_most=60)
                yield Figure(f"{told}: waited for one after the other", proxy.round_trips, "requests", at_most=30)
                yield Figure(f"{told}: read from S3", proxy.bytes_sent / 1e6, "MB")
                yield Figure(told, seconds, "s")


# Runs

_RUNS = """
import sys, time, clew
workspace = clew.open(sys.argv[1])
def seconds(project):
    started = time.perf_counter()
    run = workspace.run(project, period="2026-01").to_json()
    assert run["status"] == "COMPLETED", run
    return time.perf_counter() - started
seconds("keep")
for line in sys.stdin:
    print("seconds", seconds(line.strip()), flush=True)
"""


@dataclass(frozen=True, slots=True)
class _Runs:
    """A process with one Spark that runs projects of a workspace."""

    process: "subprocess.Popen[str]"

    def seconds(self, project: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{project}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit("a run failed")


@contextmanager
def _runs_in(folder: Path, checkout: Path) -> Iterator[_Runs]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "LEDGER_KEYS": KEYS}
    command = [sys.executable, "-c", _RUNS, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=environment, cwd=folder) as process:  # type: ignore[call-overload]
        yield _Runs(process)
        process.stdin.close()


def _workspace(folder: Path, s3: S3Server | None = None) -> Path:
    folder.mkdir(parents=True)
    write_workspace(folder, RUN_ROWS)
    settings = yaml.safe_load((folder / "clew.yaml").read_text())
    spark = {"master": "local[2]", "config": {"spark.driver.memory": "1g"}}
    environment = {"spark": spark}
    if s3 is not None:
        environment |= settings_on_s3(s3.storage(), s3.endpoint)
        environment["spark"] = {**spark, "jars": s3_jars()}
    settings["environments"]["dev"] = environment
    (folder / "clew.yaml").write_text(yaml.safe_dump(settings))
    return folder


def _turns(*sides: _Runs) -> list[list[float]]:
    """The seconds of each side in each round, after one that does not count; who goes first changes."""
    measured = [list[float]() for _ in sides]
    for turn in range(ROUNDS + 1):
        order = range(len(sides)) if turn % 2 else reversed(range(len(sides)))
        for side in order:
            seconds = sides[side].seconds("typical")
            if turn:
                measured[side].append(seconds)
    return measured


def _runs(folder: Path, s3: S3Server) -> list[Figure]:
    if not RUN_ROWS:
        return []
    with ExitStack() as stack:
        remote = stack.enter_context(_runs_in(_workspace(folder / "remote", s3), HERE))
        local = stack.enter_context(_runs_in(_workspace(folder / "local"), HERE))
        on_s3, on_disk = _turns(remote, local)
    ratios = [a / b for a, b in zip(on_s3, on_disk, strict=True)]
    return [
        Figure(f"traced run of {RUN_ROWS:,} rows, storage on S3: against disk", median(ratios), "times"),
        Figure("the same on S3", median(on_s3), "s"),
    ]


def _against_base(folder: Path) -> list[Figure]:
    assert BASE is not None
    with ExitStack() as stack:
        now = stack.enter_context(_runs_in(_workspace(folder / "now"), HERE))
        before = stack.enter_context(_runs_in(_workspace(folder / "before"), Path(BASE)))
        seconds, seconds_before = _turns(now, before)
    ratios = sorted(a / b for a, b in zip(seconds, seconds_before, strict=True))
    return [
        Figure(
            f"traced run of {RUN_ROWS:,} rows on disk: against the state before object stores",
            median(ratios),
            "times",
            at_most=1.02,
        ),
        Figure("half the spread of these ratios", (ratios[-1] - ratios[0]) / 2, "times"),
    ]


def _ratio(sides: list[float]) -> float:
    return sides[0] / sides[1]
