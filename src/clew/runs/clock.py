"""Time as the parts take it: a function, so that tests can hold it still."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Gives the present moment, with its zone."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)
