"""The numbers that bound runs, with the defaults of the specification. Plain values: wiring fills them in."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """How long a write may take, how long a history may grow, how much a signal may weigh."""

    write_latency_budget_ms: int = 3000
    fail_open_for: frozenset[str] = frozenset({"StepStarted"})
    """Events that may wait in the worker when the store is slow."""
    never_fail_open: frozenset[str] = frozenset({"StepCompleted", "StepFailed"})
    """Events whose loss would be a lie: over the budget the step fails."""
    outage_patience_s: float = 90.0
    """How long a worker waits for a store that went away before it gives a run back."""
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
    """How an environment takes runs."""

    overload: Overload = Overload.QUEUE
    max_running: int = 4
    max_queued: int = 1000
    """With this many waiting, every policy refuses: a queue without end is a leak."""
    delay_s: float = 60.0
    retry_after_s: int = 30
    approval_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePolicy:
    """How long a run belongs to a worker that is not heard of."""

    ttl_s: float = 30.0
    poll_s: float = 1.0
    """How often the holder asks for signals, which bounds how late CANCEL interrupts a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often an attempt is repeated that failed for a reason of the surroundings."""

    engine_attempts: int = 3
    """Attempts of the platform within one logical attempt."""
    logical_attempts: int = 1
    """Logical attempts that the policy makes by itself, each with its own engine attempts."""
    first_delay_s: float = 1.0
    longest_delay_s: float = 60.0
    factor: float = 2.0
    jitter: float = 0.5
    """The part of each delay that is random, so that many workers do not come back at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPolicy:
    """How often an event is sent to a sink before it becomes a dead letter."""

    attempts: int = 20
    """Enough to outlast a receiver that is away for an hour."""
    first_delay_s: float = 1.0
    longest_delay_s: float = 900.0
    factor: float = 2.0
    jitter: float = 0.5
    batch: int = 100
    hold_s: float = 60.0
    """How long an entry belongs to the worker that took it; after that another may send it, too."""
