"""Attempts to sign in, counted by address, so that nobody tries for ever."""

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.server import TOO_MANY_ATTEMPTS

_MOST_ADDRESSES = 10_000


class LoginAttempts:
    """Remembers failures of the last minutes, in memory."""

    def __init__(
        self, *, most: int = 10, window_s: float = 300.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._window_s = window_s
        self._monotonic = monotonic
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def require_patience(self, address: str) -> None:
        """TransientFailure TooManyAttempts while an address has failed too often."""
        with self._lock:
            failures = self._recent(address)
            if len(failures) < self._most:
                return
            wait_s = failures[0] + self._window_s - self._monotonic()
        raise TransientFailure(TOO_MANY_ATTEMPTS.anywhere(retry_after_s=max(1, math.ceil(wait_s))))

    def failed(self, address: str) -> None:
        """Count a failure."""
        with self._lock:
            self._recent(address).append(self._monotonic())
            self._failures.move_to_end(address)
            while len(self._failures) > _MOST_ADDRESSES:
                self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address."""
        with self._lock:
            self._failures.pop(address, None)

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.setdefault(address, deque())
        while failures and failures[0] <= self._monotonic() - self._window_s:
            failures.popleft()
        return failures
