"""Runs of the projects on the ledger: driven in this process, as traced as every run, or with the trace taken out."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
from benchmarks.ledger import HAND, write_workspace

import clew
from clew.api.run_view import RunReader
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.engine import executor, parts
from clew.engine import step_groups as engine
from clew.engine.output import files as output_files
from clew.engine.output.digests import OutputDigest
from clew.engine.working import Working
from clew.plan.operations import ChangingStep
from clew.runs.environment import RunEnvironment
from clew.storage.block_digests import FileDigests
from clew.storage.layout import parts_folder
from clew.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LedgerRuns:
    """A workspace with a ledger that is registered as a dataset, which hand-written jobs read where it lies."""

    starter: RunStarter
    environment: RunEnvironment

    def run(self, project: str) -> str:
        """Run a project to its end."""
        run = self.starter.submit(project, "2026-01")
        status = self.starter.drive(run.run_id, threading.Event())
        if status is None or status.value != "COMPLETED":
            failure = RunReader(self.starter.state, self.environment).view(run.run_id).failure
            raise SystemExit(f"the run of {project} is {status}: {failure and failure.message}")
        return run.run_id

    def run_untraced(self, project: str) -> None:
        """Run with the writer of changes taken out, and with it what holds the outputs against the changes.

        The product has no such switch on purpose.
        """

        def nothing(
            _run: engine.EngineRun, _working: Working, steps: Sequence[ChangingStep], **_how: bool
        ) -> list[engine.StepResult]:
            return [engine.StepResult(step.seq, engine.StepCounts()) for step in steps]

        with (
            patch.object(engine, "_write_changes", nothing),
            patch.object(engine, "rows_of_output", lambda *_: None),
            patch.object(executor, "concluded", lambda *_: []),
        ):
            self.run(project)

    def run_without_chain(self, project: str) -> None:
        """Run with the digests of what is written and the entries of the ledger taken out. There is no such switch."""
        with (
            patch.object(parts, "digests_of_file", lambda *_: FileDigests("", ())),
            patch.object(parts, "digests_of", lambda _: FileDigests("", ())),
            patch.object(output_files, "digest_of", lambda _: OutputDigest("", 0)),
            patch.object(Ledger, "add", lambda *_: None),
        ):
            self.run(project)

    def run_by_hand(self, job: str) -> None:
        """The same job as one would write it."""
        versions = self.starter.state.datasets.versions("ledger")
        ledger = [self.environment.storage_root.source(file.path) for file in versions[0].files]
        HAND[job](self.starter.session(), ledger, self.environment.root / "data", self.environment.root / "hand" / job)

    def require_same(self, job: str) -> None:
        """Equal outputs, as multisets of rows, or the benchmark is void."""
        ours, theirs = self.environment.root / "out" / job, self.environment.root / "hand" / job
        with duckdb.connect() as connection:
            a, b = (f"read_parquet('{path}/*.parquet')" for path in (ours, theirs))
            different = connection.execute(
                f"SELECT (SELECT count(*) FROM (FROM {a} EXCEPT ALL FROM {b})) "
                f"+ (SELECT count(*) FROM (FROM {b} EXCEPT ALL FROM {a}))"
            ).fetchone()
        if different is None or different[0]:
            raise SystemExit(f"{job}: {different and different[0]} rows differ from the hand-written job")

    def seconds_of_load(self, run_id: str) -> float:
        """How long the first step of a run took: its inputs were pinned."""
        load = RunReader(self.starter.state, self.environment).view(run_id).snapshot.steps[0]
        if load.step_id != "load" or load.started_at is None or load.completed_at is None:
            raise SystemExit(f"{load.step_id} is not the step that loads")
        return (load.completed_at - load.started_at).total_seconds()

    def trace_of(self, run_id: str) -> tuple[int, int]:
        """Bytes of the changes of a run, and how many there are."""
        files = self.environment.storage_root.files(parts_folder(run_id, "changes"))
        size = sum(file.size for file in files if file.name.endswith(".parquet"))
        steps: Any = RunReader(self.starter.state, self.environment).view(run_id).to_json()["steps"]
        return size, sum((step["rows_updated"] or 0) + (step["rows_deleted"] or 0) for step in steps)


@contextmanager
def ledger_runs(rows: int, projects: Mapping[str, str] | None = None) -> Iterator[LedgerRuns]:
    """Such a workspace in a temporary folder, with further projects where given."""
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_workspace(root, rows)
        for name, text in (projects or {}).items():
            (root / "projects" / f"{name}.yaml").write_text(text, encoding="utf-8")
        with opened_runs(root) as runs:
            runs.run("keep")
            yield runs


@contextmanager
def opened_runs(root: Path) -> Iterator[LedgerRuns]:
    """Runs of a workspace that is there."""
    workspace = clew.open(root)
    environment = RunEnvironment("dev", workspace.environment, root)
    with open_state(environment) as state:
        yield LedgerRuns(RunStarter(workspace.files, environment, state), environment)


def interleaved(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds of each side, after one turn that does not count; sides take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, side in sides.items():
            started = time.perf_counter()
            side()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(measured) for name, measured in seconds.items()}
