"""What lineage costs a traced run: an aggregate without trace ids, with windows, and with every link written.

CLEW_BENCH_LINEAGE_ROWS sets how many rows are summed up (1,000,000; 5000000 for the larger figure), in 1,000 groups.
All sides run interleaved in one process; medians.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

from benchmarks.figure import Figure
from benchmarks.ledger import write_workspace

import clew
from clew.api import starting
from clew.api.run_view import RunReader
from clew.api.starting import RunStarter
from clew.api.state import State, open_state
from clew.api.trace_ids import ProcessTraceIds
from clew.api.workspace import Workspace
from clew.explain.run_lineage import run_lineage
from clew.runs.environment import RunEnvironment
from clew.storage.layout import run_folder
from clew.trace.run_trace import open_trace
from clew.tracelink import PublishedBlock

ROWS = int(os.environ.get("CLEW_BENCH_LINEAGE_ROWS", "1000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))

_PROJECT = """
id: totals
status: active
input_dataset: ledger
operations:
  - {seq: 10, name: Tax, type: update, selector: 'MOD(id, 8) = 3', arguments: {
      assignments: [{column: amount, expression: 'ROUND(amount * 1.19, 2)'}]}}
  - {seq: 20, name: Drop, type: delete, selector: 'MOD(id, 20) = 7'}
  - {seq: 30, name: Totals, type: aggregate, arguments: {group_by: [account],
      aggregations: [{column: total, expression: SUM(amount)}]}}
  - {seq: 40, name: Publish, type: output, selector: total IS NOT NULL, arguments: {
      destination: {datasource_id: out, path: totals}, columns: [account, total]}}
"""


class NoTraceIds:
    """For the run without them."""

    def __init__(self, _stores: object, node_id: int | None = None) -> None: ...

    def reserve(self, count: int) -> None: ...

    def publish(self, blocks: object) -> None: ...

    def run(self, done: threading.Event) -> None: ...


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_workspace(root, ROWS)
        (root / "projects" / "totals.yaml").write_text(_PROJECT, encoding="utf-8")
        workspace = clew.open(root)
        environment = RunEnvironment("dev", workspace.environment, root)
        with open_state(environment) as state:
            sides = {
                "without ids": _starter(workspace, environment, state, 0),
                "windows": _starter(workspace, environment, state, 0),
                "links": _starter(workspace, environment, state, 10**12),
            }
            _run(sides["windows"], "keep")
            seconds = {side: list[float]() for side in sides}
            runs = dict[str, str]()
            for round_ in range(ROUNDS + 1):
                for side, starter in sides.items():
                    with _ids(has_ids=side != "without ids"):
                        started = time.perf_counter()
                        runs[side] = _run(starter, "totals")
                    if round_:
                        seconds[side].append(time.perf_counter() - started)
            plain = statistics.median(seconds["without ids"])
            figures = [
                Figure(
                    f"{side} of an aggregate over {ROWS:,} rows, against the traced run without ids",
                    statistics.median(seconds[side]) / plain,
                    "times",
                    at_most,
                )
                for side, at_most in (("windows", 1.1), ("links", None))
            ]
            figures.append(Figure("the traced run without ids, median", plain, "s"))
            for side in ("windows", "links"):
                files = environment.storage_root.files(run_folder(runs[side]))
                size = sum(file.size for file in files if file.name.endswith(".parquet"))
                figures.append(Figure(f"{side}: trace of the run with them", size / 1e6, "MB"))
                figures += list(_questions(state, environment, runs[side], side))
    return figures


def _starter(workspace: Workspace, environment: RunEnvironment, state: State, links_up_to_rows: int) -> RunStarter:
    settings = environment.settings
    limits = replace(settings.tracelink, links_up_to_rows=links_up_to_rows)
    return RunStarter(workspace.files, replace(environment, settings=replace(settings, tracelink=limits)), state)


@contextmanager
def _ids(*, has_ids: bool) -> Iterator[None]:
    with patch.object(starting, "ProcessTraceIds", ProcessTraceIds if has_ids else NoTraceIds):
        yield


def _run(starter: RunStarter, project: str) -> str:
    run = starter.submit(project, "2026-01")
    status = starter.drive(run.run_id, threading.Event())
    if status is None or status.value != "COMPLETED":
        raise SystemExit(f"the run of {project} is {status}")
    return run.run_id


def _questions(state: State, environment: RunEnvironment, run_id: str, side: str) -> Iterator[Figure]:
    """The rows behind one summary, asked twice: a reader that was just opened, and the same one again."""
    block: PublishedBlock = list(state.tracelink.blocks.blocks_of_run(run_id))[-1]
    first, second = block.block.trace_id(17), block.block.trace_id(18)
    runs = RunReader(state, environment)
    reader = run_lineage(state, environment, cache(lambda name: open_trace(runs.facts(name), environment)))
    for trace_id, when in ((first, "first question"), (second, "next question")):
        started = time.perf_counter()
        found = len(list(reader.parents([trace_id])))
        figure = (time.perf_counter() - started) * 1000
        if not 0 < found <= ROWS // 1000:
            raise SystemExit(f"{found} rows behind a summary")
        yield Figure(f"{side}: the {found:,} rows behind one summary, {when}", figure, "ms")
