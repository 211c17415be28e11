"""The clock behind trace ids: milliseconds since 1970 that never go back."""

import time
from collections.abc import Callable

ClockMs = Callable[[], int]
"""Milliseconds since 1970."""

_NANOSECONDS_PER_MS = 1_000_000


def _steady_clock() -> Callable[[], int]:
    """A monotonic clock in nanoseconds, one that runs on while the machine sleeps where the platform has it."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return time.monotonic_ns
    return lambda: time.clock_gettime_ns(boottime)


def monotonic_epoch_clock() -> ClockMs:
    """Read the wall clock once and count on monotonically from there.

    Setting the wall clock then moves no trace id; a process takes up the new time when it starts anew.
    """
    steady = _steady_clock()
    offset = time.time_ns() - steady()
    return lambda: (steady() + offset) // _NANOSECONDS_PER_MS
