"""The state of a run and its steps, derived from events. Snapshots are values: a later state is another snapshot."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from clew.deferred import dataclass
from clew.events.bodies import Counters
from clew.events.codec import decode, encode
from clew.events.values import ArtifactRef, CheckResult, Cursor, Failure, PlanRef, Reuse


class RunStatus(StrEnum):
    """The status of a run."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended. A failed run can still be reopened by RETRY_STEP or SKIP_STEP."""
        return self in {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}

    @property
    def is_startable(self) -> bool:
        """Whether the run waits for its first worker."""
        return self in {RunStatus.PENDING, RunStatus.APPROVED}

    @property
    def is_under_way(self) -> bool:
        """Whether the run has started and not ended, so that no other run may touch its project and period."""
        return self in {RunStatus.RUNNING, RunStatus.PAUSED}


class StepStatus(StrEnum):
    """The status of a step of a run."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"

    @property
    def is_terminal(self) -> bool:
        """Whether the step has an outcome."""
        return self in {StepStatus.SUCCESS, StepStatus.FAILED, StepStatus.SKIPPED}

    @property
    def is_done(self) -> bool:
        """Whether the run may continue after the step."""
        return self in {StepStatus.SUCCESS, StepStatus.SKIPPED}


@dataclass(frozen=True, slots=True)
class StepSnapshot:
    """The state of a step."""

    step_id: str
    seq: int = 0
    name: str = ""
    type: str = ""
    status: StepStatus = StepStatus.PENDING
    logical_attempt_id: int = 1
    engine_attempt_id: int | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    amounts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checks: tuple[CheckResult, ...] = ()
    reuse: Reuse | None = None
    error: Failure | None = None
    skip_reason: str | None = None


@dataclass(frozen=True, slots=True)
class PendingSignal:
    """A signal that was accepted and has not taken effect yet."""

    signal_id: str
    signal: str
    actor: str
    step_id: str | None = None
    reason: str | None = None
    payload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The state of a run after the event `last_event_seq`."""

    run_id: str
    status: RunStatus = RunStatus.PENDING
    last_event_seq: int = 0
    steps: tuple[StepSnapshot, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    started_at: datetime | None = None
    completed_at: datetime | None = None
    total_duration_ms: int | None = None
    project: str | None = None
    project_version: str | None = None
    period: str | None = None
    plan: PlanRef | None = None
    retry_of: str | None = None
    failed_step: str | None = None
    last_completed_step: str | None = None
    error: Failure | None = None
    engine_run_ref: Mapping[str, object] | None = None
    cursor: Cursor = field(default_factory=Cursor)
    """Steps of closed segments of the history; who starts to read at the last RunContinued knows them by this only."""
    counters: Counters = field(default_factory=Counters)
    pending_signals: tuple[PendingSignal, ...] = ()

    @property
    def cycle(self) -> int:
        """The number of the current stretch between two interruptions, which distinguishes repeated pauses."""
        return self.counters.resumes + 1

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """What checks have found so far, in the order of the steps."""
        return tuple(result for step in self.steps for result in step.checks)

    def step(self, step_id: str) -> StepSnapshot | None:
        """A step by its id, or None if the run has none of this id."""
        return next((step for step in self.steps if step.step_id == step_id), None)

    def to_json(self) -> dict[str, object]:
        """The form that `--json` gives."""
        document: dict[str, object] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "RunSnapshot":
        """The snapshot that `to_json` gave."""
        return decode(cls, document)
