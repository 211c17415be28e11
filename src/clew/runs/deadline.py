"""How long something may take: a budget that reaches down to the database without being passed along.

Code with a budget opens it with `within`. Code that waits asks `time_left` how long it may.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clew.deferred import dataclass


@dataclass(frozen=True, slots=True)
class _Limit:
    ends_at: float
    is_extension: bool = False
    """Whether it replaces the usual time, instead of cutting it short."""


_limit: ContextVar[_Limit | None] = ContextVar("limit", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Everything inside must be done in this many seconds, or sooner if an enclosing budget ends sooner."""
    around = _limit.get()
    ends_at = time.monotonic() + max(0.0, seconds)
    with _limited(_Limit(ends_at if around is None else min(ends_at, around.ends_at))):
        yield


@contextmanager
def extended_to(seconds: float) -> Iterator[None]:
    """What is inside may take longer than usual, such as an upgrade of the schema."""
    with _limited(_Limit(time.monotonic() + seconds, is_extension=True)):
        yield


@contextmanager
def _limited(limit: _Limit) -> Iterator[None]:
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def time_left(usual: float) -> float:
    """How many seconds something may take that usually may take `usual`."""
    limit = _limit.get()
    if limit is None:
        return usual
    left = max(0.0, limit.ends_at - time.monotonic())
    return left if limit.is_extension else min(usual, left)
