"""The trace of a run, opened for reading: without Spark, and only when the run has ended."""

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.diagnostics.codes.trace import RUN_NOT_FINISHED
from clew.events.snapshot import RunSnapshot, RunStatus, StepStatus
from clew.plan.plan import Plan
from clew.runs.environment import RunEnvironment
from clew.runs.view import RunFacts
from clew.storage.checked_files import OnDamage
from clew.storage.committed import committed_parts
from clew.trace.reader import RunTrace
from clew.trace.run_parts import NotDone

_ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


def open_trace(view: RunFacts, environment: RunEnvironment, on_damage: OnDamage | None = None) -> RunTrace:
    """What every step of a run did to every row. UserError RunNotFinished while the run is not finished.

    `on_damage` is told of files that are not as they were written.
    """
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
        today=view.record.request.today(started),
        not_done=steps_not_done(view.plan, view.snapshot),
        question_limits=environment.question_limits(),
        on_damage=on_damage,
    )


def steps_not_done(plan: Plan, snapshot: RunSnapshot) -> dict[int, NotDone]:
    """The steps that left no trace because the run has not done them."""
    status = {step.seq: step.status for step in snapshot.steps}
    found = dict[int, NotDone]()
    for step in plan.steps:
        if status.get(step.seq) is StepStatus.SKIPPED:
            found[step.seq] = "skipped"
        elif status.get(step.seq) is not StepStatus.SUCCESS:
            found[step.seq] = "not reached"
    return found
