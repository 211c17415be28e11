"""The limits of runs, with the defaults of the specification: plain values that the wiring fills in.

Also how long to wait before a retry, and whether a request is accepted now, later or not at all.
"""

from collections.abc import Callable
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from clew.deferred import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """How long a write may take, how long a history may grow, how much a signal may weigh."""

    write_latency_budget_ms: int = 3000
    fail_open_for: frozenset[str] = frozenset({"StepStarted"})
    """Events that may wait in the worker when the store is slow."""
    never_fail_open: frozenset[str] = frozenset({"StepCompleted", "StepFailed"})
    """Events that must not be lost: if they exceed the budget, the step fails."""
    outage_patience_s: float = 90.0
    """How long a worker waits for a store that is unavailable before it returns a run."""
    continue_steps: int = 50
    history_bytes: int = 1_000_000
    max_event_bytes: int = 256_000
    max_signal_bytes: int = 64 * 1024
    max_signals_per_minute: int = 60
    lag_alert_s: float = 5.0

    def __post_init__(self) -> None:
        if self.fail_open_for & self.never_fail_open:
            raise ValueError("an event cannot both fail open and never fail open")


class Overload(StrEnum):
    """What happens to a request that finds the environment busy."""

    REJECT = "REJECT"
    QUEUE = "QUEUE"
    DELAY = "DELAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """How an environment accepts runs."""

    overload: Overload = Overload.QUEUE
    max_running: int = 4
    max_queued: int = 1000
    """With this many waiting, every policy refuses: an endless queue is a leak."""
    delay_s: float = 60.0
    retry_after_s: int = 30
    approval_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePolicy:
    """How long a run belongs to a worker that sends no heartbeat."""

    ttl_s: float = 30.0
    poll_s: float = 1.0
    """How often the holder asks for signals, which bounds how late CANCEL interrupts a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often an attempt is retried after a transient failure."""

    engine_attempts: int = 3
    """Attempts of the platform within one logical attempt."""
    logical_attempts: int = 1
    """Logical attempts that the policy makes automatically, each with its own engine attempts."""
    first_delay_s: float = 1.0
    longest_delay_s: float = 60.0
    factor: float = 2.0
    jitter: float = 0.5
    """The part of each delay that is random, so that many workers do not come back at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPolicy:
    """How often an event is sent to an event bus before it becomes a dead letter."""

    attempts: int = 20
    """Enough to outlast a receiver that is down for an hour."""
    first_delay_s: float = 1.0
    longest_delay_s: float = 900.0
    factor: float = 2.0
    jitter: float = 0.5
    batch: int = 100
    finish_s: float = 5.0
    """How long the end of a run, or of a worker, waits for buses to take what is left."""
    hold_s: float = 60.0
    """How long an entry belongs to the worker that took it; after that another may send it, too."""


Random = Callable[[], float]
"""Returns numbers from 0 up to, not including, 1."""


class Backoff(Protocol):
    """The numbers of a policy that repeats things."""

    @property
    def first_delay_s(self) -> float:
        """The wait before the second attempt."""
        ...

    @property
    def longest_delay_s(self) -> float:
        """No wait is longer."""
        ...

    @property
    def factor(self) -> float:
        """How much longer each wait is than the one before it."""
        ...

    @property
    def jitter(self) -> float:
        """The part of the wait that is random."""
        ...


def delay_before(attempt: int, policy: Backoff, random: Random) -> float:
    """Seconds to wait before an attempt, the second being number 2: exponential, bounded, partly random."""
    exponent = min(attempt - 2, 60)
    full = min(policy.longest_delay_s, policy.first_delay_s * policy.factor**exponent)
    return full * (1.0 - policy.jitter * random())


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an environment is."""

    running: int
    queued: int
    at: datetime | None = field(default=None, compare=False)
    """When, by the clock of the state store; None if it was not asked for."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The run is accepted. It starts as soon as a worker is free, but not before `not_before`."""

    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The run is refused (429 over HTTP). The same request may be sent again."""

    reason: str
    retry_after_s: int


Admission = Accepted | Rejected


def admit(policy: QueuePolicy, load: Load, now: datetime, not_before: datetime | None = None) -> Admission:
    """The answer to a request under a policy. `not_before` is what the caller asked for."""
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
