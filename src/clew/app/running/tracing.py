"""The trace of a run, opened for reading: without Spark, and only when the run has ended."""

from clew.app.running.environment import RunEnvironment
from clew.app.running.reading import RunView, committed_parts
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.diagnostics.codes.trace import RUN_NOT_FINISHED
from clew.runs.status import RunStatus
from clew.trace.reader import RunTrace

_ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


def open_trace(view: RunView, environment: RunEnvironment) -> RunTrace:
    """What every step of a run did to every row. UserError RunNotFinished while the run goes on."""
    if view.snapshot.status not in _ENDED:
        raise UserError(RUN_NOT_FINISHED.anywhere(run_id=view.record.run_id, status=view.snapshot.status.value))
    if view.plan is None:
        raise UserError(view.plan_problem or RUN_NOT_FOUND.anywhere(run_id=view.record.run_id))
    started = view.snapshot.started_at or view.record.created_at
    return RunTrace(
        root=environment.storage_root,
        run_id=view.record.run_id,
        plan=view.plan,
        parts=committed_parts(environment.storage_root, view.snapshot),
        period=view.record.request.period,
        today=started.date(),
    )
