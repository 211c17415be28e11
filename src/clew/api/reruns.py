"""Reruns: new runs that take over from an earlier run of their project and period what is still the same."""

from collections.abc import Mapping

from clew.api.opened_environment import OpenedEnvironment
from clew.api.projects import plan_to_run
from clew.api.starting import starter_of
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import NOT_RERUNNABLE
from clew.runs.request import Rerun, RunRecord


def request_rerun(
    at: OpenedEnvironment,
    run_id: str,
    *,
    changed_inputs: bool,
    parameters: Mapping[str, object],
    request_id: str | None,
) -> RunRecord:
    """Request a run of the project and period of a run that has ended, on the version of the project that runs now.

    Parameters have the values that they had then, unless others are given.
    """
    at.principal.require(Permission.START_RUNS)
    record = at.runs.find(run_id)
    if not record.status.is_terminal:
        raise UserError(NOT_RERUNNABLE.anywhere(run_id=record.run_id[:8], status=record.status.value))
    request = record.request
    choice = plan_to_run(at.files_now, at.state, request.project_id)
    declared = {each.name for each in choice.plan.extensions.parameters}
    known = {name: value for name, value in request.values.items() if name in declared}
    return starter_of(at).submit_plan(
        choice.plan,
        request.period,
        version=choice.version,
        request_id=request_id,
        parameters={**known, **parameters},
        rerun=Rerun(record.run_id, changed_inputs=changed_inputs),
    )
