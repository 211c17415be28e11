"""A plan run at once, without a state store: for scenarios, where nothing has to survive."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from clew.diagnostics import ClewError, UserError
from clew.engine.blame import SPARK_ERRORS, culprit, is_value_error, translated
from clew.engine.checking import stopped_by
from clew.engine.step_groups import EngineRun, StepResult, execute, next_group
from clew.engine.working import StepsBehind, rebuild
from clew.events.values import CheckResult
from clew.plan.operations import Step
from clew.storage.parts import Part


def run_directly(
    run: EngineRun, inputs: Sequence[Part], on_done: Callable[[StepResult], None] = lambda _result: None
) -> StepsBehind:
    """Do all steps of a plan over pinned inputs, and give what they wrote. ClewError where a step fails."""
    progress = StepsBehind(tuple(inputs))
    remaining = list(run.plan.steps)
    done = list[CheckResult]()
    while remaining:
        group = next_group(run.plan, remaining)
        decided = {(check.name, check.at) for check in done}
        due = [check for check in run.plan.checks if check.at <= group[-1].seq and check.quarantined_by is None]
        here = replace(run, due=tuple(check for check in due if (check.name, check.at) not in decided))
        for result in _execute(here, group, progress):
            done += result.checks
            _refuse(result.refusal or stopped_by(result.checks, run.plan))
            progress = StepsBehind((*progress.parts, *(described.part for described in result.parts)))
            on_done(result)
        remaining = remaining[len(group) :]
    return progress


def _refuse(error: UserError | None) -> None:
    if error is not None:
        raise error


def _execute(run: EngineRun, group: Sequence[Step], progress: StepsBehind) -> tuple[StepResult, ...]:
    try:
        return execute(run, group, progress)
    except SPARK_ERRORS as error:
        if len(group) == 1:
            raise _explained(run, error, group[0], progress) from error
    results = list[StepResult]()
    for step in group:
        new = (described.part for each in results for described in each.parts)
        results += _execute(run, [step], StepsBehind((*progress.parts, *new)))
    return tuple(results)


def _explained(run: EngineRun, error: Exception, step: Step, progress: StepsBehind) -> ClewError:
    if is_value_error(error):
        before = max((each.seq for each in run.plan.steps if each.seq < step.seq), default=0)
        working = rebuild(run.plan, progress, run.period, run.storage, run.expressing, until=before)
        found = culprit(working, step, run.plan, run.storage, run.expressing)
        if found is not None:
            return found
    return translated(error, step, run.plan)
