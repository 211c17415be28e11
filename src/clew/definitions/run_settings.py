"""What an environment says about leases, signals and the delivery of events."""

from enum import StrEnum

from clew.definitions.shapes import Located, Whole, key, record


class FailOpenEvent(StrEnum):
    """Events that a run may go on without, until they can be stored. The loss of any other event would be a lie."""

    STEP_STARTED = "StepStarted"


@record("the lease settings")
class LeaseSettings(Located):
    """How long a run belongs to a worker that no longer reports."""

    ttl_seconds: int = key(
        Whole(5, 86_400),
        "Seconds after which another worker may take over the run of a worker that no longer reports.",
        default=30,
    )


@record("the signal settings")
class SignalSettings(Located):
    """How large signals may be, and how many."""

    max_bytes: int = key(Whole(1, 200_000), "The largest signal.", default=65_536)
    max_per_minute: int = key(
        Whole(1),
        "How many signals a run accepts in a minute, and how many of each sender are considered.",
        default=60,
    )


@record("the delivery settings")
class DeliverySettings(Located):
    """How often events are sent to an event bus before they become dead letters."""

    max_attempts: int = key(Whole(1), "Attempts until an event becomes a dead letter.", default=20)
    base_delay_ms: int = key(Whole(0), "The wait before the second attempt; it doubles from there.", default=1000)
    max_delay_ms: int = key(Whole(0), "The longest wait between two attempts.", default=900_000)
    finish_seconds: int = key(
        Whole(0, 600), "How long the end of a run or of a worker waits for buses that do not answer.", default=5
    )
