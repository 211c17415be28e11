"""How long to wait before trying again."""

from collections.abc import Callable
from typing import Protocol

Random = Callable[[], float]
"""Gives numbers from 0 up to, not including, 1."""


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
