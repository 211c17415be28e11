"""The clock, as a function, so that tests can control time."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the current time, with its time zone."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)
