"""What drives the steps of a run: the protocol that an engine implements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.runs.artifacts import ArtifactRef
from clew.runs.cancel import CancelToken
from clew.runs.failure import Failure
from clew.runs.plan_ref import PlannedStep
from clew.runs.request import RunRecord
from clew.runs.secrets import StepSecrets
from clew.runs.snapshot import RunSnapshot
from clew.runs.status import StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """How a step went. A failure is an output too, so that the steps before it in a fused group can commit."""

    status: StepStatus
    artifacts: tuple[ArtifactRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
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
    def failed(cls, error: Failure) -> "StepOutput":
        """The step is to blame."""
        return cls(status=StepStatus.FAILED, error=error)


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
        """Let go of what the run held, whatever became of it."""
        ...


class ExecutorFactory(Protocol):
    """Opens executors."""

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run. Steps that the snapshot has as done were committed, and are not executed again."""
        ...
