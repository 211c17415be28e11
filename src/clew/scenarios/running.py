"""Running scenarios: pinned inputs from their rows, the project on Spark, outputs compared."""

import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field
from functools import partial
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions import Scenario, WorkspaceDefinitions
from clew.diagnostics import ClewError
from clew.diagnostics.foreign_words import without_quoted
from clew.engine.direct import run_directly
from clew.engine.executor import pinned_rows
from clew.engine.expressing import Expressing
from clew.engine.operations.output import output_columns, output_rows
from clew.engine.output.files import Further
from clew.engine.output.publishing import Pending, Published
from clew.engine.output.registering import Register
from clew.engine.session import leaving_active_session, tuned_for_few_rows
from clew.engine.step_groups import EngineRun
from clew.engine.types import DataFrame, SparkSession
from clew.engine.working import Storage
from clew.plan.operations import OutputStep
from clew.scenarios.both import Did, QuickBeside
from clew.scenarios.inputs import GivenRows, InputWriter
from clew.scenarios.judging import Outcome, judged
from clew.scenarios.matching import ScenarioRow, changes_in
from clew.scenarios.prepared_scenarios import PreparedScenario, ScenarioPreparer
from clew.scenarios.scenario_results import ScenarioResult
from clew.storage.parts import Part
from clew.storage.root import StorageRoot
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace

_AT_A_TIME = max(2, min(8, os.cpu_count() or 2))


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

    def __init__(
        self, workspace: WorkspaceDefinitions, spark: Callable[[], SparkSession], beside: QuickBeside | None = None
    ) -> None:
        self._workspace = workspace
        self._beside = beside
        self._preparer = ScenarioPreparer(workspace)
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
        did = list[Did]()

        def run() -> Outcome:
            try:
                outcome = self.outcome(scenario, root, traces)
            except ClewError as error:
                did.append(error)
                raise
            did.append(outcome)
            return outcome

        with ExitStack() as traces:
            result = judged(scenario, run, self._telling(scenario))
            return result if self._beside is None or not did else self._beside.compared(scenario, result, did[0])

    def _telling(self, scenario: Scenario) -> Callable[[Exception], str]:
        """What to say of a defect. An error may quote values of personal or secret columns."""
        return lambda error: without_quoted(str(error)) if self._has_restricted(scenario) else str(error)

    def _has_restricted(self, scenario: Scenario) -> bool:
        """Whether an error may quote values of personal or secret columns."""
        known = [dataset.main_table for dataset in self._workspace.datasets]
        given = [dataset.main_table for dataset in scenario.datasets]
        return any(column.privacy for table in (*known, *given) if table is not None for column in table.columns)

    def outcome(self, scenario: Scenario, root: StorageRoot, traces: ExitStack) -> Outcome:
        """What the project of a scenario does. Its trace can be read until `traces` is closed."""
        prepared = self._preparer.prepared(scenario)
        plan, period = prepared.plan, prepared.period.identifier
        run_id = f"scenario-{uuid.uuid4().hex[:12]}"
        parts = self._inputs(prepared, root, run_id)
        spark = self._session.get()
        publisher = CollectingPublisher(run_id)
        by_key = {part.name: part for part in parts}
        run = EngineRun(
            run_id=run_id,
            plan=plan,
            period=period,
            expressing=Expressing(run_id, plan.input.table, prepared.today),
            storage=Storage(spark, root, lambda use: pinned_rows(spark, root, by_key[use.key], use)),
            publisher=publisher,
            registrar=NoRegistration(),
        )
        progress = run_directly(run, parts)
        trace = RunTrace(root, run_id, plan, progress.parts, period, prepared.today)
        traces.callback(trace.close)
        return Outcome(plan, publisher.outputs, partial(changes_in, trace))

    def _inputs(self, prepared: PreparedScenario, root: StorageRoot, run_id: str) -> list[Part]:
        writer = InputWriter(root, GivenRows(self._workspace.root, prepared.period, prepared.periods))
        parts = list[Part]()
        for use, dataset in prepared.datasets.values():
            ordinal = sum(len(part.files) for part in parts)
            parts.append(writer.write(run_id, use, dataset, ordinal))
        return parts
