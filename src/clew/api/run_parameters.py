"""The values that a run is given: parameters of its project, and facts of its period."""

from collections.abc import Mapping

from clew.api.workspace_files import WorkspaceFiles
from clew.plan import Plan
from clew.plan.binding import bound
from clew.plan.planned_parameters import RunPeriod
from clew.runs.named_periods import period_of
from clew.runs.request import VALUES


def plan_for_run(
    plan: Plan,
    files: WorkspaceFiles,
    period: str,
    of_environment: Mapping[str, object],
    given: Mapping[str, object],
) -> Plan:
    """The plan with the values of a run in place: those that are given, else those of the environment, else defaults.

    Raises UserError with everything that is wrong with the values.
    """
    declared = {each.name for each in plan.extensions.parameters}
    usual = {name: value for name, value in of_environment.items() if name in declared}
    found = period_of(files.loaded.workspace, period)
    return bound(plan, {**usual, **given}, RunPeriod.of(found, files.loaded.workspace.periods))


def parameters_of_request(plan: Plan) -> dict[str, object]:
    """What a run request says about the values of its parameters."""
    values = {each.name: each.value for each in plan.extensions.parameters}
    return {VALUES: values} if values else {}
