"""Where a run stands, derived from its events. Snapshots are values: a later state is another snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clew.runs.artifacts import ArtifactRef
from clew.runs.cursor import Cursor
from clew.runs.events.bodies import Counters
from clew.runs.events.codec import decode, encode
from clew.runs.failure import Failure
from clew.runs.plan_ref import PlanRef
from clew.runs.status import RunStatus, StepStatus


@dataclass(frozen=True, slots=True)
class StepSnapshot:
    """Where a step stands."""

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


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """Where a run stands after the event `last_event_seq`."""

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
        """The number of the present stretch between two interruptions, which tells repeated pauses apart."""
        return self.counters.resumes + 1

    def step(self, step_id: str) -> StepSnapshot | None:
        """A step by its id, or None where the run has none of this id."""
        return next((step for step in self.steps if step.step_id == step_id), None)

    def to_json(self) -> dict[str, object]:
        """The form that `--json` gives."""
        document: dict[str, object] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "RunSnapshot":
        """The snapshot that `to_json` gave."""
        return decode(cls, document)
