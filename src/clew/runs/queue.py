"""Whether a request for a run is taken now, later or not at all."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from clew.runs.limits import Overload, QueuePolicy


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an environment is."""

    running: int
    queued: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """The run is taken. It starts as soon as a worker is free, but not before `not_before`."""

    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The run is not taken (429 for a caller over HTTP). The same request may come again."""

    reason: str
    retry_after_s: int


Admission = Accepted | Rejected


def admit(policy: QueuePolicy, load: Load, now: datetime, not_before: datetime | None = None) -> Admission:
    """The answer to a request under a policy. `not_before` is the requester's own wish."""
    if load.queued >= policy.max_queued:
        return Rejected(f"{load.queued} runs are waiting already", policy.retry_after_s)
    if load.running + load.queued < policy.max_running:
        return Accepted(not_before)
    match policy.overload:
        case Overload.REJECT:
            return Rejected(f"{load.running} runs are under way already", policy.retry_after_s)
        case Overload.DELAY:
            delayed = now + timedelta(seconds=policy.delay_s)
            return Accepted(max(delayed, not_before) if not_before is not None else delayed)
        case Overload.QUEUE:
            return Accepted(not_before)
