"""Freezing a point of a run, and fitting a capture of it into the limits.

The rows at a point are files that never change, with functions on top that the plan names. So a ticket names the run,
the step, the plan and the parts that were committed by then; no row is read until the capture is written.

A capture that is too large steps down until it fits, always in the same way. The same run always gives the same
sample, on any number of cores: the rows whose digests come first.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from clew.captures.policy import CapturePolicy
from clew.captures.requests import CaptureRequest
from clew.deferred import dataclass
from clew.definitions import CaptureMode
from clew.events.artifacts import parts_among
from clew.events.snapshot import RunSnapshot, StepStatus
from clew.events.values import ArtifactRef
from clew.plan.plan import Plan
from clew.storage.parts import Part
from clew.trace.run_parts import periods_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The rows behind a step of a run, without the rows."""

    run_id: str
    breakpoint: str
    seq: int
    plan_digest: str
    parts: tuple[str, ...]
    """What the run had committed by then, by the addresses that its events give."""
    skipped: tuple[int, ...]
    """The steps that an operator skipped."""
    rows: int | None
    """How many rows there are, including deleted ones; None if that is not known without reading them."""
    estimated_bytes: int
    frozen_at: datetime | None
    """When the step was committed: that is what froze its rows."""


def is_reached(snapshot: RunSnapshot, seq: int) -> bool:
    """Whether a run has passed a step."""
    step = snapshot.step(str(seq))
    return step is not None and step.status in {StepStatus.SUCCESS, StepStatus.SKIPPED}


def freeze(plan: Plan, breakpoint_name: str, seq: int, snapshot: RunSnapshot, parts: Sequence[Part]) -> Ticket:
    """The ticket of a point that the run has passed. `parts` are the descriptions of what it has committed."""
    step = snapshot.step(str(seq))
    by_then = [part for part in parts if _first_step(part) <= seq]
    return Ticket(
        run_id=snapshot.run_id,
        breakpoint=breakpoint_name,
        seq=seq,
        plan_digest=plan.digest,
        parts=tuple(_addresses(snapshot.artifacts)),
        skipped=tuple(
            sorted(each.seq for each in snapshot.steps if each.status is StepStatus.SKIPPED and each.seq <= seq)
        ),
        rows=_rows(plan, seq, parts),
        estimated_bytes=sum(
            file.size for part in by_then if part.kind != "input" or part.name == plan.input.key for file in part.files
        ),
        frozen_at=step.completed_at if step is not None else None,
    )


def _addresses(artifacts: Sequence[ArtifactRef]) -> list[str]:
    return [artifact.uri for artifact in parts_among(artifacts)]


def _first_step(part: Part) -> int:
    return part.steps[0].seq if part.kind == "changes" and part.steps else part.seq


def _rows(plan: Plan, seq: int, parts: Sequence[Part]) -> int | None:
    loaded = next((part for part in parts if part.kind == "input" and part.name == plan.input.key), None)
    if loaded is None or periods_of(loaded, plan.input) is not None:
        return None
    created = [part for part in parts if part.kind == "created" and part.seq <= seq]
    return sum(file.counted for part in (loaded, *created) for file in part.files)


class Reason(StrEnum):
    """Why a capture keeps less than was asked for, or nothing."""

    MAX_ROWS = "MAX_ROWS"
    MAX_BYTES = "MAX_BYTES"
    MAX_COLUMNS = "MAX_COLUMNS"
    INFLIGHT_BYTES = "INFLIGHT_BYTES"
    INFLIGHT_JOBS = "INFLIGHT_JOBS"
    NOT_REACHED = "NOT_REACHED"
    """The run ended before the breakpoint."""
    RUN_NOT_COMPLETED = "RUN_NOT_COMPLETED"
    WHEN_NOT_TRUE = "WHEN_NOT_TRUE"
    """The `when` of a job is not true for the run."""
    RUN_REMOVED = "RUN_REMOVED"


@dataclass(frozen=True, slots=True)
class Degradation:
    """One step down."""

    mode: CaptureMode | None
    """What did not fit; None for a job."""
    reason: Reason
    limit: int
    found: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """What is frozen and not yet done in an environment."""

    bytes: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Fitting:
    """What a capture will keep."""

    mode: CaptureMode | None
    """None if it is dropped."""
    sample_rows: int
    reserved_bytes: int
    steps: tuple[Degradation, ...]

    @property
    def drop_reason(self) -> Reason | None:
        """Why nothing is kept."""
        return self.steps[-1].reason if self.mode is None and self.steps else None


@dataclass(frozen=True, slots=True)
class Frozen:
    """A frozen point, with what the capture will keep."""

    ticket: Ticket
    freeze_us: int
    mode: CaptureMode | None = None
    sample_rows: int = 0
    steps: tuple[Degradation, ...] = ()


_LADDER = {
    CaptureMode.FULL_RAW: CaptureMode.SAMPLE_RAW,
    CaptureMode.FULL_VIEW: CaptureMode.SAMPLE_VIEW,
    CaptureMode.SAMPLE_RAW: CaptureMode.STATS,
    CaptureMode.SAMPLE_VIEW: CaptureMode.STATS,
}
FULL = frozenset({CaptureMode.FULL_RAW, CaptureMode.FULL_VIEW})
SAMPLES = frozenset({CaptureMode.SAMPLE_RAW, CaptureMode.SAMPLE_VIEW})


def below(mode: CaptureMode) -> CaptureMode | None:
    """The next mode down; None below statistics."""
    return _LADDER.get(mode)


def fit(
    request: CaptureRequest,
    ticket: Ticket,
    *,
    all_columns: int,
    policy: CapturePolicy,
    in_flight: InFlight,
    mode: CaptureMode | None = None,
) -> Fitting:
    """The highest mode, from the one asked for (or `mode`) downwards, that keeps all limits.

    A function of its arguments alone. Sizes are estimates; what was really written is looked at again by `exceeded`.
    """
    sample_rows = min(request.sample_rows, request.limits.max_rows)
    steps = list[Degradation]()
    tried: CaptureMode | None = mode or request.mode
    while tried is not None:
        size = _estimate(tried, request, ticket, sample_rows, all_columns)
        problem = _problem(tried, request, ticket, size, policy, in_flight)
        if problem is None:
            return Fitting(tried, sample_rows, size, tuple(steps))
        steps.append(problem)
        tried = below(tried)
    return Fitting(None, sample_rows, 0, tuple(steps))


def fit_job(size: int, policy: CapturePolicy, in_flight: InFlight) -> Fitting:
    """Whether a job finds room: there is nothing that it could step down to."""
    steps = list[Degradation]()
    if in_flight.jobs >= policy.max_inflight_jobs:
        steps.append(Degradation(None, Reason.INFLIGHT_JOBS, policy.max_inflight_jobs, in_flight.jobs))
    elif in_flight.bytes + size > policy.max_inflight_bytes:
        steps.append(Degradation(None, Reason.INFLIGHT_BYTES, policy.max_inflight_bytes, in_flight.bytes + size))
    return Fitting(None, 0, 0 if steps else size, tuple(steps))


def exceeded(mode: CaptureMode, request: CaptureRequest, *, rows: int, size: int) -> Degradation | None:
    """The limit that what was written exceeds."""
    limits = request.limits
    if mode is not CaptureMode.STATS and rows > limits.max_rows:
        return Degradation(mode, Reason.MAX_ROWS, limits.max_rows, rows)
    if mode is not CaptureMode.STATS and size > limits.max_bytes:
        return Degradation(mode, Reason.MAX_BYTES, limits.max_bytes, size)
    return None


def _estimate(mode: CaptureMode, request: CaptureRequest, ticket: Ticket, sample_rows: int, all_columns: int) -> int:
    if mode is CaptureMode.STATS:
        return 0
    share = len(request.columns) / all_columns if all_columns else 1.0
    size = ticket.estimated_bytes * min(1.0, share)
    if mode in SAMPLES and ticket.rows:
        size *= min(1.0, sample_rows / ticket.rows)
    return int(size)


def _problem(
    mode: CaptureMode, request: CaptureRequest, ticket: Ticket, size: int, policy: CapturePolicy, in_flight: InFlight
) -> Degradation | None:
    limits = request.limits
    if len(request.columns) > limits.max_columns:
        return Degradation(mode, Reason.MAX_COLUMNS, limits.max_columns, len(request.columns))
    if mode is CaptureMode.FULL_RAW and ticket.rows is not None and ticket.rows > limits.max_rows:
        return Degradation(mode, Reason.MAX_ROWS, limits.max_rows, ticket.rows)
    if size > limits.max_bytes:
        return Degradation(mode, Reason.MAX_BYTES, limits.max_bytes, size)
    if in_flight.jobs >= policy.max_inflight_jobs:
        return Degradation(mode, Reason.INFLIGHT_JOBS, policy.max_inflight_jobs, in_flight.jobs)
    if in_flight.bytes + size > policy.max_inflight_bytes:
        return Degradation(mode, Reason.INFLIGHT_BYTES, policy.max_inflight_bytes, in_flight.bytes + size)
    return None


def rank_sql(run_id: str, ordinal: str) -> str:
    """The rank of a row in SQL, the same in Spark and DuckDB. `run_id` has only letters, digits and dashes."""
    quoted = run_id.replace("'", "''")
    return f"md5(concat('{quoted}', ':', CAST({ordinal} AS STRING)))"
