"""The protocol of an engine: what drives the steps of a run, and how a running step is told to stop."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.diagnostics.codes.runs import STEP_INTERRUPTED
from clew.events.snapshot import RunSnapshot, StepStatus
from clew.events.values import ArtifactRef, CheckResult, Failure, PlannedStep, Reuse
from clew.runs.alerts import RaisedAlert
from clew.runs.leases import LateWrite, Lease
from clew.runs.request import RunRecord
from clew.runs.secrets import StepSecrets


class Interruption(StrEnum):
    """Why a step has to stop."""

    CANCELLED = "the run was cancelled"
    STOPPING = "the worker is stopping"
    LEASE_LOST = "another worker has taken the run"


class StepInterrupted(ClewError):
    """Raised by a step that stopped on request."""

    def __init__(self, reason: Interruption) -> None:
        super().__init__(STEP_INTERRUPTED.anywhere(reason=reason.value))
        self.reason = reason


class CancelToken:
    """Shared by the run loop, which cancels, and the step, which looks. Safe to use from any thread."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._reason: Interruption | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def reason(self) -> Interruption | None:
        """Why the step has to stop; None while it may continue."""
        return self._reason

    def cancel(self, reason: Interruption) -> None:
        """Tell the step to stop. The first reason stays, except that a lost lease outranks all: then nothing counts."""
        with self._lock:
            first = self._reason is None
            if first or reason is Interruption.LEASE_LOST:
                self._reason = reason
            callbacks = self._callbacks if first else []
            self._callbacks = []
        self._set.set()
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Stop here if the step has to."""
        if self._reason is not None:
            raise StepInterrupted(self._reason)

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up when the step has to stop. Returns whether it has to."""
        return self._set.wait(seconds)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Register a function to call when the step has to stop, such as cancelling a job on a cluster."""
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return
        callback()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """How a step went. A failure is an output too, so that the steps before it in a fused group can commit."""

    status: StepStatus
    artifacts: tuple[ArtifactRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    amounts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By control total: what the step wrote and left out, as decimal numbers."""
    checks: tuple[CheckResult, ...] = ()
    """What checks found while the step was done."""
    reuse: Reuse | None = None
    """In a rerun: what was taken over, and why not all of it."""
    error: Failure | None = None
    skip_reason: str | None = None

    @classmethod
    def success(cls, *artifacts: ArtifactRef, **counts: int) -> "StepOutput":
        """The step did its work."""
        return cls(status=StepStatus.SUCCESS, artifacts=artifacts, counts=counts)

    @classmethod
    def skipped(cls, reason: str) -> "StepOutput":
        """There was nothing to do."""
        return cls(status=StepStatus.SKIPPED, skip_reason=reason)

    @classmethod
    def failed(cls, error: Failure, checks: tuple[CheckResult, ...] = ()) -> "StepOutput":
        """The step is to blame, or checks that it ran into."""
        return cls(status=StepStatus.FAILED, error=error, checks=checks)


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """One attempt at a step."""

    step: PlannedStep
    logical_attempt_id: int
    engine_attempt_id: int


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step may use while it runs."""

    run: RunRecord
    snapshot: RunSnapshot
    cancel: CancelToken
    secrets: StepSecrets
    lease: Lease
    check_lease: Callable[[Lease], None]
    """Raises `LateWrite` where the lease was given to another worker."""
    history: Callable[[], RunSnapshot] | None = None
    """The state of the run with all its steps, also those of closed segments; None where the snapshot has them."""

    def all_steps(self) -> RunSnapshot:
        """The state of the run with everything that its steps counted."""
        return self.snapshot if self.history is None else self.history()

    def fence(self) -> None:
        """Stop here if another worker has taken the run. Asked before anything is made visible outside the run."""
        self.cancel.check()
        try:
            self.check_lease(self.lease)
        except LateWrite:
            self.cancel.cancel(Interruption.LEASE_LOST)
            self.cancel.check()


class StepExecutor(Protocol):
    """Executes the steps of one run, from one thread, in order."""

    @property
    def steps(self) -> Sequence[PlannedStep]:
        """All steps of the plan, in order."""
        ...

    @property
    def engine_run_ref(self) -> Mapping[str, object] | None:
        """How the platform names the run, for operators."""
        ...

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        """How many of the steps that are left the engine takes next as one job. They commit together, in order."""
        ...

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        """Execute a group and return one output per step, or fewer with a failed one as the last.

        Nothing that a step writes may be visible before its output is committed, since the attempt may be repeated.
        An error that is raised counts for the group: a `TransientFailure` is tried again; after any other the steps are
        executed one by one, to find the culprit. `context.cancel` must be looked at, at least now and then.
        """
        ...

    def close(self) -> None:
        """Release what the run held, however it ended."""
        ...


@runtime_checkable
class Concluding(Protocol):
    """An executor that can prove that nothing was lost in its run."""

    def conclude(self, snapshot: RunSnapshot) -> Sequence[RaisedAlert]:
        """Called after the last step, before the run is COMPLETED. Raises UserError if it must not be.

        Returns what operators should look at all the same.
        """
        ...


class ExecutorFactory(Protocol):
    """Opens executors."""

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run. Steps that the snapshot has as done were committed, and are not executed again."""
        ...
