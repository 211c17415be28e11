"""Captures and postlude jobs in the state store: their records, their queue, and how a run enlists them."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol

from clew.captures.freezing import Degradation, Fitting, Frozen, InFlight, Reason, Ticket
from clew.captures.manifests import Manifest
from clew.captures.policy import CapturePolicy, job_violations
from clew.captures.requests import PARAMETER, CaptureRequest, requests_in, requests_of
from clew.deferred import dataclass
from clew.definitions import CaptureWish
from clew.diagnostics import raise_if_any
from clew.events.ledger import LedgerWriter
from clew.events.snapshot import RunSnapshot
from clew.events.values import Failure
from clew.plan import Plan
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.executor import ExecutorFactory, StepExecutor
from clew.runs.request import RunRecord
from clew.runs.stores import RunState
from clew.storage.plans import kept_plan


class EmissionStatus(StrEnum):
    """How far an emission is. It is on record before its first byte is written."""

    STARTED = "started"
    """Its attempt ended before all of it was written, or is still writing."""
    SENT = "sent"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Emission:
    """Something that an attempt at a job sent to a sink."""

    sink: str
    type: str
    path: str
    """Relative to the workspace."""
    rows: int
    size: int
    emit_ms: int
    expires_at: datetime
    capture_id: str | None = None
    """Where it became a capture."""
    attempt: int = 1
    status: EmissionStatus = EmissionStatus.SENT


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, done or not."""

    job_id: str
    name: str | None
    rows: int = 0
    size: int = 0
    """Bytes that it has sent."""
    wait_ms: int = 0
    run_ms: int = 0
    results: tuple[Mapping[str, object], ...] = ()
    """What describe, histogram and topk found."""
    emissions: tuple[Emission, ...] = ()
    """Of all attempts, also of those that failed afterwards."""
    left_out: tuple[str, ...] = ()
    """Restricted columns, which were not sent."""

    @property
    def expires_at(self) -> datetime | None:
        """When the next of its emissions expires."""
        return min(
            (each.expires_at for each in self.emissions if each.status is not EmissionStatus.EXPIRED), default=None
        )


RecordKind = Literal["capture", "job"]


class CaptureStatus(StrEnum):
    """The status of a capture or job."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"
    DROPPED = "dropped"

    @property
    def is_over(self) -> bool:
        """Whether its status is final unless someone acts."""
        return self not in {CaptureStatus.QUEUED, CaptureStatus.RUNNING}


def new_capture_id() -> str:
    """An id that cannot be guessed."""
    return f"cap_{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True)
class CaptureOutcome:
    """How a capture or a job ended."""

    manifest: Manifest | None = None
    job: JobReport | None = None
    drop_reason: str | None = None
    steps: tuple[Degradation, ...] = ()
    error: Failure | None = None

    @property
    def expires_at(self) -> datetime | None:
        """When some of what was written expires; None if there is nothing."""
        if self.manifest is not None:
            return self.manifest.expires_at
        return self.job.expires_at if self.job is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRecord:
    """A capture or job with its status. What a run requests is queued; the store fills in the rest."""

    capture_id: str = field(default_factory=new_capture_id)
    kind: RecordKind
    slot: str
    """What it is for the run; the same slot of a run is never taken twice."""
    tenant_id: str
    run_id: str
    request_id: str
    breakpoint: str
    seq: int
    status: CaptureStatus = CaptureStatus.QUEUED
    request: CaptureRequest | None = None
    """None for a job, which the plan describes."""
    frozen: Frozen | None = None
    outcome: CaptureOutcome = CaptureOutcome()
    attempts: int = 0
    created_at: datetime = field(default_factory=utc_now)
    """By the clock of the state store, once it is enlisted."""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    """Until when it may wait; once it is done, when it or the next of its emissions expires."""
    is_past: bool = False
    """Whether that had passed when the record was read, by the clock of the state store."""


@dataclass(frozen=True, slots=True)
class CaptureLease:
    """A capture or job that a worker holds until its lease expires."""

    record: CaptureRecord
    token: int


class Overtaken(Exception):
    """Another worker has taken the job, so this one may send nothing more."""


class CaptureStore(Protocol):
    """The captures and jobs of one environment: an index, and a queue with leases."""

    def enlist(self, wanted: Sequence[CaptureRecord]) -> tuple[CaptureRecord, ...]:
        """Add captures and jobs, each slot of a run once. Returns the records of all of them."""
        ...

    def find(self, capture_id: str) -> CaptureRecord | None:
        """A record by its full id."""
        ...

    def of_run(self, run_id: str) -> tuple[CaptureRecord, ...]:
        """The records of a run, in the order of the plan."""
        ...

    def listed(
        self,
        *,
        tenant_id: str | None = None,
        run_id: str | None = None,
        request_id: str | None = None,
        status: CaptureStatus | None = None,
        limit: int = 50,
    ) -> tuple[CaptureRecord, ...]:
        """Captures without jobs, newest first. `run_id` may be the beginning of an id."""
        ...

    def unfrozen_runs(self, limit: int = 20) -> tuple[str, ...]:
        """Runs that have ended, and whose points are not frozen yet."""
        ...

    def keep_ticket(self, capture_id: str, ticket: Ticket, freeze_us: int) -> None:
        """Store the ticket of a waiting record that has none, while its run goes on. Nobody claims it yet."""
        ...

    def freeze(
        self,
        capture_id: str,
        ticket: Ticket,
        freeze_us: int,
        decide: Callable[[InFlight], Fitting],
        *,
        waits_for: timedelta,
    ) -> CaptureRecord:
        """Let a waiting record be claimed, for so long; `decide` says what it will keep, and sees all others in
        progress. A ticket that it has already stays."""
        ...

    def drop(self, capture_id: str, outcome: CaptureOutcome) -> CaptureRecord:
        """End a waiting record without doing it."""
        ...

    def reopen(self, run_id: str, reasons: Sequence[str]) -> int:
        """Queue those records of a run again that were dropped for one of these reasons. Returns how many."""
        ...

    def claim(self, *, owner: str, ttl_s: float, run_id: str | None = None) -> CaptureLease | None:
        """Take the frozen record that has waited longest, or whose worker is lost; None if there is none.

        No two callers get the same one. The attempt is counted.
        """
        ...

    def keep(self, lease: CaptureLease, *, ttl_s: float) -> bool:
        """Renew a lease; False if another worker has taken it."""
        ...

    def finish(self, lease: CaptureLease, status: CaptureStatus, outcome: CaptureOutcome) -> bool:
        """End it, unless another worker has taken it: then nothing is written and the result is False."""
        ...

    def postpone(self, lease: CaptureLease, outcome: CaptureOutcome, *, delay_s: float) -> bool:
        """Return it to the queue, to be retried after a while."""
        ...

    def note(self, lease: CaptureLease, outcome: CaptureOutcome) -> bool:
        """Record how far it is; False if another worker has taken it. Whoever does it next finds that."""
        ...

    def publish(self, new: CaptureRecord, manifest: Manifest, lease: CaptureLease | None = None) -> CaptureRecord:
        """Add a finished capture. The same slot returns the capture that has it, with this manifest.

        Raises Overtaken where the lease of the job that has made it is not good any more.
        """
        ...

    def expired(self, limit: int = 100) -> tuple[CaptureRecord, ...]:
        """Records that have waited too long or have something that expired, as far as no worker is at them."""
        ...

    def mark_expired(self, capture_id: str, outcome: CaptureOutcome | None = None) -> None:
        """Record that what had expired was deleted. What is left of a job, with its later dates, is in `outcome`."""
        ...

    def delete(self, capture_id: str) -> None:
        """Delete a record."""
        ...


class CaptureState(RunState, Protocol):
    """What captures need from a state store."""

    @property
    def captures(self) -> CaptureStore:
        """The index of captures and jobs, and their queue."""
        ...

    @property
    def ledger_writer(self) -> LedgerWriter:
        """Records what is deleted."""
        ...


def capture_parameters(
    plan: Plan, wishes: Sequence[CaptureWish], environment: RunEnvironment, role: str
) -> dict[str, object]:
    """What a run request carries so that its captures are made. UserError if the environment does not allow them.

    The jobs of the plan are held to the same rules: nothing starts that would end in a place which is not allowed.
    """
    policy = CapturePolicy.of(environment.name, environment.settings, role)
    raise_if_any(job_violations(plan, policy))
    requests = requests_of(plan, wishes, policy)
    return {PARAMETER: [request.to_json() for request in requests]} if requests else {}


def enlist(store: CaptureStore, environment: RunEnvironment, run: RunRecord) -> tuple[CaptureRecord, ...]:
    """Take in the captures that a run carries and the jobs of its plan. Doing it again changes nothing."""
    return store.enlist(list(_wanted(environment, run)))


def _wanted(environment: RunEnvironment, run: RunRecord) -> Iterator[CaptureRecord]:
    request = run.request
    for number, capture in enumerate(requests_in(request.parameters), start=1):
        yield CaptureRecord(
            kind="capture",
            slot=f"capture:{number:04}",
            tenant_id=request.tenant_id,
            run_id=run.run_id,
            request_id=request.request_id,
            breakpoint=capture.breakpoint,
            seq=capture.seq,
            request=capture,
        )
    plan = kept_plan(environment.storage_root, request.plan.digest or "")
    for job in plan.extensions.postlude_jobs:
        yield CaptureRecord(
            kind="job",
            slot=job.id,
            tenant_id=request.tenant_id,
            run_id=run.run_id,
            request_id=request.request_id,
            breakpoint=job.anchor,
            seq=job.anchor_seq,
        )


@dataclass(frozen=True, slots=True)
class EnlistingExecutors:
    """Opens executors as another factory does, and enlists what follows the run.

    Most runs are enlisted when they are asked for; one that retries another is not. A run that goes on after a failure
    may reach what it did not reach before.
    """

    executors: ExecutorFactory
    store: CaptureStore
    environment: RunEnvironment

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run."""
        enlist(self.store, self.environment, run)
        self.store.reopen(run.run_id, [Reason.NOT_REACHED.value, Reason.RUN_NOT_COMPLETED.value])
        return self.executors.open(run, snapshot)
