"""Leases: who drives a run, until when, and which token fences its writes.

Also the writes that the store refuses on purpose, because another writer was first.
"""

from datetime import datetime
from enum import StrEnum

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.diagnostics.codes.runs import LATE_WRITE, OUT_OF_DATE, PERIOD_BUSY, WRITE_BUDGET_EXCEEDED
from clew.runs.request import RunRecord


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to drive a run. Each lease of a run has a higher token than the one before it.

    The token decides, not the time: a holder whose lease ran out may continue as long as no one else has taken the run.
    """

    run_id: str
    token: int
    owner: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that a worker has taken."""

    lease: Lease
    run: RunRecord


class WaitReason(StrEnum):
    """Why a run cannot be taken now."""

    HELD = "another worker has the run"
    NO_PLACE = "all places are taken"
    NOT_BEFORE = "its start time has not come yet"
    PERIOD_BUSY = "another run of its project and period is in progress"


@dataclass(frozen=True, slots=True)
class Wait:
    """A run that cannot be taken now."""

    reason: WaitReason
    running: int = 0
    """How many runs are running where all places are taken."""
    not_before: datetime | None = None
    """The start time that it waits for."""


@dataclass(frozen=True, slots=True)
class LeaseNews:
    """What a keepalive returns."""

    lease: Lease
    last_seq: int
    """The last event of the run, so that the holder sees that a signal came."""


class LateWrite(ClewError):
    """The writer's lease was given to another worker in the meantime."""

    def __init__(self, *, run_id: str, token: int, current: int) -> None:
        super().__init__(LATE_WRITE.anywhere(run_id=run_id, token=token, current=current))


class OutOfDate(ClewError):
    """The run has moved on since the writer looked at it."""

    def __init__(self, *, run_id: str, expected: int, actual: int) -> None:
        super().__init__(OUT_OF_DATE.anywhere(run_id=run_id, expected=expected, actual=actual))


class PeriodBusy(ClewError):
    """Another run of the same project and period is in progress."""

    def __init__(self, *, project: str, period: str) -> None:
        super().__init__(PERIOD_BUSY.anywhere(project=project, period=period))


class WriteBudgetExceeded(TransientFailure):
    """An event that must not be lost could not be stored in time."""

    def __init__(self, *, event_type: str, budget_ms: int) -> None:
        super().__init__(WRITE_BUDGET_EXCEEDED.anywhere(event_type=event_type, budget_ms=budget_ms))
