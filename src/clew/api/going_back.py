"""Runs on what was known at a time: the version of the project, the versions of datasets, and what had been read."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from clew.api.opened_environment import OpenedEnvironment
from clew.api.projects import plan_of_version
from clew.api.starting import starter_of
from clew.definitions import CaptureWish
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.diagnostics.codes.runs import NOT_RERUNNABLE
from clew.events.snapshot import StepStatus
from clew.events.values import LOAD_STEP
from clew.runs.clock import utc_now
from clew.runs.known_then import project_then, time_of
from clew.runs.named_periods import period_of
from clew.runs.request import AsOf, Rerun, RunFilter, RunRecord

if TYPE_CHECKING:
    from clew.api.fluent import ProjectBuilder

_PAGE = 50


def request_as_of(
    at: OpenedEnvironment,
    project: "str | ProjectBuilder",
    period: str,
    time: str | datetime,
    *,
    request_id: str | None,
    captures: Sequence[CaptureWish],
    parameters: Mapping[str, object],
) -> RunRecord:
    """Request a run of a project for a period on what was known at a time. It writes to the sandbox.

    The version of the project is the one that was active then. Registered datasets and tables are read in their
    versions of then; of other sources, what the last run of the project for the period had read. Parameters that are
    not given have the values of that run.
    """
    if not isinstance(project, str):
        problem = "a project that is written in Python has no versions, of which one could have been known then"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="name a project of the workspace"))
    moment = time_of(time if isinstance(time, str) else time.isoformat(), utc_now())
    files = at.files_now
    period_of(files.loaded.workspace, period)
    name = files.project(project).id
    version = project_then(name, at.state.projects.project_versions(name), moment)
    plan = plan_of_version(version)
    base = _last_read(at, name, period, moment)
    declared = {each.name for each in plan.extensions.parameters}
    known = {} if base is None else {key: value for key, value in base.request.values.items() if key in declared}
    return starter_of(at).submit_plan(
        plan,
        period,
        request_id=request_id,
        captures=captures,
        parameters={**known, **parameters},
        rerun=None if base is None else Rerun(base.run_id, changed_inputs=True),
        as_of=AsOf(moment, version.version),
    )


def _last_read(at: OpenedEnvironment, project: str, period: str, moment: datetime) -> RunRecord | None:
    """The last run that had looked at the sources by a time; None where no run that is kept had.

    Runs that took their inputs over from another one, or went back to a time themselves, learned nothing new.
    """
    which = RunFilter(environment_id=at.environment.name, project_id=project, period=period)
    behind: RunRecord | None = None
    while found := at.runs.runs(which, _PAGE, behind):
        for record in found:
            request = record.request
            looked = request.as_of is None and (request.rerun is None or request.rerun.changed_inputs)
            if looked and record.started_at is not None and record.started_at <= moment and _loaded(at, record, moment):
                if not record.status.is_terminal:
                    raise UserError(NOT_RERUNNABLE.anywhere(run_id=record.run_id[:8], status=record.status.value))
                return record
        behind = found[-1]
    return None


def _loaded(at: OpenedEnvironment, record: RunRecord, moment: datetime) -> bool:
    """Whether a run had committed what it read by a time."""
    step = at.runs.facts(record.run_id).snapshot.step(LOAD_STEP)
    if step is None or step.status is not StepStatus.SUCCESS:
        return False
    return step.completed_at is None or step.completed_at <= moment
