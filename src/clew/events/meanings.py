"""What each event means for its run: one table, which the head of a run and its snapshot both follow.

An event type needs an entry here; the type checker finds a missing one. A status sets its times too: a run that has
ended has `completed_at`, and a run that continues loses it along with everything else about the end.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from clew.deferred import dataclass
from clew.events.bodies import (
    AlertRaised,
    Counters,
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunQueued,
    RunRejected,
    RunResumed,
    RunRetried,
    RunStarted,
    SignalAccepted,
    SignalRejected,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepStarted,
)
from clew.events.envelope import NewEvent, StoredEvent
from clew.events.snapshot import PendingSignal, RunSnapshot, RunStatus, StepSnapshot, StepStatus
from clew.events.values import ArtifactRef, Failure, FailureCategory, PlannedStep

_ANY_END = frozenset(status for status in RunStatus if status.is_terminal)
_FAILURE = frozenset({RunStatus.FAILED})


def _same_counters(counters: Counters) -> Counters:
    return counters


def _same_run(run: RunSnapshot) -> RunSnapshot:
    return run


@dataclass(frozen=True, slots=True)
class StepChange:
    """What happens to one step."""

    step_id: str
    change: Callable[[StepSnapshot], StepSnapshot]
    must_be_known: bool = False
    """Whether a step that the history has not named so far stays unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What an event means for its run."""

    status: RunStatus | None = None
    """The status of the run from now on; None if it does not change."""
    allowed_after: frozenset[RunStatus] = frozenset()
    """The ends of a run after which the event may still happen."""
    needs_lease: bool = True
    """Whether only the holder of the lease may append it. False for what leaves the state of the run alone."""
    starts_over: bool = False
    """Whether the run starts over, like a request that is retried after a rejection."""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error: Failure | None = None
    """Why the run has ended in a failure."""
    failed_step: str | None = None
    approval_pending: bool | None = None
    """Whether the run waits for an approval; None if nothing changes."""
    signal: PendingSignal | None = None
    """A signal that was accepted and will take effect by a later event."""
    planned: tuple[PlannedStep, ...] = ()
    """The steps that the run will take."""
    step: StepChange | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    """What exists from now on."""
    all_artifacts: tuple[ArtifactRef, ...] | None = None
    """Everything that exists, in place of what was known."""
    counters: Callable[[Counters], Counters] = _same_counters
    facts: Callable[[RunSnapshot], RunSnapshot] = _same_run
    """What else a snapshot learns from the event."""

    def started_after(self, known: datetime | None) -> datetime | None:
        """When the run started, given what was known before."""
        return None if self.starts_over else self.started_at or known


def meaning_of(event: NewEvent | StoredEvent) -> Meaning:
    """What an event means for its run."""
    body = event.body
    match body:
        case RunQueued():
            return Meaning(
                status=RunStatus.PENDING,
                allowed_after=_FAILURE,
                starts_over=True,
                approval_pending=body.approval_required,
                facts=lambda run: _requested(run, body),
            )
        case RunRejected():
            error = Failure("Overloaded", body.reason, FailureCategory.TRANSIENT, retryable=True)
            return _ended(event, RunStatus.FAILED, error=error)
        case RunApproved():
            return Meaning(status=RunStatus.APPROVED, approval_pending=False)
        case RunStarted():
            return Meaning(
                status=RunStatus.RUNNING,
                started_at=event.emitted_at,
                planned=body.steps,
                facts=lambda run: replace(run, engine_run_ref=event.engine_run_ref),
            )
        case RunPaused():
            return Meaning(status=RunStatus.PAUSED)
        case RunResumed():
            return Meaning(
                status=RunStatus.RUNNING,
                allowed_after=_FAILURE,
                step=StepChange(body.retried_step_id, _retried, must_be_known=True) if body.retried_step_id else None,
                counters=lambda known: replace(known, resumes=known.resumes + 1),
            )
        case RunContinued():
            return Meaning(
                status=RunStatus.RUNNING,
                started_at=body.started_at,
                all_artifacts=None if body.adds_artifacts else body.artifacts,
                counters=lambda _: _carried(body),
                facts=lambda run: replace(run, plan=body.plan, cursor=body.cursor),
            )
        case RunCompleted():
            return _ended(event, RunStatus.COMPLETED)
        case RunFailed():
            return _ended(event, RunStatus.FAILED, error=body.error, failed_step=body.failed_step_id)
        case RunCancelled():
            return _ended(event, RunStatus.CANCELLED)
        case StepStarted() | StepCompleted() | StepFailed() | StepSkipped():
            return _meaning_for_step(event, body)
        case SignalAccepted():
            signal = PendingSignal(body.signal_id, body.signal, body.actor, body.step_id, body.reason, body.payload)
            return Meaning(needs_lease=False, allowed_after=_ANY_END, signal=signal)
        case SignalRejected() | AlertRaised():
            return Meaning(needs_lease=False, allowed_after=_ANY_END)
        case RunRetried():
            return Meaning(allowed_after=_ANY_END)
        case _:
            assert_never(body)


def _meaning_for_step(
    event: NewEvent | StoredEvent, body: StepStarted | StepCompleted | StepFailed | StepSkipped
) -> Meaning:
    match body:
        case StepStarted():
            return Meaning(step=StepChange(event.step_id, lambda step: _begun(step, event, body)))
        case StepCompleted():
            return Meaning(
                step=StepChange(
                    event.step_id,
                    lambda step: replace(
                        _done(step, event, StepStatus.SUCCESS),
                        artifacts=body.artifacts,
                        counts=dict(body.counts),
                        amounts=dict(body.amounts),
                        checks=body.checks,
                        reuse=body.reuse,
                    ),
                ),
                artifacts=body.artifacts,
                counters=lambda known: replace(known, steps_succeeded=known.steps_succeeded + 1),
                facts=lambda run: replace(run, last_completed_step=event.step_id),
            )
        case StepFailed():
            return Meaning(
                step=StepChange(
                    event.step_id,
                    lambda step: replace(_done(step, event, StepStatus.FAILED), error=body.error, checks=body.checks),
                ),
                counters=lambda known: replace(known, steps_failed=known.steps_failed + 1),
            )
        case StepSkipped():
            return Meaning(
                allowed_after=_FAILURE,
                step=StepChange(
                    event.step_id,
                    lambda step: replace(_done(step, event, StepStatus.SKIPPED), skip_reason=body.reason, error=None),
                ),
                counters=lambda known: replace(known, steps_skipped=known.steps_skipped + 1),
            )
        case _:
            assert_never(body)


def _ended(
    event: NewEvent | StoredEvent, status: RunStatus, *, error: Failure | None = None, failed_step: str | None = None
) -> Meaning:
    return Meaning(status=status, completed_at=event.emitted_at, error=error, failed_step=failed_step)


def _requested(run: RunSnapshot, body: RunQueued) -> RunSnapshot:
    return replace(
        run,
        project=body.project_id,
        project_version=body.project_version,
        period=body.period,
        plan=body.plan,
        retry_of=body.retry_of,
    )


def _carried(body: RunContinued) -> Counters:
    """The counters, with the references counted where a continuation has all of them."""
    return body.counters if body.adds_artifacts else replace(body.counters, artifacts_carried=len(body.artifacts))


def _begun(step: StepSnapshot, event: NewEvent | StoredEvent, body: StepStarted) -> StepSnapshot:
    return StepSnapshot(
        step_id=step.step_id,
        seq=body.seq,
        name=body.name,
        type=step.type,
        status=StepStatus.RUNNING,
        logical_attempt_id=event.logical_attempt_id,
        engine_attempt_id=event.engine_attempt_id,
        started_at=event.emitted_at,
    )


def _done(step: StepSnapshot, event: NewEvent | StoredEvent, status: StepStatus) -> StepSnapshot:
    return replace(
        step,
        status=status,
        logical_attempt_id=event.logical_attempt_id,
        engine_attempt_id=event.engine_attempt_id if event.engine_attempt_id is not None else step.engine_attempt_id,
        completed_at=event.emitted_at,
    )


def _retried(step: StepSnapshot) -> StepSnapshot:
    return StepSnapshot(step.step_id, step.seq, step.name, step.type, logical_attempt_id=step.logical_attempt_id + 1)
