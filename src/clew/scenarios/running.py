"""Running scenarios: pinned inputs from their rows, the project on Spark, outputs compared."""

import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import Period, PeriodTree, Scenario, WorkspaceDefinitions
from clew.diagnostics import ClewError, Diagnostic, UserError, did_you_mean
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.diagnostics.codes.workspace import UNKNOWN_PERIOD
from clew.diagnostics.foreign_words import without_quoted
from clew.engine.direct import run_directly
from clew.engine.executor import datasets_of, pinned_rows
from clew.engine.expressing import Expressing
from clew.engine.operations.output import output_columns, output_rows
from clew.engine.output.files import Further
from clew.engine.output.publishing import Pending, Published
from clew.engine.output.registering import Register
from clew.engine.session import leaving_active_session, tuned_for_few_rows
from clew.engine.step_groups import EngineRun
from clew.engine.types import DataFrame, SparkSession
from clew.engine.working import Storage
from clew.plan import Plan, WorkspaceCompiler
from clew.plan.binding import bound
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep
from clew.plan.planned_parameters import RunPeriod
from clew.scenarios.inputs import InputWriter
from clew.scenarios.matching import Mismatch, ScenarioRow, compare, trace_mismatches
from clew.storage.parts import Part
from clew.storage.root import StorageRoot
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace

_AT_A_TIME = max(2, min(8, os.cpu_count() or 2))

ScenarioStatus = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How a scenario went: pass, fail with mismatches, or an error that it did not expect."""

    name: str
    file: str
    status: ScenarioStatus
    seconds: float
    mismatches: tuple[Mismatch, ...] = ()
    error: Diagnostic | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `test --json`."""
        return {
            "name": self.name,
            "file": self.file,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
            "error": self.error.to_json() if self.error else None,
        }


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """What a scenario's project did."""

    plan: Plan
    outputs: Mapping[int, tuple[Sequence[str], Sequence[ScenarioRow]]]
    """Columns and rows of each output, by seq."""
    parts: tuple[Part, ...]
    root: StorageRoot
    run_id: str
    period: str


@dataclass(slots=True)
class CollectingPublisher:
    """Keeps the rows of outputs in memory instead of writing them anywhere."""

    run_id: str
    outputs: dict[int, tuple[Sequence[str], Sequence[ScenarioRow]]] = field(default_factory=dict)

    def takes_further_rows(self, step: OutputStep) -> bool:
        """Rows in memory are not read back."""
        del step
        return False

    def prepare(
        self,
        rows: DataFrame,
        step: OutputStep,
        expressing: Expressing,
        fence: int = 0,
        further: Further | None = None,
    ) -> Pending:
        """Collect the rows that the step selects."""
        del fence, further
        chosen = output_rows(rows, step, expressing).selectExpr(*output_columns(step, self.run_id))
        collected = [record.asDict() for record in chosen.collect()]
        self.outputs[step.seq] = (step.columns, collected)
        return Pending(len(collected), lambda: Published(len(collected)))


class NoRegistration:
    """Registers nothing: a scenario leaves no dataset behind."""

    def prepare(self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: object) -> Register:
        """Register nothing."""
        del rows, step, expressing, lease
        return lambda _table: None


class SharedSession:
    """One Spark session for several threads, started by the first that needs it, tuned until it is closed."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._started: SparkSession | None = None
        self._tuned = ExitStack()

    def get(self) -> SparkSession:
        """The session."""
        with self._lock:
            if self._started is None:
                session = self._spark()
                self._tuned.enter_context(tuned_for_few_rows(session))
                self._started = session
            return self._started

    def close(self) -> None:
        """Restore the settings of the session."""
        with self._lock:
            self._tuned.close()
            self._started = None


class ScenarioRunner:
    """Runs the scenarios of a workspace in one Spark session and one temporary folder."""

    def __init__(self, workspace: WorkspaceDefinitions, spark: Callable[[], SparkSession]) -> None:
        self._workspace = workspace
        self._compiler = WorkspaceCompiler(workspace)
        self._compiling = threading.Lock()
        self._session = SharedSession(spark)

    def run(self, scenarios: Sequence[Scenario]) -> Iterator[ScenarioResult]:
        """Results in the order of the scenarios, a few of which run at a time: most of each is waiting for Spark."""
        with tempfile.TemporaryDirectory(prefix="clew-scenarios-") as folder, ExitStack() as stack:
            stack.enter_context(leaving_active_session())
            stack.callback(self._session.close)
            threads = stack.enter_context(ThreadPoolExecutor(_AT_A_TIME, "scenario"))
            running = [threads.submit(self._one, scenario, storage_at(Path(folder))) for scenario in scenarios]
            try:
                for result in running:
                    yield result.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _one(self, scenario: Scenario, root: StorageRoot) -> ScenarioResult:
        started = time.perf_counter()
        expected = scenario.expected_error.code if scenario.expected_error else None
        mismatches, error = list[Mismatch](), None
        try:
            outcome = self._do(scenario, root)
            if expected is not None:
                mismatches = [Mismatch("error", "run", message=f"expected the error {expected}, but it completed")]
            else:
                mismatches = [*_output_mismatches(scenario, outcome), *_trace_mismatches(scenario, outcome)]
        except ClewError as raised:
            codes = [diagnostic.code for diagnostic in raised.diagnostics]
            if expected is not None and expected not in codes:
                message = f"expected the error {expected}, got {raised.code}: {raised.diagnostic.message}"
                mismatches = [Mismatch("error", "run", message=message)]
            elif expected is None:
                error = raised.diagnostic
        except Exception as broken:  # noqa: BLE001 - the scenarios behind this one still want to be run
            told = without_quoted(str(broken)) if self._has_restricted(scenario) else str(broken)
            error = INTERNAL_ERROR.anywhere(problem=f"{type(broken).__name__}: {told}")
        status: ScenarioStatus = "error" if error else "fail" if mismatches else "pass"
        seconds = time.perf_counter() - started
        return ScenarioResult(scenario.name, scenario.file, status, seconds, tuple(mismatches), error)

    def _has_restricted(self, scenario: Scenario) -> bool:
        """Whether an error may quote values of personal or secret columns."""
        known = [dataset.main_table for dataset in self._workspace.datasets]
        given = [dataset.main_table for dataset in scenario.datasets]
        return any(column.privacy for table in (*known, *given) if table is not None for column in table.columns)

    def _do(self, scenario: Scenario, root: StorageRoot) -> ScenarioOutcome:
        periods = PeriodTree(scenario.periods) if scenario.periods else self._workspace.periods
        period = self._period(scenario, periods)
        run_period = RunPeriod(period.identifier, period.level, period.start_date, period.end_date)
        plan = bound(self._plan(scenario), scenario.parameters, run_period)
        run_id = f"scenario-{uuid.uuid4().hex[:12]}"
        writer = InputWriter(root, self._workspace.root, period, periods)
        parts = self._inputs(scenario, datasets_of(plan), writer, run_id)
        spark = self._session.get()
        expressing = Expressing(run_id, plan.input.table, datetime.now(UTC).date())
        publisher = CollectingPublisher(run_id)
        by_key = {part.name: part for part in parts}
        run = EngineRun(
            run_id=run_id,
            plan=plan,
            period=period.identifier,
            expressing=expressing,
            storage=Storage(spark, root, lambda use: pinned_rows(spark, root, by_key[use.key], use)),
            publisher=publisher,
            registrar=NoRegistration(),
        )
        progress = run_directly(run, parts)
        return ScenarioOutcome(plan, publisher.outputs, progress.parts, root, run_id, period.identifier)

    def _period(self, scenario: Scenario, periods: PeriodTree) -> Period:
        period = periods.period(scenario.period)
        if period is None:
            raise UserError(UNKNOWN_PERIOD.at(scenario.place("period"), name=scenario.period))
        return period

    def _plan(self, scenario: Scenario) -> Plan:
        with self._compiling:
            return self._compiled(scenario)

    def _compiled(self, scenario: Scenario) -> Plan:
        project = self._compiler.scenario_project(scenario)
        if project is None:
            raise UserError(SOURCE_UNAVAILABLE.at(scenario.place("project"), problem="its project has errors"))
        compilation = self._compiler.project_with(project, self._compiler.scenario_datasets(scenario))
        if compilation.plan is None:
            raise UserError(*compilation.diagnostics)
        return compilation.plan

    def _inputs(self, scenario: Scenario, uses: Sequence[DatasetUse], writer: InputWriter, run_id: str) -> list[Part]:
        given = {name: dataset for dataset in scenario.datasets for name in (dataset.id, dataset.name)}
        parts = list[Part]()
        for use in uses:
            dataset = given.get(use.dataset_id) or given.get(use.name)
            if dataset is None:
                problem = f'the scenario gives no rows for the dataset "{use.dataset_id}", which the project reads'
                hint = did_you_mean(use.dataset_id, given) or "add it under datasets, with `rows: []` for none"
                raise UserError(SOURCE_UNAVAILABLE.at(scenario.place("datasets"), problem=problem, hint=hint))
            ordinal = sum(len(part.files) for part in parts)
            parts.append(writer.write(run_id, use, dataset, ordinal))
        return parts


def _trace_mismatches(scenario: Scenario, outcome: ScenarioOutcome) -> list[Mismatch]:
    if not scenario.expected_trace:
        return []
    trace = RunTrace(
        outcome.root, outcome.run_id, outcome.plan, outcome.parts, outcome.period, datetime.now(UTC).date()
    )
    try:
        return trace_mismatches(scenario, trace)
    finally:
        trace.close()


def _output_mismatches(scenario: Scenario, outcome: ScenarioOutcome) -> list[Mismatch]:
    names = {str(step.seq): step.seq for step in outcome.plan.outputs}
    names |= {step.name: step.seq for step in outcome.plan.outputs}
    if scenario.expected_output is not None:
        seqs = sorted(outcome.outputs)
        if len(seqs) != 1:
            last = f"the project has {len(seqs)} outputs; name them with expected_outputs"
            return [Mismatch("error", "expected_output", message=last)]
        columns, rows = outcome.outputs[seqs[0]]
        return compare(f"output {seqs[0]}", scenario.expected_output, rows, columns)
    found = list[Mismatch]()
    for name, expected in (scenario.expected_outputs or {}).items():
        if name not in names:
            hint = did_you_mean(name, names) or f"the outputs are {', '.join(names)}"
            found.append(Mismatch("error", f'expected_outputs "{name}"', message=f"there is no such output; {hint}"))
            continue
        columns, rows = outcome.outputs[names[name]]
        found += compare(f"output {name}", expected, rows, columns)
    return found
