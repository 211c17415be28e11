"""Captures against plain runs and plain Parquet writes: what breakpoints, freezing and writing cost.

CLEW_BENCH_ROWS sets how many rows there are (5,000,000), CLEW_BENCH_ROUNDS how often everything is measured (5).
"""

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.ledger import write_workspace

import clew
from clew.api.run_view import RunReader
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.freezing import freeze
from clew.captures.worker import CaptureWorker
from clew.captures.writing import EndedRun
from clew.definitions import CaptureWish, capture_wishes_of_data
from clew.engine.types import DataFrame
from clew.runs.environment import RunEnvironment
from clew.storage.committed import committed_parts

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_workspace(root, ROWS)
        _with_breakpoints(root)
        workspace = clew.open(root)
        environment = RunEnvironment("dev", workspace.environment, root)
        with open_state(environment) as state:
            starter = RunStarter(workspace.files, environment, state)
            _run(starter, "keep")
            return [*_defined(starter), *_frozen(starter), *_written(starter)]


def _with_breakpoints(root: Path) -> None:
    """The typical project once more, with a breakpoint behind every step, and room for captures of all rows."""
    settings = (root / "clew.yaml").read_text(encoding="utf-8")
    room = "  dev:\n    captures: {max_rows: 1000000000, max_bytes: 100000000000}\n"
    (root / "clew.yaml").write_text(settings.replace("  dev:\n", room), encoding="utf-8")
    text = (root / "projects" / "typical.yaml").read_text(encoding="utf-8")
    labelled = text.replace("id: typical", "id: pointed").replace("path: typical", "path: pointed")
    for seq in (10, 20, 30, 40, 50, 60, 70):
        labelled = labelled.replace(f"{{seq: {seq},", f"{{seq: {seq}, assign: after_{seq},")
    (root / "projects" / "pointed.yaml").write_text(labelled, encoding="utf-8")


def _run(starter: RunStarter, project: str, captures: tuple[CaptureWish, ...] = ()) -> str:
    run = starter.submit(project, "2026-01", captures=captures)
    status = starter.drive(run.run_id, threading.Event())
    if status is None or status.value != "COMPLETED":
        raise SystemExit(f"the run of {project} is {status}")
    return run.run_id


def _defined(starter: RunStarter) -> list[Figure]:
    """Breakpoints without captures, against none, in pairs that take turns in going first."""
    for project in ("typical", "pointed"):
        _run(starter, project)
    ratios = list[float]()
    for number in range(ROUNDS):
        order = ("typical", "pointed") if number % 2 else ("pointed", "typical")
        seconds = {project: _timed(lambda project=project: _run(starter, project)) for project in order}  # type: ignore[misc]
        ratios.append(seconds["pointed"] / seconds["typical"])
    ratio = statistics.median(ratios)
    noise = (max(ratios) - min(ratios)) / 2
    return [
        Figure(f"{ROWS:,} rows: seven breakpoints, none captured, against none", ratio, "times", at_most=1.01 + noise),
        Figure("half the spread of these ratios", noise, "times"),
    ]


def _frozen(starter: RunStarter) -> list[Figure]:
    """Freezing the last point of a run over all rows against one over a hundredth of them."""
    environment, state = starter.environment, starter.state
    reader = RunReader(state, environment)

    def micros(run_id: str) -> float:
        view = reader.view(run_id)
        assert view.plan is not None
        point = view.plan.breakpoints[-1]
        parts = committed_parts(environment.storage_root, view.snapshot)
        times = list[float]()
        for _ in range(200):
            started = time.perf_counter()
            freeze(view.plan, point.name, point.seq, view.snapshot, parts)
            times.append(time.perf_counter() - started)
        return statistics.median(times) * 1e6

    many = micros(_run(starter, "pointed"))
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        write_workspace(Path(folder), ROWS // 100)
        _with_breakpoints(Path(folder))
        workspace = clew.open(folder)
        small = RunEnvironment("dev", workspace.environment, Path(folder))
        with open_state(small) as small_state:
            other = RunStarter(workspace.files, small, small_state)
            _run(other, "keep")
            run_id = _run(other, "pointed")
            reader, environment = RunReader(small_state, small), small
            few = micros(run_id)
    return [
        Figure(f"freezing a point of {ROWS:,} rows against {ROWS // 100:,}", many / few, "times", at_most=3.0),
        Figure("freezing a point, median", many, "µs"),
    ]


def _written(starter: RunStarter) -> list[Figure]:
    """A full capture, from its claim to its manifest, against Spark writing the same rows of the run as Parquet."""
    environment, state = starter.environment, starter.state
    wishes = capture_wishes_of_data({"breakpoint": "after_60", "mode": "full_raw"}, "captures")
    worker = CaptureWorker(environment, state, starter.session)
    plain = environment.root / "plain"
    pairs = list[tuple[float, float]]()
    rows = 0
    for _ in range(ROUNDS):
        run_id = _run(starter, "pointed", wishes)
        captured = _timed(lambda run_id=run_id: worker.after_run(run_id))  # type: ignore[misc]
        [record] = state.captures.of_run(run_id)
        assert record.outcome.manifest is not None
        assert record.outcome.manifest.mode.value == "full_raw"
        rows = record.outcome.manifest.rows
        same = _rows_of(starter, run_id, record.seq)
        pairs.append((captured, _timed(lambda same=same: same.write.parquet(str(plain)))))  # type: ignore[misc]
        shutil.rmtree(plain)
    ratio = statistics.median(captured / written for captured, written in pairs)
    return [
        Figure(f"full capture of {rows:,} rows against a plain Parquet write of them", ratio, "times", at_most=1.3),
        Figure("full capture, median", statistics.median(captured for captured, _ in pairs), "s"),
    ]


def _rows_of(starter: RunStarter, run_id: str, seq: int) -> DataFrame:
    view = RunReader(starter.state, starter.environment).view(run_id)
    assert view.plan is not None
    assert view.snapshot.started_at is not None
    ended = EndedRun(
        spark=starter.session(),
        root=starter.environment.storage_root,
        run_id=run_id,
        plan=view.plan,
        period="2026-01",
        today=view.snapshot.started_at.date(),
        parts=committed_parts(starter.environment.storage_root, view.snapshot),
        skipped=frozenset(),
    )
    columns = [column.name for column in view.plan.columns_after(seq)]
    return ended.rows_at(seq).select(*columns, "_period", "_labels", "_deleted")


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
