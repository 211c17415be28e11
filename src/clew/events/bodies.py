"""What happened: one frozen class per event type.

`NAME` is what the store keeps and consumers match on; it never changes. `VERSION` increases when the fields change, and
`upcasters` says how to read older ones.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import ClassVar

from clew.deferred import dataclass
from clew.events.values import ArtifactRef, CheckResult, Cursor, Failure, PlannedStep, PlanRef, Reuse


@dataclass(frozen=True, slots=True)
class RunQueued:
    """The request for a run was accepted; the run waits."""

    NAME: ClassVar[str] = "RunQueued"
    VERSION: ClassVar[int] = 1

    tenant_id: str
    project_id: str
    environment_id: str
    plan: PlanRef
    period: str
    request_id: str
    project_version: str | None = None
    requested_by: str | None = None
    approval_required: bool = False
    not_before: datetime | None = None
    retry_of: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRejected:
    """The request for a run was refused because the environment is overloaded."""

    NAME: ClassVar[str] = "RunRejected"
    VERSION: ClassVar[int] = 1

    reason: str
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class RunApproved:
    """An approver has approved the run."""

    NAME: ClassVar[str] = "RunApproved"
    VERSION: ClassVar[int] = 1

    approved_by: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A worker has taken the run, and these are its steps."""

    NAME: ClassVar[str] = "RunStarted"
    VERSION: ClassVar[int] = 1

    steps: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A logical attempt at a step has begun."""

    NAME: ClassVar[str] = "StepStarted"
    VERSION: ClassVar[int] = 1

    seq: int
    name: str


@dataclass(frozen=True, slots=True)
class StepCompleted:
    """A step has committed: what it wrote exists from now on."""

    NAME: ClassVar[str] = "StepCompleted"
    VERSION: ClassVar[int] = 5

    artifacts: tuple[ArtifactRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the step did, in numbers such as rows_updated. Since version 2."""
    amounts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By control total: what an output has written and left out, as decimal numbers. Since version 3."""
    checks: tuple[CheckResult, ...] = ()
    """What checks found in the rows before or after the step. Since version 4."""
    reuse: Reuse | None = None
    """In a rerun: what the step took over, and why not all of it. Since version 5."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A logical attempt at a step has failed."""

    NAME: ClassVar[str] = "StepFailed"
    VERSION: ClassVar[int] = 2

    error: Failure
    checks: tuple[CheckResult, ...] = ()
    """What checks found that no completed step records. Since version 2."""


@dataclass(frozen=True, slots=True)
class StepSkipped:
    """The run continues without the step."""

    NAME: ClassVar[str] = "StepSkipped"
    VERSION: ClassVar[int] = 1

    reason: str


@dataclass(frozen=True, slots=True)
class SignalAccepted:
    """A signal was allowed. It takes effect by a later event that names it."""

    NAME: ClassVar[str] = "SignalAccepted"
    VERSION: ClassVar[int] = 1

    signal_id: str
    signal: str
    actor: str
    role: str
    step_id: str | None = None
    reason: str | None = None
    payload: Mapping[str, object] = field(default_factory=dict)
    digest: str | None = None
    """What the sender sent, as a hash: the same id with another content is another signal. Older events have none."""


@dataclass(frozen=True, slots=True)
class SignalRejected:
    """A signal was refused. Its payload is not kept."""

    NAME: ClassVar[str] = "SignalRejected"
    VERSION: ClassVar[int] = 1

    signal_id: str
    signal: str
    actor: str
    role: str
    refusal: str
    detail: str
    step_id: str | None = None
    digest: str | None = None
    """What the sender sent, as a hash. Older events have none."""


@dataclass(frozen=True, slots=True)
class RunPaused:
    """The run is paused between two steps."""

    NAME: ClassVar[str] = "RunPaused"
    VERSION: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run continues after a pause, or after a failure with another attempt at the failed step."""

    NAME: ClassVar[str] = "RunResumed"
    VERSION: ClassVar[int] = 1

    retried_step_id: str | None = None


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """All steps are done."""

    NAME: ClassVar[str] = "RunCompleted"
    VERSION: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run has ended because something failed."""

    NAME: ClassVar[str] = "RunFailed"
    VERSION: ClassVar[int] = 1

    error: Failure
    failed_step_id: str | None = None


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """The run has ended because a user cancelled it."""

    NAME: ClassVar[str] = "RunCancelled"
    VERSION: ClassVar[int] = 1

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunRetried:
    """A new run was requested that repeats this one."""

    NAME: ClassVar[str] = "RunRetried"
    VERSION: ClassVar[int] = 1

    new_run_id: str


@dataclass(frozen=True, slots=True)
class Counters:
    """The few numbers about a run that must outlive its history."""

    steps_succeeded: int = 0
    steps_failed: int = 0
    steps_skipped: int = 0
    resumes: int = 0
    segments: int = 0
    artifacts_carried: int = 0
    """How many references to artifacts the continuations have carried so far, of those that the run has."""


@dataclass(frozen=True, slots=True)
class RunContinued:
    """A segment of the history is closed. Resuming needs the last one, and the references of those before it."""

    NAME: ClassVar[str] = "RunContinued"
    VERSION: ClassVar[int] = 2

    plan: PlanRef
    cursor: Cursor
    artifacts: tuple[ArtifactRef, ...]
    counters: Counters
    started_at: datetime | None = None
    adds_artifacts: bool = False
    """Whether the references come on top of those that continuations before it carry, so that no event grows with the
    run. In version 1 each carried all of them."""


@dataclass(frozen=True, slots=True)
class AlertRaised:
    """Something about the run needs an operator's attention."""

    NAME: ClassVar[str] = "AlertRaised"
    VERSION: ClassVar[int] = 1

    alert: str
    severity: str
    message: str
    details: Mapping[str, object] = field(default_factory=dict)


EventBody = (
    RunQueued
    | RunRejected
    | RunApproved
    | RunStarted
    | StepStarted
    | StepCompleted
    | StepFailed
    | StepSkipped
    | SignalAccepted
    | SignalRejected
    | RunPaused
    | RunResumed
    | RunCompleted
    | RunFailed
    | RunCancelled
    | RunRetried
    | RunContinued
    | AlertRaised
)

EVENT_TYPES: tuple[type[EventBody], ...] = (
    RunQueued,
    RunRejected,
    RunApproved,
    RunStarted,
    StepStarted,
    StepCompleted,
    StepFailed,
    StepSkipped,
    SignalAccepted,
    SignalRejected,
    RunPaused,
    RunResumed,
    RunCompleted,
    RunFailed,
    RunCancelled,
    RunRetried,
    RunContinued,
    AlertRaised,
)
"""Every event type, for readers that loop over all of them."""
