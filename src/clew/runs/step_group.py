"""Executing a group of steps: its attempts, its commit, its failure."""

import logging
import random as random_numbers
from collections.abc import Callable, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.events.bodies import EventBody, RunFailed, StepCompleted, StepFailed, StepSkipped, StepStarted
from clew.events.envelope import NewEvent
from clew.events.snapshot import RunSnapshot, RunStatus, StepSnapshot, StepStatus
from clew.events.values import CheckResult, Failure, FailureCategory, PlannedStep, failure_of, failure_of_unknown
from clew.runs.active_run import ActiveRun
from clew.runs.clock import Clock, utc_now
from clew.runs.executor import Interruption, StepAttempt, StepInterrupted, StepOutput
from clew.runs.leases import WriteBudgetExceeded
from clew.runs.limits import Random, RetryPolicy, delay_before
from clew.runs.request import RunRecord
from clew.runs.rotation import remaining_steps
from clew.runs.run_log import note, note_error
from clew.runs.stores import AttemptStore

_log = logging.getLogger(__name__)


CommitListener = Callable[[RunRecord, RunSnapshot], None]
"""Called after steps have committed, before the next ones begin. It must not raise."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why a group did not finish."""

    failure: Failure
    names_its_step: bool
    """Whether the first step that is left is to blame, or any of them."""
    checks: tuple[CheckResult, ...] = ()
    """What checks have found."""


class StepGroups:
    """Drives groups of steps through an executor."""

    def __init__(
        self,
        attempts: AttemptStore,
        *,
        retry: RetryPolicy,
        on_commit: CommitListener = lambda _run, _snapshot: None,
        clock: Clock = utc_now,
        random: Random = random_numbers.random,
    ) -> None:
        self._attempts = attempts
        self._retry = retry
        self._on_commit = on_commit
        self._clock = clock
        self._random = random

    def run(self, active: ActiveRun, steps: Sequence[PlannedStep]) -> None:
        """Bring the steps to an outcome in the history, or raise `StepInterrupted`."""
        group = self._begin(active, steps)
        for attempt in range(1, self._retry.engine_attempts + 1):
            trouble = self._attempt(active, group)
            group = self._unfinished(active, group)
            if trouble is None or not group:
                break
            if trouble.failure.retryable and attempt < self._retry.engine_attempts:
                _log.warning("run %s: %s; trying again", active.live.run.run_id, trouble.failure.message)
                active.cancel.wait(delay_before(attempt + 1, self._retry, self._random))
            interruption = active.cancel.reason
            if interruption is not None:
                return self._interrupted(active, group[0], interruption)
            if trouble.failure.retryable and attempt < self._retry.engine_attempts:
                group = self._again(active, group)
                continue
            if not trouble.names_its_step and len(group) > 1:
                return self._one_by_one(active, group)
            return self._fail(active, group[0], trouble)
        return None

    def _begin(self, active: ActiveRun, steps: Sequence[PlannedStep]) -> list[StepAttempt]:
        """Record the beginning of each step. One that was begun before, by a worker that died, is a further attempt."""
        group = [StepAttempt(step, _logical_attempt(active, step), 1) for step in steps]
        events = [self._event(attempt, StepStarted(attempt.step.seq, attempt.step.name)) for attempt in group]
        stored = active.live.record(*events)
        begun_before = {
            known.step_id for event, known in zip(events, stored, strict=False) if known.event_id != event.event_id
        }
        return [
            self._numbered(active, attempt) if attempt.step.step_id in begun_before else attempt for attempt in group
        ]

    def _again(self, active: ActiveRun, group: Sequence[StepAttempt]) -> list[StepAttempt]:
        return [self._numbered(active, attempt) for attempt in group]

    def _numbered(self, active: ActiveRun, attempt: StepAttempt) -> StepAttempt:
        live = active.live
        number = live.patiently(
            lambda: self._attempts.next_engine_attempt(live.lease, attempt.step.step_id, attempt.logical_attempt_id)
        )
        return replace(attempt, engine_attempt_id=number)

    def _attempt(self, active: ActiveRun, group: Sequence[StepAttempt]) -> _Trouble | None:
        """Execute and commit. What is left to do afterwards is seen from the snapshot."""
        named = _named(group)
        note(f"{named}: begins")
        try:
            outputs = active.executor.execute(tuple(group), active.context())
        except StepInterrupted as interrupted:
            return _Trouble(_cancelled(interrupted.reason), names_its_step=True)
        except ClewError as error:
            note_error(f"{named}: failed", error)
            return _Trouble(failure_of(error), names_its_step=len(group) == 1)
        except Exception as error:  # noqa: BLE001 -- whatever an engine raises fails the step, not the worker
            note_error(f"{named}: failed", error)
            _log.debug("run %s: the engine failed", active.live.run.run_id, exc_info=True)
            return _Trouble(failure_of_unknown(error), names_its_step=len(group) == 1)
        for attempt, output in zip(group, outputs, strict=False):
            problem = output.error.message if output.error is not None else ""
            note(f"{_named([attempt])}: {_told(output)}", problem)
        return self._commit(active, group, outputs)

    def _commit(
        self, active: ActiveRun, group: Sequence[StepAttempt], outputs: Sequence[StepOutput]
    ) -> _Trouble | None:
        """Store the outcomes of all steps that have one, in one write."""
        finished = [
            self._event(attempt, _outcome(output))
            for attempt, output in zip(group, outputs, strict=False)
            if output.status is not StepStatus.FAILED
        ]
        failed = outputs[len(finished)] if len(outputs) > len(finished) else None
        try:
            if finished:
                active.live.record(*finished)
                self._on_commit(active.live.run, active.live.snapshot)
        except WriteBudgetExceeded as late:
            # Whether the store has it after all, only the store can say.
            active.live.patiently(active.live.refresh)
            return _Trouble(failure_of(late), names_its_step=True)
        if failed is None and len(finished) < len(group):
            message = f"the engine returned {len(finished)} outputs for {len(group)} steps"
            return _Trouble(Failure("EngineFailure", message, FailureCategory.ENGINE), names_its_step=True)
        return _Trouble(_error_of(failed), names_its_step=True, checks=failed.checks) if failed is not None else None

    def _unfinished(self, active: ActiveRun, group: Sequence[StepAttempt]) -> list[StepAttempt]:
        left = {step.step_id for step in remaining_steps(active.live.snapshot, active.executor.steps)}
        return [attempt for attempt in group if attempt.step.step_id in left]

    def _one_by_one(self, active: ActiveRun, group: Sequence[StepAttempt]) -> None:
        """A fused job failed as a whole: its steps alone show which of them is to blame."""
        for attempt in group:
            self.run(active, [attempt.step])
            step = active.live.snapshot.step(attempt.step.step_id)
            if active.live.snapshot.status is not RunStatus.RUNNING or step is None or not step.status.is_done:
                return

    def _interrupted(self, active: ActiveRun, attempt: StepAttempt, reason: Interruption) -> None:
        """After CANCEL the step has failed. Otherwise it has no outcome, and another worker takes it up."""
        if reason is not Interruption.CANCELLED:
            raise StepInterrupted(reason)
        failed = self._event(attempt, StepFailed(_cancelled(reason)))
        active.live.patiently(lambda: active.live.record(failed))

    def _fail(self, active: ActiveRun, attempt: StepAttempt, trouble: _Trouble) -> None:
        """Record the failure: of the logical attempt, and of the run unless the policy allows another attempt."""
        failure = trouble.failure
        events = [self._event(attempt, StepFailed(failure, trouble.checks))]
        if not (failure.retryable and attempt.logical_attempt_id < self._retry.logical_attempts):
            ended = RunFailed(failure, attempt.step.step_id)
            events.append(NewEvent(ended, self._clock(), logical_attempt_id=active.live.snapshot.cycle))
        active.live.patiently(lambda: active.live.record(*events))

    def _event(self, attempt: StepAttempt, body: EventBody) -> NewEvent:
        return NewEvent(
            body,
            emitted_at=self._clock(),
            step_id=attempt.step.step_id,
            logical_attempt_id=attempt.logical_attempt_id,
            engine_attempt_id=attempt.engine_attempt_id,
        )


def _logical_attempt(active: ActiveRun, step: PlannedStep) -> int:
    """A step that failed in a run that continues gets the policy's next attempt."""
    known = active.live.snapshot.step(step.step_id) or StepSnapshot(step.step_id)
    return known.logical_attempt_id + (1 if known.status is StepStatus.FAILED else 0)


def _named(group: Sequence[StepAttempt]) -> str:
    steps = ", ".join(f"{attempt.step.step_id} {attempt.step.name}" for attempt in group)
    last = group[-1]
    again = (last.logical_attempt_id, last.engine_attempt_id)
    attempt = f", attempt {again[0]}" + (f".{again[1]}" if again[1] > 1 else "") if again != (1, 1) else ""
    return f"step {steps}{attempt}"


def _told(output: StepOutput) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in output.counts.items())
    return ", ".join(filter(None, (output.status.value.lower(), output.skip_reason, counts)))


def _outcome(output: StepOutput) -> EventBody:
    if output.status is StepStatus.SKIPPED:
        return StepSkipped(output.skip_reason or "nothing to do")
    return StepCompleted(output.artifacts, dict(output.counts), dict(output.amounts), output.checks, output.reuse)


def _error_of(output: StepOutput) -> Failure:
    return output.error or Failure("EngineFailure", "the engine gave no reason", FailureCategory.ENGINE)


def _cancelled(reason: Interruption) -> Failure:
    return Failure("StepInterrupted", f"the step was interrupted: {reason.value}", FailureCategory.CANCELLED)
