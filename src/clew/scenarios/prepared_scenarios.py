"""What running a scenario needs, on Spark or without: its plan, its period, and its datasets."""

import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime

from clew.deferred import dataclass
from clew.definitions import Period, PeriodTree, Scenario, ScenarioDataset, WorkspaceDefinitions
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.diagnostics.codes.workspace import UNKNOWN_PERIOD
from clew.plan import Plan, WorkspaceCompiler
from clew.plan.binding import bound
from clew.plan.datasets import DatasetUse
from clew.plan.planned_parameters import RunPeriod


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """A scenario with everything resolved that does not depend on who runs it."""

    plan: Plan
    period: Period
    periods: PeriodTree
    today: date
    """What TODAY() means."""
    datasets: Mapping[str, tuple[DatasetUse, ScenarioDataset]]
    """What the plan reads, by key, with the rows that the scenario gives; the input first."""


class ScenarioPreparer:
    """Prepares the scenarios of a workspace, for several threads."""

    def __init__(self, workspace: WorkspaceDefinitions) -> None:
        self._workspace = workspace
        self._compiler = WorkspaceCompiler(workspace)
        self._compiling = threading.Lock()

    def prepared(self, scenario: Scenario) -> PreparedScenario:
        """A scenario, ready to run. UserError says what is wrong with it."""
        periods = PeriodTree(scenario.periods) if scenario.periods else self._workspace.periods
        period = periods.period(scenario.period)
        if period is None:
            raise UserError(UNKNOWN_PERIOD.at(scenario.place("period"), name=scenario.period))
        run_period = RunPeriod.of(period, periods)
        with self._compiling:
            compiled = self._compiled(scenario)
        plan = bound(compiled, scenario.parameters, run_period)
        today = scenario.today or datetime.now(UTC).date()
        return PreparedScenario(plan, period, periods, today, _datasets(scenario, plan))

    def _compiled(self, scenario: Scenario) -> Plan:
        project = self._compiler.scenario_project(scenario)
        if project is None:
            raise UserError(SOURCE_UNAVAILABLE.at(scenario.place("project"), problem="its project has errors"))
        compilation = self._compiler.project_with(project, self._compiler.scenario_datasets(scenario))
        if compilation.plan is None:
            raise UserError(*compilation.diagnostics)
        return compilation.plan


def _datasets(scenario: Scenario, plan: Plan) -> dict[str, tuple[DatasetUse, ScenarioDataset]]:
    given = {name: dataset for dataset in scenario.datasets for name in (dataset.id, dataset.name)}
    found = dict[str, tuple[DatasetUse, ScenarioDataset]]()
    for use in plan.datasets_read:
        dataset = given.get(use.dataset_id) or given.get(use.name)
        if dataset is None:
            problem = f'the scenario gives no rows for the dataset "{use.dataset_id}", which the project reads'
            hint = did_you_mean(use.dataset_id, given) or "add it under datasets, with `rows: []` for none"
            raise UserError(SOURCE_UNAVAILABLE.at(scenario.place("datasets"), problem=problem, hint=hint))
        found.setdefault(use.key, (use, dataset))
    return found
